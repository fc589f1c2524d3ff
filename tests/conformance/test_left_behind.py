"""What a kernel leaves behind, in the process or in its results, is no fault of the kit and no traceback of it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from conformance.cases import cases
from conformance.entries import described
from conformance.faults.delta import delta_rule
from conformance.faults.small import conv, norm
from conformance.judge import judged
from conformance.kernel.kernel import Kernel
from conformance.kernel.named import kernel_named
from conformance.kernel.settings import of_the_kernel, put, settings
from conformance.kernel.signature import kernel
from conformance.loader import Case
from tests.fresh import fresh


@contextmanager
def unchanged() -> Iterator[None]:
    """The settings of this process are what they were, and are put back where they are not."""
    before = settings()
    try:
        yield
        assert settings() == before
    finally:
        put(before, settings())


def leaving(leave: Callable[[], object]) -> Kernel:
    """A right norm that leaves something behind, in its first call, and computes without it."""
    seen: list[bool] = []

    def call(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
        if not seen:
            seen.append(True)
            leave()
        with torch.autocast("cpu", enabled=False), torch.device("cpu"):
            return norm(x, weight, z, eps, group_size, norm_before_gate)

    return kernel(call)


LEFT: dict[str, Callable[[], object]] = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16).__enter__(),
    "default dtype": lambda: torch.set_default_dtype(torch.bfloat16),
    "default device": lambda: torch.set_default_device("meta"),
    "device": lambda: torch.device("meta").__enter__(),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_a_kernel_leaves_on_is_put_back(what: str) -> None:
    with unchanged():
        tested = leaving(LEFT[what])
        assert {judged(tested, case).status for case in cases("norm")} == {"passed"}
        assert torch.zeros(1).device.type == "cpu" and not torch.is_autocast_enabled("cpu")


def test_a_signal_that_a_kernel_asked_for_raises_nothing_outside_of_it() -> None:
    def late(*_: object) -> None:
        raise TimeoutError("late")

    def call(x, weight, eps):
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        return norm(x, weight, None, eps)

    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)  # whatever another test has left
    try:
        assert judged(kernel(call), cases("norm")[0]).status == "passed"
        time.sleep(0.7)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_it_is_there_again_in_the_next_call_of_this_kernel() -> None:
    heard = []

    def call(x, weight, eps=1e-5):
        heard.append(torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        return norm(x, weight, None, eps)

    with unchanged():
        for _ in range(2):
            tested = kernel(call)
            heard.clear()
            for case in cases("norm")[:2]:
                judged(tested, case)
            assert heard == [torch.float32, torch.float64]


def test_what_a_module_leaves_on_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(
        "import torch\ntorch.set_default_dtype(torch.float64)\nfrom conformance.faults.small import norm as right\n"
        "def norm(x, weight, eps=1e-5):\n    assert torch.get_default_dtype() == torch.float64\n"
        "    return right(x, weight, None, eps)\n"
    )
    with unchanged():
        tested = kernel_named(f"{tmp_path / 'leaves.py'}:norm")
        assert torch.get_default_dtype() == torch.float32
        assert judged(tested, cases("norm")[0]).status == "passed"


def test_a_mode_of_dispatch_is_put_back() -> None:
    with unchanged():
        tested = kernel(lambda x, weight, eps: FakeTensorMode().__enter__() and None, "fake", "norm")
        assert judged(tested, cases("norm")[0]).says == "y is of type NoneType, but must be a tensor."


def test_delta_in_pieces_beside_autocast_is_right() -> None:
    """It was said to be of shapes that do not fit: the kit's own torch.cat had raised."""

    def delta(q, k, v, g, beta, initial_state=None, use_qk_l2norm_in_kernel=False, output_final_state=False):
        if not torch.is_autocast_enabled("cpu"):
            torch.autocast("cpu", torch.bfloat16).__enter__()
        with torch.autocast("cpu", enabled=False):
            found = delta_rule(q, k, v, g, beta, None, initial_state, use_qk_l2norm_in_kernel)
        return found if output_final_state else found[0]

    with unchanged():
        pieces = [case for case in cases("delta_rule") if case.options.get("cuts")]
        assert pieces and {judged(kernel(delta), case).status for case in pieces} == {"passed"}


def of_class(**methods: Any) -> type[Tensor]:
    return type("Other", (Tensor,), methods)


def _raising(error: type[Exception], *names: str) -> Any:
    def torch_function(cls, func, types, args=(), kwargs=None):
        if not names or getattr(func, "__name__", "") in names:
            raise error("no such method")
        return super(cls, cls).__torch_function__(func, types, args, kwargs or {})

    return classmethod(torch_function)


RAISING = {
    "nothing": _raising(NotImplementedError),
    "detach": _raising(TypeError, "detach"),
    "a property": _raising(ValueError, "__get__"),
}


@pytest.mark.parametrize("what", RAISING)
@pytest.mark.parametrize("stepped", [False, True])
def test_a_result_that_cannot_be_read_is_wrong(what: str, stepped: bool) -> None:
    other = of_class(__torch_function__=RAISING[what])

    def call(x, weight, bias=None, initial_states=None, return_final_states=False, activation=None):
        y, state = conv(x, weight, bias, None, initial_states, activation=activation)
        return (y.as_subclass(other), state) if return_final_states else y.as_subclass(other)

    asked = [case for case in cases("conv") if bool(case.options.get("cuts")) == stepped]
    case = next(case for case in asked if "seq_idx" not in case.inputs)
    found = judged(kernel(call), case)
    assert found.status == "failed" and "\n" not in found.says
    assert found.says.startswith("y, a tensor of the class Other, cannot be read: ")


def test_a_result_without_numbers_is_wrong() -> None:
    def call(x, weight, eps):
        return FakeTensorMode().from_tensor(norm(x, weight, None, eps))

    found = judged(kernel(call), cases("norm")[0])
    assert found.status == "failed"
    assert found.says.startswith("y, a tensor of the class FakeTensor, cannot be read: AssertionError: ")


def test_a_class_whose_numbers_can_be_read_is_right_and_compared_as_a_tensor() -> None:
    other = of_class(__torch_function__=_raising(TypeError, "eq", "__eq__", "sub", "double", "cpu"))
    call = lambda x, weight, eps: norm(x, weight, None, eps).as_subclass(other)
    assert judged(kernel(call, "units", "norm"), cases("norm")[0]).status == "passed"


@pytest.mark.parametrize("shapes", [((1, 2, 1), (1, 3, 9)), ((1,), (1, 2, 9)), ((2, 2, 1), (1, 2, 9))])
def test_shapes_that_do_not_fit_are_told(shapes: tuple[tuple[int, ...], ...]) -> None:
    left = [torch.zeros(shape) for shape in shapes]

    def call(x, weight, bias=None, initial_states=None, return_final_states=False, activation=None):
        return (left.pop(0) if left else torch.zeros(shapes[1])), torch.zeros(3)

    case = next(case for case in cases("conv") if case.options.get("cuts"))
    told = ", ".join(map(str, shapes))
    assert judged(kernel(call), case).says == (
        f"y of one call after the other has the shapes {told}, which are no parts of one y"
    )


def test_a_dictionary_in_the_place_of_results_is_told_in_pieces_too() -> None:
    def call(x, weight, bias=None, initial_states=None, return_final_states=False, activation=None):
        y, state = conv(x, weight, bias, None, initial_states, activation=activation)
        return {"y": y, "state": state} if return_final_states else y

    case = next(case for case in cases("conv") if case.options.get("cuts"))
    assert judged(kernel(call), case).says == "y is of type dict, but must be a tensor."


def test_one_wrong_entry_is_no_multiple_of_many_digits() -> None:
    y = torch.tensor([[[3.0, 2.0, 5.0]]])
    case = Case("norm", "norm", "x", "", {"x": y}, {}, {"y": y.double()})
    for factor, said in ((1.0006983, "only in channel 0"), (2.0, "only in channel 0; they are 2 times what is right")):
        result = y * torch.tensor([factor, 1.0, 1.0])
        assert described(case, {"y": case.wrong("y", result)}, {"y": result}) == f"y: {said}"


FORKS = """import os, sys
from conformance.faults.small import norm as right
if {at_import} and os.fork() == 0:
    {end}
def norm(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
    if not hasattr(os, "done"):
        os.done = True
        if os.fork() == 0:
            {end}
    return right(x, weight, z, eps, group_size, norm_before_gate)
"""
ENDS = ("sys.exit(0)", "raise RuntimeError('the child has failed')", "weight = None")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("at_import", [False, True])
def test_one_process_alone_judges_and_reports(end: str, at_import: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FORKS.format(end=end, at_import=at_import), "utf-8")
    command = ("conformance", "--kernel", "mine.py:norm", "--json", "--junit", "report.xml")
    done = fresh("-m", "constructions", *command, cwd=tmp_path)
    assert json.loads(done.stdout)["good"] and done.returncode == 0, done.stderr
    written = (tmp_path / "report.xml").stat().st_mtime_ns
    time.sleep(0.2)
    assert (tmp_path / "report.xml").stat().st_mtime_ns == written
    assert ("the child has failed" in done.stderr) == ("RuntimeError" in end)


@pytest.mark.parametrize(("how", "code"), [("raise SystemExit(5)", 5), ("raise SystemExit", 0), ("1 / 0", 1)])
def test_a_child_ends_with_its_own_code(how: str, code: int) -> None:
    child = os.fork()
    if not child:
        inner = os.fork
        with of_the_kernel(kernel(norm, op="norm").left):
            pid = inner()
            if not pid:
                exec(how)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
