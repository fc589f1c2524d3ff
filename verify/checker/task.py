"""Part D: every answer right. What each task asks, in plain words and as a program, and the proof that it is answered.

A manifest's claim says only which function is asked; what that function is stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.checker.circuit import Reader
from verify.checker.formats import EXACT, Rejected
from verify.checker.language import Language
from verify.checker.readout import NOBODY
from verify.checker.rules import Unproved
from verify.checker.task_chains import read_coin_change, read_fibonacci, read_shortest_path, read_two_words
from verify.checker.task_copies import answers as machine_answers
from verify.checker.task_copies import read_copy, read_phonebook, read_selective_copy
from verify.checker.task_recall import prove_recall
from verify.checker.task_steps import prove_clock, prove_keep, prove_runs
from verify.checker.values import World
from verify.checker.walks import Asking, prove_walks
from verify.checker.windows import TooLarge

Range = tuple[int, int]


@dataclass(frozen=True)
class Recall:
    """At a key: the value that stood right after an earlier occurrence of it.

    A pair is a value right after a key (a letter may be both). keeps: "first" and "last" ask for that pair's value
    among the pairs of the key up to here, the present letter included; "only" asks where there is exactly one.
    blank: the answer where there is none; None if nothing is asked there.
    """

    keys: Range
    values: Range
    keeps: str
    blank: int | None = None

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        """The right letter at each position, None where nothing is asked."""
        found: list[int | None] = []
        for t, asked in enumerate(letters):
            pairs = [
                b for a, b in zip(letters[:t], letters[1 : t + 1], strict=True) if a == asked and _in(b, self.values)
            ]
            if not _in(asked, self.keys):
                found.append(None)
            elif not pairs:
                found.append(self.blank)
            elif self.keeps == "only" and len(pairs) > 1:
                found.append(None)
            else:
                found.append(pairs[-1] if self.keeps == "last" else pairs[0])
        return found

    def prove(self, reader: Reader) -> Fraction:
        return prove_recall(reader, _ids(self.keys), _ids(self.values), self.keeps, self.blank)


@dataclass(frozen=True)
class Keep:
    """From position n on (the first is 1): the letter that stood at n."""

    n: int

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        return [letters[self.n - 1] if t >= self.n else None for t in range(1, len(letters) + 1)]

    def prove(self, reader: Reader) -> Fraction:
        return prove_keep(reader, self.n)


@dataclass(frozen=True)
class Clock:
    """The position (the first is 1), as one of the letters `times` in this order; the last one also from there on."""

    times: Range

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        last = self.times[1] - self.times[0]
        return [self.times[0] + min(t, last) for t in range(len(letters))]

    def prove(self, reader: Reader) -> Fraction:
        return prove_clock(reader, _ids(self.times))


@dataclass(frozen=True)
class Runs:
    """How many letters `one` end here without a break, as one of `counts` (from 0 on); the last one for all longer."""

    one: int
    counts: Range

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        found: list[int | None] = []
        for t in range(1, len(letters) + 1):
            run = next((i for i in range(t) if letters[t - 1 - i] != self.one), t)
            found.append(min(self.counts[0] + run, self.counts[1]))
        return found

    def prove(self, reader: Reader) -> Fraction:
        return prove_runs(reader, self.one, _ids(self.counts))


@dataclass(frozen=True)
class Walked:
    """A task as a machine over letters that are left open, which walks beside the circuit (lemma V)."""

    machine: Asking

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        return machine_answers(self.machine, letters)

    def prove(self, reader: Reader) -> Fraction:
        return prove_walks(reader.world.language, reader.data, self.machine)


Task = Recall | Keep | Clock | Runs | Walked


def read_task(claim: object, language: Language) -> Task:
    """The task that a claim names, {"name": …, its parameters}; Rejected where there is none."""
    if not isinstance(claim, dict) or not isinstance(claim.get("name"), str):
        raise Rejected("the task is no object with a name")
    if claim["name"] not in _TASKS and claim["name"] not in _MACHINES:
        raise Rejected(f"no proof is known for the task {claim['name']!r}")
    try:
        task = _TASKS[claim["name"]](claim) if claim["name"] in _TASKS else _walked(claim, language.tokens)
    except (KeyError, TypeError, ValueError, IndexError) as wrong:
        raise Rejected(f"the task {claim['name']} has other parameters than it needs: {wrong}") from wrong
    ids = [i for v in vars(task).values() if isinstance(v, tuple) for i in v] + [
        v for k, v in vars(task).items() if k in ("blank", "one") and v is not None
    ]
    if not all(0 <= i < language.tokens for i in ids):
        raise Rejected(f"the task {claim['name']} names a letter beyond {language.tokens - 1}")
    return task


_KEEPS = {"first": "first", "last": "last", "sum": "only"}
_TASKS: dict[str, Callable[[dict], Task]] = {
    "mqar": lambda c: Recall(_range(c, "keys"), _range(c, "values"), _KEEPS[c["write"]]),
    "induction-heads": lambda c: Recall(_range(c, "letters"), _range(c, "letters"), "last", _letter(c, "blank")),
    "keep-nth": lambda c: Keep(_number(c, "n")),
    "absolute-time": lambda c: Clock(_range(c, "times")),
    "count-in-row": lambda c: Runs(_letter(c, "one"), _range(c, "counts")),
}

_MACHINES: dict[str, Callable[[dict, int], Asking]] = {
    "copy": read_copy,
    "selective-copy": read_selective_copy,
    "phonebook": read_phonebook,
    "edit-distance": read_two_words,
    "lcs": read_two_words,
    "fibonacci": read_fibonacci,
    "coin-change": read_coin_change,
    "shortest-path": read_shortest_path,
}


def _walked(claim: dict, tokens: int) -> Walked:
    return Walked(_MACHINES[claim["name"]](claim, tokens))


def prove_task(language: Language, circuit: dict, claim: object) -> Fraction | None:
    """The least lead of the right letter's score at every position that asks, in every sequence of the language; None
    where there is no other letter.

    Rejected, in one sentence, where it is not proved to be positive, or where nothing is ever asked.
    """
    task = read_task(claim, language)
    try:
        margin = task.prove(Reader(World(language, EXACT), circuit))
    except (Unproved, TooLarge) as reason:
        raise Rejected(str(reason)) from reason
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as reason:
        raise Rejected(f"circuit.json is not a circuit: {reason!r}") from reason
    if margin <= 0:
        raise Rejected(f"the right letter is only proved to lead by {float(margin):g}")
    if margin >= NOBODY and language.tokens > 1:
        raise Rejected("no sequence of the language asks the task's question")
    return margin if margin < NOBODY else None


def _in(letter: int, held: Range) -> bool:
    return held[0] <= letter <= held[1]


def _ids(held: Range) -> np.ndarray:
    return np.arange(held[0], held[1] + 1)


def _number(claim: dict, name: str) -> int:
    if type(claim[name]) is not int or claim[name] < 1:
        raise ValueError(f"{name} = {claim[name]!r}")
    return claim[name]


def _letter(claim: dict, name: str) -> int:
    if type(claim[name]) is not int:
        raise ValueError(f"{name} = {claim[name]!r}")
    return claim[name]


def _range(claim: dict, name: str) -> Range:
    first, last = claim[name]
    if type(first) is not int or type(last) is not int or not first <= last:
        raise ValueError(f"{name} = {claim[name]!r}")
    return first, last
