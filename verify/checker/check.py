"""The verdict on a checkpoint: what is proved, on what it rests, and what is not proved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from verify.checker.arithmetic import Proved, prove_arithmetic
from verify.checker.files import read
from verify.checker.formats import Rejected

RESTS_ON = (
    "the equations of the transformers class named in config.json",
    "correctly rounded + and × and the float facts of docs/proofs.md on exp, softplus, silu and rsqrt",
    "safetensors and JSON as published",
    "this checker",
)


@dataclass(frozen=True)
class Verdict:
    """accepted: whether part A holds. reason: the first thing that could not be proved, or None.

    proved and open: sentences on what has been established and what has not.
    """

    accepted: bool
    reason: str | None
    proved: tuple[str, ...]
    open: tuple[str, ...]

    def to_json(self) -> dict:
        return {
            "version": 1,
            "accepted": self.accepted,
            "reason": self.reason,
            "proved": list(self.proved),
            "open": list(self.open),
            "rests_on": list(RESTS_ON),
        }


def check(directory: str | Path) -> Verdict:
    """Read a checkpoint's files and prove of them what can be proved."""
    try:
        checkpoint = read(directory)
        model = prove_arithmetic(checkpoint)
    except Rejected as reason:
        return Verdict(False, str(reason), (), ("everything",))
    where = f"every sequence of the input language of at most {checkpoint.language.length} tokens"
    proved = [
        f"Arithmetic: on {where}, every float operation of the packaged module in {checkpoint.format.name} gives the exact value."
    ]
    remaining = ["Meaning: that the exact values are those of the circuit."]
    _specials(model, proved, remaining)
    return Verdict(True, None, tuple(proved), tuple(remaining))


def _specials(model: Proved, proved: list[str], remaining: list[str]) -> None:
    if model.silent:
        proved.append("Special tokens: each scores below some letter at every position.")
    else:
        remaining.append("Special tokens: that none of them scores highest.")
