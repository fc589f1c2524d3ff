"""How a kernel is told of documents that are packed into one row, and asked for states beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from conformance.kernel.arguments import CASES_OF, OFFSET_STATES, OFFSETS, STATE_IN, STATE_OUT, Lacks
from conformance.kernel.layouts import beside, is_dense
from conformance.loader import Case


@dataclass(frozen=True)
class Documents:
    """What the arguments of a kernel tell it of documents.

    op: its operation, accepts: the names of its arguments, defaults: what it has for those that are left out, and
    unseen: those behind its **, as in `conformance.kernel.Kernel`.
    """

    op: str
    accepts: frozenset[str]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()

    @property
    def offsets_alone(self) -> bool:
        """Whether it is told by offsets alone where documents are: steps and norms are told of none."""
        return self.op in STATE_IN and OFFSETS in self.accepts and "seq_idx" not in self.accepts

    @property
    def takes_both(self) -> bool:
        """Whether it takes numbers of documents, and offsets."""
        return {OFFSETS, "seq_idx"} <= self.accepts

    def told(self, case: Case) -> str:
        """By what it is told of the documents of a case: "numbers", "offsets" or "both"; "" where it is told nothing.
        Of several rows it gets the numbers alone.
        """
        if "seq_idx" not in case.inputs or self.op in CASES_OF:
            return ""
        if self.takes_both:
            return "numbers" if len(case.inputs["seq_idx"]) > 1 else case.options.get("told", "both")
        return "offsets" if self.offsets_alone else "numbers" if "seq_idx" in self.accepts else ""

    def asked_of(self, case: Case) -> Case:
        """A case with those states alone that a call asks for: of documents only where offsets tell of them, and beside
        numbers by an argument of its own. Offsets alone may ask a kernel that takes both for the state of the row or
        for those of documents: either is right.
        """
        told, states = self.told(case), case.expected.get("document_states")
        without = set()
        if told == "numbers" or (told == "both" and OFFSET_STATES not in self.accepts):
            without = {"document_states"}
        elif told == "offsets" and states is None:
            without = {"last_state"}
        more = ["last_state"] if told == "offsets" and self.takes_both and states is not None else []
        if not (without & case.expected.keys() or {*more} - case.expected.keys()):
            return case
        adapted = [
            {name: m for name, m in group.items() if name not in without}
            | {name: group["document_states"][-1:] for name in more if "document_states" in group}
            for group in (case.expected, case.tolerance)
        ]
        return replace(case, expected=adapted[0], tolerance=adapted[1])

    def flags(self, inputs: Mapping[str, Tensor], asked: Collection[str]) -> dict[str, bool]:
        """What asks for these states: with offsets alone one argument for the state of every document. False is given
        where a state is not asked for, and is by default, or where what is by default is not known: behind a **.
        """
        of_documents = "document_states" in asked and OFFSETS in inputs
        last = "last_state" in asked or (of_documents and "seq_idx" not in inputs)
        flags = {**dict.fromkeys(STATE_OUT, last), OFFSET_STATES: of_documents}
        returned = {name for name in flags if self.defaults.get(name)} | self.unseen
        return {name: on for name, on in flags.items() if name in self.accepts and (on or name in returned)}

    def with_offsets(self, inputs: Mapping[str, Tensor], told: str) -> dict[str, Tensor]:
        """Documents by where they begin: (documents + 1,) offsets of one row. A kernel that takes the numbers of the
        documents too gets both, as those of mamba_ssm do, or one of them; of several rows it gets the numbers alone.
        """
        ids = inputs["seq_idx"]
        if len(ids) > 1 and self.offsets_alone:
            raise Lacks("it takes no batch of several rows beside cu_seqlens")
        kept = {name: tensor for name, tensor in inputs.items() if name != "seq_idx" or told != "offsets"}
        if told == "numbers":
            return kept
        begins = (ids[0, 1:] != ids[0, :-1]).nonzero().flatten() + 1
        ends = [begins.new_zeros(1), begins, begins.new_tensor([ids.shape[1]])]
        if told == "offsets" and (state := kept.get(STATE_IN[self.op])) is not None:
            kept[STATE_IN[self.op]] = _with_room(state, len(begins) + 1)
        return kept | {OFFSETS: torch.cat(ends).to(torch.int32)}

    def named(self, results: Any, inputs: Mapping[str, Tensor], flags: Mapping[str, bool]) -> dict[str, Any]:
        """What a call with these operands returned, by name. flags: what it was given to ask for states. What was asked
        for and did not come stands there as None.
        """
        found = without_last_none(tuple(results) if isinstance(results, (tuple, list)) else (results,))
        by_document = OFFSETS in inputs and (flags.get(OFFSET_STATES, False) or "seq_idx" not in inputs)
        names = ["y", "last_state", "document_states"]
        if by_document and len(found) == 2:
            by_document = not (self.takes_both and "seq_idx" not in inputs and _is_of_one(found[1]))
            names = ["y", "document_states" if by_document else "last_state"]
        asked_for = ["y"] + (["document_states" if by_document else "last_state"] if any(flags.values()) else [])
        given_back = {name: each for name, each in zip(names, found, strict=False) if each is not None}
        return dict.fromkeys(asked_for) | given_back


def without_last_none(results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Which result is which is read off their number, and None behind them is none."""
    while results and results[-1] is None:
        results = results[:-1]
    return results


def _is_of_one(m: Any) -> bool:
    """Whether it is one state."""
    return is_dense(m) and m.dim() > 0 and len(m) == 1


def _with_room(states: Tensor, documents: int) -> Tensor:
    """One state, behind which there is room for those of the other documents: a kernel that looks for one of each
    document finds NaN, and no memory of others.
    """
    room = beside((max(documents, len(states)), *states.shape[1:]), states)
    room[: len(states)] = states
    return room[: len(states)]
