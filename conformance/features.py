"""What sets wrong cases apart from right ones: the options and sizes that the first have and the second have not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch

from conformance.cases.forms import forms_of
from conformance.kernel.arguments import STATE_OUT
from conformance.loader import Case

TOGETHER = 3  # options
_SHOWN = 3  # ways to set cases apart
_BORDERS = (16, 64, 128, 256)
_BITS = "bits of an operand"
OF_CHUNKS = "positions of a chunk"
_OPERAND = {"selective_scan": "u", "delta_rule": "v"}
_AXES = {  # of the operand: what its sizes are
    "selective_scan": ("rows", "channels", "positions"),
    "ssd": ("rows", "positions", "heads", "channels of a head"),
    "conv": ("rows", "channels", "positions"),
    "norm": ("rows", "positions", "channels"),
    "delta_rule": ("rows", "positions", "heads", "channels of a head"),
}
_GIVEN = {"delta_bias": "bias", "dt_bias": "bias", "initial_states": "initial state", "initial_state": "initial state"}
_GIVEN |= {"seq_idx": "documents", "D": "D", "z": "z", "bias": "bias"}
_ASKED = {"delta_softplus": "softplus", "dt_softplus": "softplus", "dt_limit": "limits of Δ", "cuts": "pieces"}
_ASKED |= {
    "use_qk_l2norm_in_kernel": "norm of q and k",
    "views": "views",
    "activation": "activation",
    "norm_before_gate": "gate after the norm",
}


_FORMS = {
    "axis of one group": "an axis of one group",
    "shared": "operands that all rows share",
    "numbers": "numbers of documents that fall",
    "steps below 0": "steps below 0",
}
OF_ONE = "one document that fills its row"
OF_ARGUMENTS = {name: words for name, words in (_GIVEN | _ASKED).items() if name not in ("cuts", "views")}
OF_ARGUMENTS |= {"cu_seqlens": "documents", **dict.fromkeys(STATE_OUT, "last state")}
"""What a case with this argument has, in the words of `features`."""


@dataclass(frozen=True)
class Trait:
    """Something that cases have or have not; having: one bit for each case."""

    words: str
    having: int


def features(case: Case) -> dict[str, Any]:
    """Options and sizes of a case by name: True, a number, or a dtype."""
    operand = _operand(case)
    found: dict[str, Any] = {_GIVEN[name]: True for name in case.inputs if name in _GIVEN}
    found |= {words: True for name, words in _ASKED.items() if case.options.get(name)}
    found |= _axes(case)
    found |= {_FORMS[name]: True for name, _ in forms_of(case)}
    found["dtype"] = str(operand.dtype).removeprefix("torch.")
    if case.states:
        found["last state"] = True
    if "seq_idx" in case.inputs:
        found |= _of_documents(case)
    if case.tolerance:
        found["a tolerance"] = True
    found |= _beside_axes(case)
    if case.op == "ssd" and "D" in case.inputs and case.inputs["D"].dim() == 2:
        found["D of each channel of a head"] = True
    if case.op == "conv" and case.options["activation"]:  # two names of one function, of which a kernel may know one
        found["name of the activation"] = f"activation {case.options['activation']!r}"
    if "chunk_size" in case.options:
        found[OF_CHUNKS] = case.options["chunk_size"]
    if not case.tolerance:
        found[_BITS] = max(_bits(m) for m in case.inputs.values() if m.is_floating_point())
    return found


def _of_documents(case: Case) -> dict[str, Any]:
    """How a kernel is told of documents, and how many states stand before them."""
    numbers, told = case.inputs["seq_idx"], case.options.get("told")
    found: dict[str, Any] = {f"documents told by {told} alone": True} if told else {}
    if numbers.shape[1] > 1 and bool((numbers == numbers[:, :1]).all()):
        found[OF_ONE] = True
    if any(len(m) > len(numbers) for name, m in case.inputs.items() if _GIVEN.get(name) == "initial state"):
        found["a state for each document"] = True
    return found


def sizes(case: Case) -> dict[str, int]:
    """What a case has how many of, by name."""
    return _axes(case) | _beside_axes(case)


def operand_of(case: Case) -> tuple[tuple[str, ...], torch.Tensor]:
    """What its axes are, and the operand."""
    return _AXES[case.op], _operand(case)


def _operand(case: Case) -> torch.Tensor:
    return case.inputs[_OPERAND.get(case.op, "x")]


def _axes(case: Case) -> dict[str, int]:
    return dict(zip(_AXES[case.op], _operand(case).shape, strict=True))


def _beside_axes(case: Case) -> dict[str, int]:
    """The sizes that no axis of the operand has."""
    match case.op:
        case "selective_scan":
            B = case.inputs["B"]
            return {"groups": B.shape[1] if B.dim() == 4 else 1, "state columns": B.shape[-2]}
        case "ssd":
            return {"groups": case.inputs["B"].shape[2], "state columns": case.inputs["B"].shape[-1]}
        case "delta_rule":
            return {"places of a key": case.inputs["k"].shape[-1]}
        case "norm":
            return {"groups": _operand(case).shape[-1] // case.options["group_size"]}
    return {"taps": case.inputs["weight"].shape[1]}


def _bits(tensor: torch.Tensor) -> int:
    """How many significant bits the widest entry has."""
    mantissa = torch.frexp(tensor.double().abs())[0] * 2.0**53
    whole = mantissa.to(torch.int64)
    lowest = (whole & -whole).double().log2()
    return max(1, int(torch.where(whole == 0, 1.0, 53 - lowest).max()))


def apart(wrong: Sequence[Case], right: Sequence[Case], untold: frozenset[str] = frozenset()) -> list[str]:
    """What all wrong cases have and no right one has: up to three things together, the fewest that do; [] if none.

    untold: what of `features` the kernel is not told in any call, and which therefore sets none apart.
    """
    return _separating(wrong, right, len(wrong), untold)


def first_use(wrong: Sequence[Case], right: Sequence[Case], untold: frozenset[str] = frozenset()) -> list[str]:
    """What the first wrong case has and no right one has, as `apart`."""
    return _separating(wrong[:1], right, 1, untold)


def _separating(wrong: Sequence[Case], right: Sequence[Case], count: int, untold: frozenset[str]) -> list[str]:
    if not wrong or not right:
        return []
    every = (1 << count) - 1
    traits, seen = [], set()
    told = [{name: v for name, v in features(case).items() if name not in untold} for case in (*wrong, *right)]
    for trait in _traits(told):
        if trait.having & every == every and trait.having not in seen:
            seen.add(trait.having)
            traits.append(trait)
    for together in range(1, TOGETHER + 1):
        found = [chosen for chosen in combinations(traits, together) if _common(chosen) == every]
        if found:
            return [_listed([trait.words for trait in chosen]) for chosen in found[:_SHOWN]]
    return []


def _common(traits: Sequence[Trait]) -> int:
    having = traits[0].having
    for trait in traits[1:]:
        having &= trait.having
    return having


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _traits(cases: Sequence[dict[str, Any]]) -> Iterator[Trait]:
    """Options first, then sizes: a case has more of them, then just as many, then none or fewer."""
    names = list(dict.fromkeys(name for found in cases for name in found))
    values = {name: [found.get(name) for found in cases] for name in names}
    bits = lambda having: sum(1 << i for i, yes in enumerate(having) if yes)
    numbers = {name: row for name, row in values.items() if _is_number(row)}
    for name, row in values.items():
        if name not in numbers:
            for value in dict.fromkeys(v for v in row if v is not None):
                yield Trait(name if value is True else str(value), bits(v == value for v in row))
    for name, row in numbers.items():
        sizes = sorted({v for v in row if v is not None})
        for less in sizes[:-1]:
            yield Trait(f"more than {less:g} {_noun(name, less)}", bits(v is not None and v > less for v in row))
    for name, row in numbers.items():  # behind all of these: of two that say the same of the cases the first is told
        for value in sorted({v for v in row if v is not None}):
            yield Trait(f"{value:g} {_noun(name, value)}", bits(v == value for v in row))
    for border in _BORDERS:
        row = numbers.get("positions", [])
        yield Trait(f"positions that are no multiple of {border}", bits(v is not None and v % border for v in row))
    for name, row in values.items():
        if name in numbers:
            for value in sorted({v for v in row if v is not None})[:-1]:
                yield Trait(f"at most {value:g} {_noun(name, value)}", bits(v is not None and v <= value for v in row))
        elif True in row:
            yield Trait(f"no {name}", bits(v is None for v in row))
    for (one, row), (other, beside) in combinations([each for each in numbers.items() if each[0] != _BITS], 2):
        equal = bits(v is not None and 1 < v == w for v, w in zip(row, beside, strict=True))
        yield Trait(f"as many {one} as {other}", equal)


def _noun(name: str, value: float) -> str:
    """One of "bits of an operand" is a bit."""
    return re.sub(r"s\b", "", name, count=1) if value == 1 else name


def _is_number(row: Sequence[Any]) -> bool:
    return any(isinstance(v, (int, float)) and not isinstance(v, bool) for v in row)
