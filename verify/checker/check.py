"""The verdict on a checkpoint: what is proved, on what it rests, and what is not proved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from verify.checker.arithmetic.model import prove_arithmetic
from verify.checker.budget import check_circuit
from verify.checker.files import WEIGHTS, Checkpoint, read, read_json
from verify.checker.formats import Rejected, at_least
from verify.checker.meaning.circuit import given
from verify.checker.meaning.compare import compare
from verify.checker.meaning.conditions import Unproved
from verify.checker.meaning.told import inexact
from verify.checker.operands import check_operands
from verify.checker.schema import check_written
from verify.checker.tasks.task import Answers, prove_task
from verify.checker.text import BY_IDS, check_text
from verify.checker.unexpected import unexpected_told
from verify.checker.values.effort import Effort, limited
from verify.checker.values.language import EVERY_LENGTH, Language
from verify.checker.values.windows import TooLarge

RESTS_ON = (
    "the equations of the transformers class named in config.json",
    "correctly rounded + and ×, and the float facts of docs/proofs.md on exp, softplus, silu and rsqrt",
    "safetensors and JSON as published",
    "this checker",
)


UNSTATED = "no task is stated"
UNREAD = "not looked at, for the files beside it are refused"  # a task that is stated
_FOR_EVER = "of every length"
_NONE = "none"  # the domain of files that are no checkpoint
_LONGEST = 500  # characters of a reason
_UNKNOWN = "nothing is known of the values while the arithmetic is not proved"


@dataclass(frozen=True)
class Verdict:
    """For each part None if it is proved, else why it is not. domain: for which sequences, and in which dtype.

    arithmetic: every float operation gives the exact value. meaning: the exact values are the scores of circuit.json.
    specials: no special token ever scores highest. task: these scores answer the task that the manifest names, each
    right letter ahead by `margin` at least; `UNSTATED` where it names none, which is no reason to reject. asks: what
    that task asks, in words with the names of its letters. refused: whether it is no task of this circuit at all
    (`Answers`). given: what the circuit takes for granted of its sequences;
    meaning is proved of those alone of which it is true.
    """

    domain: str
    arithmetic: str | None
    meaning: str | None
    specials: str | None
    task: str | None = UNSTATED
    margin: Fraction | None = None
    asks: str | None = None
    given: tuple[str, ...] = ()
    refused: bool = False

    def __post_init__(self) -> None:
        for part, why in self.parts().items():
            if why is not None:  # a file's words, of any length, stand in it
                short = why if len(why) <= _LONGEST else f"{why[: _LONGEST // 2]} … {why[-_LONGEST // 2 :]}"
                object.__setattr__(self, part, _whole(short))
        object.__setattr__(self, "asks", None if self.asks is None else _whole(self.asks))

    @property
    def weights(self) -> str | None:
        """The first part that is not proved of those that make the weights the circuit."""
        return self.arithmetic or self.meaning or self.specials

    @property
    def every_length(self) -> bool:
        """Whether the promise names no length, so that what is proved is proved for all."""
        return _FOR_EVER in self.domain

    @property
    def accepted(self) -> bool:
        return self.reason is None

    @property
    def reason(self) -> str | None:
        """The first part that is not proved."""
        return self.weights or (None if self.task == UNSTATED else self.task)

    def parts(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in ("arithmetic", "meaning", "specials", "task")}

    def lines(self) -> list[str]:
        """The verdict for people."""
        told = [f"  {part}: {'proved' if why is None else f'not proved: {why}'}" for part, why in self.parts().items()]
        if self.refused:
            told[-1] = f"  task: refused: {self.task}"
        if self.given and self.meaning is None:
            told[1] = f"  meaning: proved, where {' and '.join(self.given)}"
        if self.task is None and self.weights is not None:
            told[-1] = "  task: proved of circuit.json, and so not of weights that are not proved to compute it"
        if self.margin is not None:
            told[-1] += f": every right letter leads by {at_least(self.margin)} or more"
        if self.asks is not None:
            told.append(f"  the task is {self.asks}")
        if ".clip(" in (self.arithmetic or ""):  # what may help is said of weights that the circuit compiles to
            told.append("  no bound that the circuit states helps other weights: construct verify says whose they are")
        if self.domain == _NONE:
            return ["not accepted: of such files nothing is proved", *told]
        return [f"{'accepted' if self.accepted else 'not accepted'} for {self.domain}", *told]

    def to_json(self) -> dict:
        proved: dict[str, dict] = {
            name: {"proved": reason is None, "reason": reason} for name, reason in self.parts().items()
        }
        proved["meaning"] |= {"given": list(self.given)}
        proved["task"] |= {"margin": None if self.margin is None else float(self.margin), "asks": self.asks}
        return {"version": 1, "accepted": self.accepted, "domain": self.domain, **proved, "rests_on": list(RESTS_ON)}


def _whole(words: str) -> str:
    """The words, with half characters, which JSON may hold and nothing prints, as their numbers."""
    return words.encode("utf-8", "backslashreplace").decode("utf-8")


def check(directory: str | Path) -> Verdict:
    """Read a checkpoint's files and prove of them what can be proved. No file makes it raise anything."""
    try:
        with unexpected_told("an entry of a file"):
            return _checked(directory)
    except (Rejected, TooLarge, Unproved) as reason:  # where no part of the proof has told it already
        return Verdict(_NONE, str(reason), _UNKNOWN, _UNKNOWN, _unread(directory))


def _unread(directory: str | Path) -> str:
    """What is said of the task where nothing was proved, for it may be stated all the same."""
    try:
        with unexpected_told("an entry of construction.json"):
            claim = read_json(Path(directory) / "construction.json").get("task")
    except Rejected:
        return "whether one is stated is not known, for construction.json is not read"
    return UNSTATED if claim is None else UNREAD


def _checked(directory: str | Path) -> Verdict:
    try:
        with unexpected_told("an entry of config.json, of the weights or of the promise"):
            checkpoint = read(directory)
    except Rejected as reason:
        return Verdict(_NONE, str(reason), _UNKNOWN, _UNKNOWN, _unread(directory))
    try:
        with unexpected_told("an entry of circuit.json or of the tokenizer"):
            circuit = read_json(Path(directory) / "circuit.json")
            check_written(circuit, checkpoint.manifest)
            check_circuit(circuit, (Path(directory) / WEIGHTS).stat().st_size)
            check_operands(circuit)
            text = check_text(Path(directory), circuit, checkpoint.config, checkpoint.manifest)
    except Rejected as reason:
        return replace(prove(checkpoint, {}, None), meaning=str(reason), task=_unread(directory))
    found = prove(checkpoint, circuit, checkpoint.manifest.get("task"))
    return found if text else replace(found, domain=f"{found.domain}, {BY_IDS}")


@np.errstate(invalid="raise")  # what is no number is neither above a bound nor below it
def prove(checkpoint: Checkpoint, circuit: dict, claim: object) -> Verdict:
    """What can be proved of a checkpoint, its circuit.json and the task that its manifest names (None: none)."""
    language = checkpoint.language
    length = _FOR_EVER if language.length == EVERY_LENGTH else f"of at most {language.length} tokens"
    domain = f"every sequence of the input language {length}, in {checkpoint.format.name}"
    weights = sum(len(tensor.data) for tensor in checkpoint.tensors.values())
    with limited(weights):
        answers = prove_answers(language, circuit, claim)
    said = Verdict(domain, None, None, None, answers.reason, answers.margin, answers.says, refused=answers.refused)
    tried = []
    for together in (True, False):  # a closer bound of a sum is another way to write it, and may hide what is equal
        with limited(weights) as effort:  # of each way: the first may take all of it where the second is short
            tried.append(_prove_weights(checkpoint, circuit, said, effort, together))
        if tried[-1].arithmetic is None and tried[-1].meaning is None:
            return tried[-1]
    return tried[0]


def _prove_weights(checkpoint: Checkpoint, circuit: dict, found: Verdict, effort: Effort, together: bool) -> Verdict:
    """With what is proved of arithmetic, meaning and specials. effort: what is left of it; together: see `World`."""
    try:
        with unexpected_told("an entry of the weights"):
            model = prove_arithmetic(checkpoint, together)
    except (Rejected, TooLarge) as reason:
        told = inexact(reason, circuit) if isinstance(reason, Rejected) else str(reason)
        return replace(found, arithmetic=told, meaning=_UNKNOWN, specials=_UNKNOWN)
    specials = None if model.silent else "a special token may score as high as every letter"
    meaning = compare(model.world, circuit, model.lanes, model.head)
    if meaning is not None and effort.spent:  # whatever the search said of what it could not do any more
        meaning = f"that every score is the circuit's is not shown: {effort}"
    return replace(found, meaning=meaning, specials=specials, given=() if meaning else given(circuit))


def prove_answers(language: Language, circuit: dict, claim: object) -> Answers:
    """`prove_task`, or that no task is claimed."""
    return Answers(UNSTATED) if claim is None else prove_task(language, circuit, claim)
