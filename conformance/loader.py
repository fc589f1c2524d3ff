"""Test vectors as files: one safetensors file for each operation, with what each case asks in its metadata.

This module needs safetensors and torch and nothing else of ours, so that it may be copied into another project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

HOW = ("cuts", "views", "shared", "told")
"""Options of a case that are no arguments."""
_BESIDE = {"delta_softplus": 2.0**-40, "dt_softplus": 2.0**-40, "use_qk_l2norm_in_kernel": 2.0**-30}
_BESIDE |= {"z": 2.0**-40, "activation": 2.0**-40}
"""What a kernel in float64 may leave, of the largest entry, with an option or operand whose exact value float32 rounds
to: softplus, the norm of a key, silu."""


@dataclass(frozen=True, eq=False)
class Case:
    """One call of an operation, and what it must return.

    op:        "selective_scan", "ssd", "conv", "norm" or "delta_rule"; their shapes are told in `conformance.exact`.
    stage:     what the case belongs to; `conformance.stages.STAGES` has their order.
    name:      unique within the operation.
    asks:      the one thing that this case needs and no earlier one does: what is likely wrong where it fails.
    inputs:    tensors by argument name, as the operation takes them.
    options:   other arguments by name, and how the case is run: `cuts` are where the sequence is cut into pieces, the
               state carried on; `views` is whether operands are parts of wider tensors, as those of a layer are
               ("mixed": each in its own layout; "shared": rows that are equal are one, with a stride of 0); `shared`
               says in words which operands every row shares, with a stride of 0, whatever the others lie in; `told` is
               by what a kernel that takes numbers and offsets of documents is told of them in one row: "numbers" or
               "offsets" alone, or, where it is left out, both.
    expected:  float64 tensors by name: "y", and "last_state" where it is asked for; "document_states" (documents, …)
               where documents are packed into one row: the state at the end of each.
    tolerance: float64 tensors by the same names, how far each entry may be; a name that is missing is exact.
    borders:   positions where something ends or begins, by what it is ("chunk", "cut", "document": those of row 0).
    """

    op: str
    stage: str
    name: str
    asks: str
    inputs: Mapping[str, Tensor]
    options: Mapping[str, Any]
    expected: Mapping[str, Tensor]
    tolerance: Mapping[str, Tensor] = field(default_factory=dict)
    borders: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """The options that an operation takes."""
        return {name: value for name, value in self.options.items() if name not in HOW}

    @property
    def states(self) -> list[str]:
        """The names of the states among what is expected."""
        return [name for name in self.expected if name in ("last_state", "document_states")]

    def results_in(self, name: str) -> torch.dtype:
        """The dtype of a result: that of the operands, or float32 of a state."""
        given = next(self.inputs[each] for each in ("u", "x", "v") if each in self.inputs).dtype
        return given if name == "y" or self.op == "conv" else torch.float32

    def wrong(self, name: str, result: Tensor) -> Tensor:
        """Which entries of a result are wrong: bool, the result's shape; NaN is wrong.

        What is exact is rounded once to the result's dtype; a result in float64 is rounded to float32 first. In float64
        softplus(32) is 32 + 1.3e-14, and a key of the length 1024 over √(1024² + 1e-6) has the length 1 − 5e-13. So a
        kernel that computes in it leaves that where terms cancel, and no 0; this is not wrong. What exp(−256), which is
        6.6e-112, leaves is 0 in float32. Raises ValueError where the result is no dense tensor, has another shape, or
        is neither in the dtype of the operands nor in a wider one (float16 is none for bfloat16); or where the last
        state, which is float32 beside any operands, is narrower (the window of a convolution is x).
        """
        expected = self.expected[name]
        if not isinstance(result, Tensor):
            raise ValueError(f"{name} is of type {type(result).__name__}, but must be a tensor.")
        if result.is_meta or result.is_nested or result.layout != torch.strided:
            nested = "of tensors (nested)" if result.is_nested else f"in the layout {result.layout}"
            held = "without values (meta)" if result.is_meta else nested
            raise ValueError(f"{name} is a tensor {held}, but must be a dense one.")
        if result.shape != expected.shape:
            raise ValueError(f"{name} has shape {tuple(result.shape)}, but must have {tuple(expected.shape)}.")
        given = self.results_in("y")
        if result.dtype not in (given, torch.float32, torch.float64) or result.dtype.itemsize < given.itemsize:
            raise ValueError(f"{name} is {result.dtype}, but the operands are {given}.")
        if name == "last_state" and self.op != "conv" and result.dtype.itemsize < 4:
            raise ValueError(f"{name} is {result.dtype}, but a state must be float32, whatever the operands are.")
        kept = torch.float32 if result.dtype == torch.float64 else result.dtype
        found = result.detach().to(kept).double().cpu()
        if name in self.tolerance:
            return ~((found - expected).abs() <= self.tolerance[name])
        right = found == expected.float().to(kept).double()
        used = {*self.inputs, *(option for option, value in self.options.items() if value)}
        if beside := max((bound for name, bound in _BESIDE.items() if name in used), default=0.0):
            seen = (expected == 0) | (result.dtype == torch.float64)
            right |= seen & ((found - expected).abs() <= beside * expected.abs().max())
        return ~right


def ends_of_documents(numbers: Tensor) -> list[int]:
    """Where each document of a row ends, by the numbers (l,) of the documents that positions belong to."""
    return [*((numbers[1:] != numbers[:-1]).nonzero().flatten() + 1).tolist(), len(numbers)]


_GROUPS = ("inputs", "expected", "tolerance")


def save(cases: Iterable[Case], path: str | Path) -> None:
    """Write cases of one operation; the same cases give the same bytes. ValueError where two have one name."""
    tensors: dict[str, Tensor] = {}
    index: list[dict[str, Any]] = []
    for case in cases:
        if any(case.name == other["name"] for other in index):
            raise ValueError(f"Two cases are called {case.name!r}; a file holds one case of a name.")
        for group in _GROUPS:
            for name, tensor in getattr(case, group).items():
                tensors[f"{case.name}/{group}/{name}"] = tensor.clone(memory_format=torch.contiguous_format)
        plain = ("op", "stage", "name", "asks", "options", "borders")
        index.append({key: getattr(case, key) for key in plain})
    # One entry: safetensors keeps no order of several, and the bytes would differ from run to run.
    save_file(tensors, path, {"cases": json.dumps(index)})


def load(path: str | Path) -> list[Case]:
    """The cases of a file, in order."""
    with safe_open(path, framework="pt") as file:
        index = json.loads(file.metadata()["cases"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    groups: dict[str, dict[str, Any]] = {case["name"]: {group: {} for group in _GROUPS} for case in index}
    for key, tensor in tensors.items():
        case, group, name = key.rsplit("/", 2)
        groups[case][group][name] = tensor
    return [Case(**case, **groups[case["name"]]) for case in index]
