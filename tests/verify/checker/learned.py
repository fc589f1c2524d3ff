"""Small circuits of the rules that the checker learned last: counts with a reset, `and`, totals on top of totals."""

from __future__ import annotations

from collections.abc import Callable

from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream
from compiler.language.words import concatenate, count, latch, present
from tests.circuits import abc, is_a, is_b, is_c

SINCE = count(is_a, reset=is_b)
NUMBER = abc.number({"a": 2, "b": -1, "c": 5})
AB = is_b & is_a.shift(1)


def _free(name: str, output: Stream, length: int = 24) -> Circuit:
    return Circuit(name, output, InputLanguage.everything(abc.alphabet, length))


def _ended(name: str, output: Stream) -> Circuit:
    """Over words of a, that end with b or c at most once."""
    edges = [("more", "more", ["a"], False), ("more", "over", ["b", "c"], True)]
    return Circuit(name, output, InputLanguage.of(abc.alphabet, "more", edges, 16, "one end"))


LEARNED: dict[str, Callable[[], Circuit]] = {
    # counts with a reset
    "since-back": lambda: _free("since back", SINCE.shift(2)),
    "since-both": lambda: _free("since both", concatenate(SINCE, count(is_c, reset=is_b) - SINCE)),
    "since-pair": lambda: _free("since a pair", count(is_a, reset=AB)),
    "since-reached": lambda: _free("since reached", (is_c & (SINCE.shift(1) >= 2)).cumsum()),
    "since-latched": lambda: _free("since latched", latch(SINCE, is_c)),
    # and
    "and-of-three": lambda: _free("and of three", concatenate(AB & is_c.shift(2), is_a & ~is_b.shift(1))),
    "and-of-absences": lambda: _free("and of absences", (~is_a & ~is_b).cumsum()),
    "and-implied": lambda: _free("and implied", latch(NUMBER * is_a, is_a & ~present(is_b))),
    "and-stored": lambda: _free("and stored", memory.write(is_b, NUMBER, when=AB).read(present(is_c))),
    "and-of-counts": lambda: _free("and of counts", (is_a.cumsum() >= 2) & (is_b.cumsum() == 1)),
    # totals on top of totals (their names stay as docs/trust.json has them)
    "mass-of-ends": lambda: _ended("mass of ends", concatenate(is_b.cumsum(), (is_b.cumsum().shift(1) >= 1).cumsum())),
    "mass-of-sums": lambda: _free("mass of sums", NUMBER.cumsum().cumsum(), 12),
    "mass-of-reads": lambda: _ended("mass of reads", latch(is_a.cumsum(), is_b).cumsum()),
    "mass-of-firsts": lambda: _free("mass of firsts", (present(is_a) & ~present(is_a).shift(1)).cumsum()),
    "mass-of-memory": lambda: _free(
        "mass of a memory", memory.write(is_a, abc.number({"b": 1, "c": 2}).shift(1)).read(is_c).cumsum(), 12
    ),
}
