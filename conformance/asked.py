"""What a kernel is asked for: the options that it has arguments for, and sizes at which it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from conformance.cases.factors import DTYPES
from conformance.cases.fitted import Size, ordinary_of, plain, size_of, usual
from conformance.cases.options import Option, option_of, options_of, varied
from conformance.features import OF_ARGUMENTS, OF_ONE, features
from conformance.kernel.arguments import OFFSET_STATES, OFFSETS, STATE_IN
from conformance.kernel.kernel import Kernel
from conformance.kernel.layouts import strided
from conformance.kernel.stepping import by_head
from conformance.loader import Case

Runs = Callable[[Case], bool]
"""Whether a kernel gives a result for a case, right or wrong."""

_ARGUMENTS = {
    "bias": ("delta_bias", "dt_bias", "bias"),
    "softplus": ("delta_softplus", "dt_softplus"),
    "limit": ("dt_limit",),
    "normed": ("use_qk_l2norm_in_kernel",),
    "gate": ("norm_before_gate",),
}
_WITH_DEFAULTS = ("eps", "group_size", "norm_before_gate")
_NO_ARGUMENTS = ("dtype", "batch", "views", "taps")
_FIRST_SIZES = 20  # usual ones, at which what few kernels demand is tried
_FIRST: dict[Option, str] = {
    ("dtype", "float32"): "float32",
    ("batch", 1): "one row",
    ("groups", 1): "one group",
    ("views", False): "dense operands",
    ("taps", 4): "4 taps",
    ("activation", None): "no activation",
    ("gate", "before"): "the gate before the norm",
    ("start", "nothing"): "neither a state nor documents",
    **{(name, False): f"no {name}" for name in ("D", "z", "bias", "softplus")},
    ("limit", None): "no limits of Δ",
    ("normed", False): "no norm of q and k",
}
"""What most cases have, which a kernel may refuse none the less."""
_WORDS: dict[Option, str] = {
    ("batch", 2): "several rows",
    ("groups", 2): "several groups",
    ("views", True): "operands that are parts of wider tensors",
    ("D", "of channels"): "D of each channel of a head",
}


def takes(kernel: Kernel, op: str, option: Option) -> bool:
    """Whether a kernel has the arguments of an option."""
    name, value = option
    if name == "start":
        return _takes_start(kernel, op, value)
    if name == "groups":
        return kernel.op != "channel step" and (op != "norm" or "group_size" in kernel.accepts)
    if kernel.is_step and (name == "limit" or option == ("start", "pieces")):
        return False
    return name in _NO_ARGUMENTS or bool({name, *_ARGUMENTS.get(name, ())} & kernel.accepts)


def _takes_start(kernel: Kernel, op: str, value: str) -> bool:
    documents = not kernel.is_step and bool({OFFSETS, "seq_idx"} & kernel.accepts)
    state = kernel.is_step or STATE_IN.get(op) in kernel.accepts
    needed = {"documents": (documents,), "state and documents": (state, documents)}
    return all(needed.get(value, (state,)))


def not_run(kernel: Kernel, op: str, ran: Sequence[Case]) -> list[Option]:
    """The options that a kernel has the arguments for, and none of the cases that it ran has."""
    having = {option for case in ran if case.op == op for option in told_apart(case)}
    return [option for option in varied(op) if option not in having and takes(kernel, op, option)]


def never_asked(
    kernel: Kernel, there: Sequence[Case], ran: Sequence[Case], some_strided: bool = False
) -> tuple[str, ...]:
    """What a kernel may do and some of all cases have, though none of those that it ran, in words. some_strided:
    whether an operand was no dense tensor in some call.
    """
    having = {words for case in ran for words in _given(kernel, case)}
    of_arguments = sorted({words for case in there for words in _given(kernel, case)} - having)
    known = {option for case in there for option in told_apart(case)}
    met = {option for case in ran for option in told_apart(case)}
    varying = {name for op in kernel.operations() for name, _ in varied(op)}
    first = [option for option in _FIRST if option[0] in varying]
    others = [*first, *(option for op in kernel.operations() for option in not_run(kernel, op, ran))]
    others = [option for option in others if option in known - met and _has_arguments(kernel, option)]
    said = dict.fromkeys(words for option in others if (words := _in_words(option, some_strided)))
    of_states = [words for words in _states_of_steps(kernel, there) if words not in {*_states_of_steps(kernel, ran)}]
    of_sizes = (*_unasked_sizes(kernel, there, ran), *_unasked_defaults(kernel, ran))
    return tuple(dict.fromkeys([*of_arguments, *of_states, *said, *of_sizes]))  # an option may be an argument too


def _unasked_sizes(kernel: Kernel, there: Sequence[Case], ran: Sequence[Case]) -> Iterator[str]:
    """Heads of v that share one of k, and the sizes of a chunk that some case has and none that it ran."""
    shared = lambda some: any(c.op == "delta_rule" and c.inputs["v"].shape[2] > c.inputs["q"].shape[2] for c in some)
    if shared(there) and not shared(ran):
        yield "several heads of v for each of k"
    chunks = lambda some: {case.options["chunk_size"] for case in some if "chunk_size" in case.options}
    missing = sorted(chunks(there) - chunks(ran)) if "chunk_size" in kernel.accepts else []
    if missing:
        yield f"chunks of {', '.join(map(str, missing))}"


def _states_of_steps(kernel: Kernel, some: Sequence[Case]) -> dict[str, None]:
    """The states that a step is given in some cases, in words, and what the channels of a head share there."""
    if not kernel.is_step:
        return {}
    of_heads = {by_head(kernel.op, case) for case in some if case.op == "selective_scan"}
    found = {
        "a state (b, d, n)": False in of_heads and kernel.op != "head step",
        "Δ, A, D and a bias that channels of a head share": any(case.op == "ssd" for case in some),
        "Δ, A, D and a bias of each channel of a head": True in of_heads and kernel.op != "channel step",
    }
    return {words: None for words, there in found.items() if there}


def _unasked_defaults(kernel: Kernel, ran: Sequence[Case]) -> list[str]:
    """What it does where these are left out, if no case asks for that by name, or what they are then is not known."""
    given = {name: [case.options[name] for case in ran if name in case.options] for name in _WITH_DEFAULTS}
    own = {name: value for name, value in kernel.defaults.items() if name in given and kernel.op == "norm"}
    unseen = [f"{name} left out" for name in _WITH_DEFAULTS if name in kernel.unseen]
    named = [name for name, value in own.items() if value is not None and value not in given[name]]
    if own.get("group_size", 0) is None and not any(map(kernel.leaves_out_group_size, ran)):
        named.append("group_size")  # None is one group
    return unseen + [f"{name} left out ({own[name]!r})" for name in named]


def _given(kernel: Kernel, case: Case) -> set[str]:
    """What of a case goes into arguments that a kernel has, each for itself, in words."""
    found = {*features(case)} & {words for name, words in OF_ARGUMENTS.items() if name in kernel.accepts}
    return found | ({*_told_of(kernel, case)} if "seq_idx" in case.inputs else set())


def _told_of(kernel: Kernel, case: Case) -> Iterator[str]:
    """How a kernel is told of documents and what it is asked beside them, of what it has arguments for, in words."""
    told, one_row = kernel.documents.told(case), len(case.inputs["seq_idx"]) == 1
    states = kernel.documents.asked_of(case).states
    if told and OF_ONE in features(case):
        yield OF_ONE
    if kernel.documents.takes_both and one_row:
        yield from {
            "both": (OFFSETS, f"seq_idx and {OFFSETS} together"),
            "numbers": ("seq_idx alone in one row",),
        }.get(told, (OFFSETS, f"{OFFSETS} alone"))
        if OFFSET_STATES in kernel.accepts and told != "numbers" and "document_states" in states:
            yield OFFSET_STATES
    if told in ("both", "offsets") and one_row and not states:
        yield f"{OFFSETS} without a state"


def told_apart(case: Case) -> frozenset[Option]:
    """The options of a case that mean something there: not on which side of a norm its gate is, where there is none;
    nor documents in rows that have one each; nor views of operands that have one axis, or are dense all together.
    """
    return frozenset(option for option in options_of(case) if _means_something(case, option))


def _means_something(case: Case, option: Option) -> bool:
    name, value = option
    if name == "gate":
        return "z" in case.inputs
    if name == "start" and "documents" in value:
        numbers = case.inputs["seq_idx"]
        return bool((numbers != numbers[:, :1]).any())
    if name == "views" and value:
        return bool(strided(case))
    return True


def _has_arguments(kernel: Kernel, option: Option) -> bool:
    return any(takes(kernel, op, option) for op in kernel.operations())


def _in_words(option: Option, some_strided: bool = False) -> str:
    if option in _FIRST:
        return _FIRST[option]
    if option == ("views", True) and some_strided:  # what no call had is that all of them are
        return "all operands as parts of wider tensors at once"
    name, value = option
    said = {"dtype": f"{value}", "taps": f"{value} taps", "activation": f"activation {value!r}"}
    return said.get(name) or _WORDS.get(option, "")


_STARTS = {"state": "an initial state", "state and documents": "documents after a state"}
_STARTS_ALONE = {
    "documents": ("documents with no state before them", "documents"),
    "state": ("an initial state without documents", "initial state"),
}
"""Beginnings that no case had, in words, and the argument that then need not have been given in any case."""
IMPLIED = {**dict(_STARTS_ALONE.values()), "the gate after the norm": "gate after the norm"}
"""What need not be told beside the argument that no case gave."""


def as_words(op: str, some: Collection[Option], some_strided: bool = False) -> str:
    """Options together in words; "" for one alone that `never_asked` tells. some_strided: as there."""
    if len(some) == 1:
        ((name, value),) = some
        if _in_words((name, value)):
            return ""
        if name == "start" and value in _STARTS_ALONE:
            return _STARTS_ALONE[value][0]
    return " with ".join(sorted(named(op, option, some_strided) for option in some))


def named(op: str, option: Option, some_strided: bool = False) -> str:
    """One option in words, beside others. some_strided: as above."""
    name, value = option
    if name == "start" and option not in _FIRST:
        return _STARTS.get(value, str(value))
    if name == "last state":
        return name if value else f"no {name}"
    if name == "limit" and value:
        return f"limits of Δ {value}"
    if name == "gate":
        return f"the gate {value} the norm"
    return _in_words(option, some_strided) or (name if value is True else f"{name} {value}")


def fitting(kernel: Kernel, op: str, ran: Sequence[Case], runs: Runs) -> Size | None:
    """A size at which a kernel runs: of a case that it ran, or one that it is tried on."""
    sizes = {size_of(case): case.expected["y"].numel() for case in ran if case.op == op}
    longer = {size: numbers for size, numbers in sizes.items() if size[1] > 1}
    if longer:
        return min(longer, key=lambda size: (not 16 <= size[1] <= 256, not _has_groups(size), longer[size]))
    return tried(kernel, op, runs)


def tried(kernel: Kernel, op: str, runs: Runs) -> Size | None:
    """The first usual size at which a kernel runs in some dtype without options."""
    sizes = (size for size in usual(op, kernel.is_step))
    return next((size for size in sizes if any(runs(plain(op, size, dtype=dtype)) for dtype in DTYPES)), None)


def _has_groups(size: Size) -> bool:
    """Whether heads or channels can have two groups."""
    return (size[0] if isinstance(size[0], int) else size[0][0]) % 2 == 0


def tried_with_options(
    kernel: Kernel, op: str, factors: Mapping[str, Sequence[Any]], runs: Runs
) -> tuple[Size | None, dict[str, Any]]:
    """The first usual size at which a kernel runs with some options, and these; where it runs with none nowhere."""
    for size, levels in usual_with_options(kernel, op, factors):
        if runs(ordinary_of(op, size, levels)[0]):
            return size, {name: option_of(name, value)[1] for name, value in levels.items()}
    return None, {}


def usual_with_options(
    kernel: Kernel, op: str, factors: Mapping[str, Sequence[Any]], most: int | None = None
) -> Iterator[tuple[Size, dict[str, Any]]]:
    """Usual sizes with one option or all, then the first of them with what few kernels demand; most: of how many."""
    first, more = (islice(usual(op, kernel.is_step), count) for count in (most, most or _FIRST_SIZES))
    yield from ((size, levels) for size in first for levels in _with_some(factors))
    yield from ((size, levels) for size in more for levels in _with_another(factors))


def with_options(factors: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """What one kernel or another demands: an option, or all of them, or what few demand; in every dtype."""
    return chain(_with_some(factors), _with_another(factors))


def _with_some(factors: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """One option, then all of them, but one row and one beginning; in every dtype."""
    several = {name: values[-1] for name, values in factors.items() if len(values) > 1 and name not in _NO_ARGUMENTS}
    together = {name: value for name, value in several.items() if name != "start"}
    yield from _in_every_dtype(factors, [*({name: value} for name, value in several.items()), together])


def _with_another(factors: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Several rows, views, another number of taps, an initial state, or another value of an option; in every dtype."""
    others = ((name, v) for name in ("batch", "views", "taps") for v in factors.get(name, ())[1:])
    middle = ((name, v) for name, values in factors.items() if name not in _NO_ARGUMENTS for v in values[1:-1])
    yield from _in_every_dtype(factors, ({name: value} for name, value in chain(others, middle)))


def _in_every_dtype(
    factors: Mapping[str, Sequence[Any]], rows: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Beside the one value of each factor that has no other: the side of a norm on which a gate is, say."""
    fixed = {name: values[0] for name, values in factors.items() if len(values) == 1}
    yield from ({**fixed, **row, "dtype": dtype} for row in rows for dtype in factors["dtype"])


def with_documents(op: str, size: Size, dtype: str = "float32") -> Case:
    """A case of documents after a state, which end at multiples of 16."""
    levels: dict[str, Any] = {"start": "state and documents", "last state": True, "unit": 16, "dtype": dtype}
    return plain(op, size, **levels)
