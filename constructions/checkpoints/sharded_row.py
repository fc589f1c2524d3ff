"""What comes out of a shard of a verification, as a table holds it: a schema, and what its entries owe each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import Any

from compiler.artifact.schema import parse
from verify.check import Verification

_LONGEST_CASE = 200  # characters of the name of a case


@dataclass(frozen=True)
class Failure:
    """The first wrong answer or differing score of a shard."""

    case: str
    tokens: list[int]
    position: int


@dataclass(frozen=True)
class Row:
    """The fields of a `Verification` that shards of one form can have. margin: None where none is finite."""

    sequences: int
    queries: int
    correct: int
    wrong_inside: int
    exact_sequences: int
    bit_exact: bool
    within: bool
    margin: float | None
    failure: Failure | None

    @classmethod
    def of(cls, found: Verification) -> Row:
        """What came out."""
        values = {field.name: getattr(found, field.name) for field in fields(cls)}
        failure = None if found.failure is None else Failure(*found.failure)
        return cls(**values | {"margin": found.margin if isfinite(found.margin) else None, "failure": failure})

    def verification(self) -> Verification:
        """The same, to be added to others."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        failure = self.failure and (self.failure.case, self.failure.tokens, self.failure.position)
        return Verification(**values | {"margin": inf if self.margin is None else self.margin, "failure": failure})

    def check(self, count: int, longest: int, letters: int) -> None:
        """ValueError for what no run of so many sequences, of at most `longest` tokens of so many letters, gives."""
        for wrong, why in self._wrong(count, longest):
            if wrong:
                raise ValueError(why)
        if self.failure is not None:
            _check_failure(self.failure, longest, letters)

    def _wrong(self, count: int, longest: int) -> Iterator[tuple[bool, str]]:
        """(whether it is wrong, what): each may rely on those before."""
        yield self.sequences != count, f"sequences is {_number(self.sequences)}, and the shard has {count:,}"
        most = count * longest
        yield not 0 <= self.queries <= most, f"queries is {_number(self.queries)}, and 0 … {most:,} is possible"
        right, lost = self.correct, self.queries - self.correct
        yield not 0 <= right <= self.queries, f"correct is {_number(right)} of {self.queries:,} queries"
        inside = self.wrong_inside
        yield not 0 <= inside <= lost, f"wrong_inside is {_number(inside)} of {lost:,} wrong answers"
        exact, broken = self.exact_sequences, count - self.exact_sequences
        yield not 0 <= exact <= count, f"exact_sequences is {_number(exact)} of {count:,}"
        agree = (lost > 0) == (broken > 0) and broken <= lost
        yield not agree, f"{lost:,} queries are wrong and {broken:,} sequences have a wrong one, which cannot be"
        yield self.bit_exact and not self.within, "bit_exact is true and within is false, which cannot be"
        good = self.within and not lost
        yield (
            good != (self.failure is None),
            f"{'a' if good else 'no'} failure stands there, and the counts say otherwise",
        )
        if self.margin is not None:
            fits = self.queries > 0 and (self.margin > 0) == (lost == 0)
            yield not fits, f"margin is {self.margin:g} with {right:,} of {self.queries:,} queries right"


def _check_failure(failure: Failure, longest: int, letters: int) -> None:
    name, tokens, position = failure.case, failure.tokens, failure.position
    if not 0 < len(name) <= _LONGEST_CASE or not name.isprintable():
        raise ValueError("the case of its failure is no name")
    if not 0 < len(tokens) <= longest or not all(0 <= token < letters for token in tokens):
        raise ValueError(
            f"its failure has {len(tokens):,} tokens, and 1 … {longest:,} of 0 … {letters - 1:,} are possible"
        )
    if not 0 <= position < len(tokens):
        raise ValueError(f"its failure is at position {_number(position)} of {len(tokens):,}")


def _number(value: int) -> str:
    return f"{value:,}" if abs(value) < 1 << 64 else "an integer beyond 2^64"


def parsed(result: Any) -> Row:
    """A row from its JSON value; ValueError, which names the entry, for what has another form."""
    return parse(Row, result, "result")


def differs(one: Row, other: Row, bound: float) -> str | None:
    """The first entry in which two runs differ, and what both have; None where they are the same.

    bound: how far a score may be from the circuit's. Within it machines round differently, so that a margin may differ
    by four times as much, and bits need not be the same.
    """
    near = bound > 0 and one.within and other.within
    for field in fields(Row):
        here, there = getattr(one, field.name), getattr(other, field.name)
        if here == there or (near and field.name == "bit_exact"):
            continue
        if near and field.name == "margin" and None not in (here, there) and abs(here - there) <= 4 * bound:
            continue
        return f"{field.name} = {_told(here)}, and now {_told(there)}"
    return None


def _told(value: Any) -> str:
    if isinstance(value, Failure):
        return f"position {value.position} of a sequence of {len(value.tokens):,} tokens"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
