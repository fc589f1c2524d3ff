"""The verdict on a checkpoint: what is proved, on what it rests, and what is not proved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from verify.checker.arithmetic import prove_arithmetic
from verify.checker.circuit import compare
from verify.checker.files import read, read_json
from verify.checker.formats import Rejected

RESTS_ON = (
    "the equations of the transformers class named in config.json",
    "correctly rounded + and ×, and the float facts of docs/proofs.md on exp, softplus, silu and rsqrt",
    "safetensors and JSON as published",
    "this checker",
)


@dataclass(frozen=True)
class Verdict:
    """For each part None if it is proved, else why it is not. domain: for which sequences, and in which dtype.

    arithmetic: every float operation gives the exact value. meaning: the exact values are the scores of circuit.json.
    specials: no special token ever scores highest.
    """

    domain: str
    arithmetic: str | None
    meaning: str | None
    specials: str | None

    @property
    def accepted(self) -> bool:
        return self.reason is None

    @property
    def reason(self) -> str | None:
        """The first part that is not proved."""
        return self.arithmetic or self.meaning or self.specials

    def lines(self) -> list[str]:
        """The verdict for people."""
        parts = {part: getattr(self, part) for part in ("arithmetic", "meaning", "specials")}
        told = [f"  {part}: {'proved' if why is None else f'not proved: {why}'}" for part, why in parts.items()]
        return [f"{'accepted' if self.accepted else 'rejected'} for {self.domain}", *told]

    def to_json(self) -> dict:
        parts = {name: getattr(self, name) for name in ("arithmetic", "meaning", "specials")}
        proved = {name: {"proved": reason is None, "reason": reason} for name, reason in parts.items()}
        return {"version": 1, "accepted": self.accepted, "domain": self.domain, **proved, "rests_on": list(RESTS_ON)}


def check(directory: str | Path) -> Verdict:
    """Read a checkpoint's files and prove of them what can be proved."""
    try:
        checkpoint = read(directory)
        domain = (
            f"every sequence of the input language of at most {checkpoint.language.length} "
            f"tokens, in {checkpoint.format.name}"
        )
        model = prove_arithmetic(checkpoint)
    except (Rejected, ArithmeticError, ValueError, IndexError) as reason:
        nothing = "nothing is known of the values while the arithmetic is not proved"
        return Verdict("none", str(reason), nothing, nothing)
    specials = None if model.silent else "a special token may score as high as every letter"
    try:
        circuit = read_json(Path(directory) / "circuit.json")
        meaning = compare(model.world, circuit, model.lanes, model.head)
    except Rejected as reason:
        meaning = str(reason)
    return Verdict(domain, None, meaning, specials)
