"""How a kernel is called, what it may write to, and what is said of what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.cases import cases
from conformance.cases.companion import companion_cases
from conformance.cases.crossed import crossed_cases
from conformance.cases.factors import STEPS
from conformance.cases.options import varied
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged, run, why
from conformance.kernel.kernel import Kernel
from conformance.kernel.layouts import beside, same_bits
from conformance.kernel.signature import kernel
from conformance.loader import Case

SCAN, STEP = FUNCTIONS["selective_scan"], FUNCTIONS["step"]


def _named(op: str, name: str) -> Case:
    return next(case for case in cases(op) if case.name == name)


def by_name(*, state, x, dt, A, B, C):
    return STEP(state, x, dt, A, B, C)


def state_last(x, dt, A, B, C, state):
    return STEP(state, x, dt, A, B, C)


def state_of_no_name(state, /, x, dt, A, B, C):
    return STEP(state, x, dt, A, B, C)


def of_no_names(C, B, A, dt, x, state, /):
    return STEP(state, x, dt, A, B, C)


@pytest.mark.parametrize("step", [by_name, state_last, state_of_no_name, of_no_names])
@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_a_step_is_given_its_operands_as_its_signature_has_them(op: str, step: Callable[..., Any]) -> None:
    assert judged(kernel(step), _named(op, "columns")).status == "passed"


def scan_of_no_names(u, delta, A, B, C, D=None, /, z=None, initial_state=None):
    return SCAN(u, delta, A, B, C, D=D, z=z, initial_state=initial_state)


@pytest.mark.parametrize("case", ["three steps", "skip and gate", "gate", "kept"])
def test_operands_without_names_are_given_in_their_order(case: str) -> None:
    assert judged(kernel(scan_of_no_names), _named("selective_scan", case)).status == "passed"


def test_an_operand_that_must_be_there_is_named() -> None:
    def scan(u, delta, A, B, C, rate, /):
        return SCAN(u, delta, A, B, C)

    assert judged(kernel(scan, op="selective_scan"), _named("selective_scan", "three steps")).says == (
        "TypeError: it needs rate"
    )


def scan_without_defaults(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state, initial_state):
    assert delta_softplus in (True, False) and return_last_state in (True, False)
    return SCAN(u, delta, A, B, C, D=D, z=z, delta_bias=delta_bias, delta_softplus=delta_softplus)


def scan_without_names_and_defaults(u, delta, A, B, C, D, z, /):
    return SCAN(u, delta, A, B, C, D=D, z=z)


@pytest.mark.parametrize("scan", [scan_without_defaults, scan_without_names_and_defaults])
@pytest.mark.parametrize("case", ["three steps", "skip", "skip and gate"])
def test_what_a_case_lacks_is_given_as_none_or_false_where_there_is_no_default(scan, case: str) -> None:
    assert judged(kernel(scan), _named("selective_scan", case)).status == "passed"


@pytest.mark.parametrize("put", [lambda state, new: setattr(state, "data", new), lambda state, new: state.set_(new)])
def test_a_step_that_puts_other_memory_under_its_state_has_not_updated_it(put: Callable[..., Any]) -> None:
    def step(state, x, dt, A, B, C):
        new = state.clone()
        y = STEP(new, x, dt, A, B, C)
        put(state, new)
        return y

    assert judged(kernel(step), _named("ssd", "columns")).says.startswith("it puts other memory in the place of its")


@pytest.mark.parametrize(("given", "type_"), [(lambda y, state: (y, state), "tuple"), (lambda y, _: {"y": y}, "dict")])
@pytest.mark.parametrize("name", ["one step", "columns"])
def test_a_step_that_gives_back_no_tensor_is_wrong_for_that(given: Callable[..., Any], type_: str, name: str) -> None:
    def step(state, x, dt, A, B, C):
        return given(STEP(state, x, dt, A, B, C), state)

    found = judged(kernel(step), _named("ssd", name))
    assert (found.status, found.says) == ("failed", f"y is of type {type_}, but must be a tensor.")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda y, last: ([y], last), "y is of type list, but must be a tensor."),
        (lambda y, last: (y, [last]), "last_state is of type list, but must be a tensor."),
    ],
    ids=["y", "last state"],
)
def test_a_sequence_in_pieces_is_wrong_where_something_is_no_tensor(given: Callable[..., Any], says: str) -> None:
    def scan(u, delta, A, B, C, initial_state=None, return_last_state=False):
        return given(*SCAN(u, delta, A, B, C, initial_state=initial_state))

    found = judged(kernel(scan), _named("selective_scan", "odd cuts"))
    assert (found.status, found.says) == ("failed", says)


def test_what_is_written_beside_a_view_is_seen() -> None:
    """Outside of the operand, in the tensor that it is a view of."""

    def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        if B._base is not None:
            B._base.flatten()[0] = 7.0
        given = {"D": D, "z": z, "delta_bias": delta_bias, "delta_softplus": delta_softplus}
        return SCAN(u, delta, A, B, C, **given)

    without = frozenset({("batch", 2), ("groups", 2), *(("start", s) for s in ("state", "pieces", "documents"))})
    without |= {("start", "state and documents")}
    asked = [case for case in crossed_cases("selective_scan", without, (4,)) if not case.expected.keys() - {"y"}]
    found = {case.options.get("views", False): judged(kernel(scan), case) for case in asked}
    assert found[True].says == "it writes beside its operand B" and found[False].status == "passed"


def test_what_a_step_writes_into_another_position_is_seen() -> None:
    def step(state, x, dt, A, B, C):
        y = STEP(state, x, dt, A, B, C)
        x._base.flatten()[-1] += 1
        return y

    assert judged(kernel(step), _named("ssd", "columns")).says.startswith("it writes beside its operand x")
    assert {judged(kernel(STEP), case).status for case in crossed_cases("ssd", frozenset(), STEPS)[:40]} >= {"passed"}


@pytest.mark.parametrize("op", ["selective_scan", "ssd", "conv"])
def test_borders_of_random_cases_are_told(op: str) -> None:
    """A kernel that misses the second border is wrong at it."""
    packed = next(case for case in companion_cases(op) if "seq_idx" in case.inputs)
    borders = packed.borders["document"]

    def call(**given: Any) -> Any:
        numbers = given["seq_idx"].clone()
        numbers[:, borders[1] :] = numbers[:, :1]
        numbers[:, : borders[1]] = 0 * numbers[:, : borders[1]]
        return FUNCTIONS[op](**given | {"seq_idx": numbers})

    wrong = kernel(FUNCTIONS[op], op, op)
    found = judged(type(wrong)(op, op, call, wrong.accepts), packed)
    assert found.near == f"at the document border {borders[0]}"
    cut = next(case for case in companion_cases(op) if "cuts" in case.options)
    assert cut.borders["cut"] == cut.options["cuts"]


def test_a_border_is_that_of_the_row_which_is_wrong() -> None:
    several = [case for case in crossed_cases("conv") if len(case.inputs.get("seq_idx", ())) > 1]
    case = next(case for case in several if not case.expected.keys() - {"y"} and case.inputs["x"].shape[-1] > 20)
    second = (case.inputs["seq_idx"][1].diff() != 0).nonzero().flatten()[1].item() + 1
    assert second not in case.borders["document"]

    def conv(x, weight, bias=None, seq_idx=None, activation=None):
        y, _ = FUNCTIONS["conv"](x, weight, bias, seq_idx, activation=activation)
        y = y.clone()
        y[1, :, second] += 1024
        return y

    assert judged(kernel(conv), case).near == f"at the document border {second}"


COMPUTED: dict[str, Callable[[Tensor], Tensor]] = {
    "2 times it": lambda old: 2 * old,
    "it and 0": lambda old: old + 0,
    "1 times it": lambda old: old * 1,
    "its neighbour": lambda old: old.roll(1, -1),
    "nothing": lambda old: 0 * old.nan_to_num(),
}


@pytest.mark.parametrize("what", COMPUTED)
def test_what_is_computed_from_what_stands_beside_an_operand_is_seen(what: str) -> None:
    """NaN times 2 is NaN as well, but has other bits where the first one signals."""

    def scan(u, delta, A, B, C):
        for m in (u, B):
            if m._base is not None:
                axis = next(axis for axis, size in enumerate(m._base.shape) if size != m.shape[axis])
                beside = m._base.narrow(axis, 0, m.shape[axis])
                beside.copy_(COMPUTED[what](beside))
        return SCAN(u, delta, A, B, C)

    without = frozenset(option for option in varied("selective_scan") if option[0] not in ("dtype", "views"))
    views = [case for case in crossed_cases("selective_scan", without, (4, 64)) if case.options.get("views") is True]
    views = [case for case in views if not case.expected.keys() - {"y"} and case.expected["y"].shape[2] > 1]
    assert {str(case.inputs["u"].dtype) for case in views} == {"torch.float32", "torch.bfloat16", "torch.float16"}
    assert {judged(kernel(scan), case).says for case in views} == {"it writes beside its operand u, B"}


@pytest.mark.parametrize("what", COMPUTED)
def test_what_a_step_computes_from_what_stands_beside_its_state_is_seen(what: str) -> None:
    def step(state, x, dt, A, B, C):
        y = STEP(state, x, dt, A, B, C)
        if (base := state._base) is not None:
            beside = base.narrow(1, 0, state.shape[1])
            beside.copy_(COMPUTED[what](beside))
        return y

    without = frozenset(option for option in varied("ssd") if option[0] not in ("dtype", "views"))
    asked = [case for case in crossed_cases("ssd", without, STEPS) if case.options.get("views") is True]
    found = {judged(kernel(step), case).says for case in asked}
    assert "it writes beside its state" in found


def test_what_stands_beside_an_operand_is_no_number_and_never_the_same() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.half):
        m = beside((3, 5), torch.empty(0, dtype=dtype))
        assert m.isnan().all() and not same_bits(m[:, 1:], m[:, :-1]) and same_bits(m, beside((3, 5), m))


def into(buffer: dict[Any, Tensor], key: Any, result: Tensor) -> Tensor:
    """A result in the memory of the one before, of its shape."""
    return buffer.setdefault((key, result.shape, result.dtype), torch.empty_like(result)).copy_(result)


@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_a_kernel_that_uses_one_buffer_for_all_its_results_is_right(op: str) -> None:
    buffer: dict[Any, Tensor] = {}

    def step(state, x, dt, A, B, C):
        return into(buffer, "y", STEP(state, x, dt, A, B, C))

    assert judged(kernel(step), _named(op, "columns")).status == "passed"
    named = {"selective_scan": "initial_state", "ssd": "initial_states"}[op]

    def whole(**given: Any) -> tuple[Tensor, ...]:
        return tuple(into(buffer, i, m) for i, m in enumerate(FUNCTIONS[op](**given)))

    tested = Kernel("one buffer", op, whole, ours(op).accepts)
    pieces = [case for case in cases(op) if "cuts" in case.options]
    assert pieces and {judged(tested, case).status for case in pieces} == {"passed"} and named in tested.accepts


def test_results_of_earlier_cases_stay_what_they_were() -> None:
    """A cause is looked for in all of them, when the kernel has long written into its buffer again."""
    buffer: dict[Any, Tensor] = {}

    def scan(u, delta, A, B, C, D=None):
        return into(buffer, "y", SCAN(u, delta, A, B, C)[0])

    skip = _named("selective_scan", "skip")
    twice = replace(skip, inputs={**skip.inputs, "u": 2 * skip.inputs["u"]}, expected={"y": 2 * skip.expected["y"]})
    assert why([run(kernel(scan), case) for case in (skip, twice)]).likely == "D u is left out"


@pytest.mark.parametrize("shape", [lambda y, i: y[:, :i], lambda y, i: y.sum()], ids=["more and more", "no axis"])
@pytest.mark.parametrize("case", ["columns", "odd cuts"])
def test_results_that_do_not_fit_together_are_wrong(case: str, shape: Callable[..., Tensor]) -> None:
    """The kernel ran; joining what it gave back is ours."""
    count = iter(range(1, 100))

    def step(state, x, dt, A, B, C):
        return shape(STEP(state, x, dt, A, B, C), next(count))

    def scan(u, delta, A, B, C, initial_state=None, return_last_state=False):
        y, last = SCAN(u, delta, A, B, C, initial_state=initial_state)
        return (y[..., 0].sum() if shape(y, 1).dim() == 0 else y[:, : next(count)]), last

    found = judged(kernel(step if case == "columns" else scan), _named("selective_scan", case))
    assert found.status == "failed" and ("shape" in found.says)


NO_NAMES = {
    "def step(h, x, dt, A, B, C): pass": "it takes h, which ssd has not",
    "def step(s, x, dt, A, B, C, /): pass": "it takes s, which ssd has not",
    "def step(h, u, delta, A, B, C, D=None): pass": "it takes h, which selective_scan has not",
    "def step(x, dt, A, B, C, h=None): pass": "it takes h, which ssd has not",
    "def decode_step(x, dt, A, B, C): pass": "it is called decode_step, as a step is",
    "def step(state, q, k, v, g, beta): pass": "it takes state, which delta_rule has not",
    "def conv_update(x, conv_state, weight, bias=None, activation=None): pass": "it takes conv_state, which conv has",
    "def scan(state, x, dt, A, B, C, chunk_size=64): pass": "it takes chunk_size, which step has not",
}


@pytest.mark.parametrize("text", NO_NAMES)
def test_what_may_be_another_operation_must_be_told(text: str) -> None:
    """A step whose state is called h was taken for ssd, and called wrong."""
    found: dict[str, Any] = {}
    exec(text, found)
    (function,) = (each for name, each in found.items() if name != "__builtins__")
    with pytest.raises(ValueError, match="say by --operation which it is") as said:
        kernel(function)
    assert NO_NAMES[text] in str(said.value)


@pytest.mark.parametrize("text", ["def f(h, x, dt, A, B, C, D=None): ", "def f(s, x, dt, A, B, C, /): "])
def test_a_step_that_is_told_may_call_its_state_anything(text: str) -> None:
    found: dict[str, Any] = {"right": STEP}
    first = text[6]
    exec(f"{text} return right({first}, x, dt, A, B, C)", found)
    assert judged(kernel(found["f"], op="step"), _named("ssd", "columns")).status == "passed"
