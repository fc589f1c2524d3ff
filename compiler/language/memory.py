"""Keyed memories: `memory.write(key, value, when=…).read(query)`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from compiler.language.arguments import Number, instance, number
from compiler.language.operations import FadingMemory, MemoryRead
from compiler.language.stream import Stream, given_stream
from compiler.language.types import OneHot
from compiler.language.words import select


@dataclass(frozen=True)
class Memory:
    """A stream of writes (value under key, at positions where `when` holds) and its write policy."""

    key: Stream
    value: Stream
    when: Stream | None
    policy: str
    name: str

    def __post_init__(self) -> None:
        streams = {"key": self.key, "value": self.value, **({} if self.when is None else {"when": self.when})}
        for what, stream in streams.items():
            given_stream(stream, f"{what!r} of memory.write")
        instance(self.policy, str, "policy of memory.write", "'sum', 'first', 'last' or 'once'")
        instance(self.name, str, "name of memory.write", "a text")

    def delete(self, when: Stream) -> Memory:
        """The same memory, which deletes the entry under the key of a position where `when` holds: it reads as zeros.

        Where a value is to be written at the same position, the deletion wins. A memory that keeps the last write
        holds zeros where they were written last; in one of another policy nothing can be deleted.
        """
        given_stream(when, "'when' of memory.delete")
        if self.policy != "last":
            raise ValueError(
                f"the policy of the memory is {self.policy!r}, and only from 'last' entries can be deleted"
            )
        value = self.value & ~when if isinstance(self.value.type, OneHot) else select(when, 0, self.value)
        written = None if self.when is None else self.when | when
        return Memory(self.key, value, written, self.policy, self.name)

    def read(self, query: Stream) -> Stream:
        """What the memory holds under the query, the write of the same position included; zeros if nothing."""
        inputs = (self.value, self.key, query) if self.when is None else (self.value, self.key, query, self.when)
        return Stream(MemoryRead(self.policy), inputs, self.name)


def write(key: Stream, value: Stream, when: Stream | None = None, policy: str = "sum", name: str = "memory") -> Memory:
    """A memory with one entry per alternative of the key.

    A number is no key of so many entries, but a single lane; `number.one_hot(n)` has an alternative for each value.
    policy: "sum" adds up the values written under a key (columns of an outer-product
    state), "first" keeps the first one, "last" the last one. "once" is for keys under which
    nothing is written twice: it costs as little as "sum" and keeps the type of the value and
    its bound at every length. The compiler proves it from the input language (the key is
    the one-hot of a count that rises at every write, a token of a distinct edge, …), or
    refuses the circuit with the reason; see `compiler.analysis.written_once`.
    """
    return Memory(key, value, when, policy, name)


def outer_sum(value: Stream, write: Stream, read: Stream, name: str = "memory", decay: Number | None = None) -> Stream:
    """Block level: Σ_{s≤t} decay^(t−s) · value_s · <write_s, read_t>, a state with B = write and C = read.

    decay: the factor (between 0 and 1, both excluded) that each step leaves of the state; None: A = 0, all of it.
    """
    if decay is not None:
        factor = Fraction(number(decay, "decay of outer_sum"))
        return Stream(FadingMemory(factor), (value, write, read), name)
    return Memory(write, value, None, "sum", name).read(read)
