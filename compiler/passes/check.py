"""Check: refuse ill-typed and non-causal circuits, with all reasons at once."""

from __future__ import annotations

from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.operations import Operation, Source
from compiler.language.stream import Stream

MOST_OPERATIONS = 50_000  # some minutes of one core


def check(circuit: Circuit) -> None:
    """Raise CompileError naming every operation whose operands do not fit it, or the number of operations alone."""
    if len(circuit.streams) > MOST_OPERATIONS:
        raise CompileError(
            [
                (
                    None,
                    f"circuit {circuit.name!r} has {len(circuit.streams):,} operations, and {MOST_OPERATIONS:,} are "
                    "compiled at most; compile its parts and join them with construct compose",
                )
            ]
        )
    reasons: list[tuple[Stream | None, str]] = []
    for stream in circuit.streams:
        reasons += [(stream, problem) for problem in stream.operation.problems(*(s.type for s in stream.inputs))]
    reasons += (
        _twice_given(circuit) + _alphabet_problems(circuit) + _language_problems(circuit) + _length_problems(circuit)
    )
    if reasons:
        raise CompileError(reasons)


def _twice_given(circuit: Circuit) -> list[tuple[Stream | None, str]]:
    """A numeric input has one stream: two of them would be given two values, and its lane holds one."""
    first: dict[Operation, Stream] = {}
    reasons: list[tuple[Stream | None, str]] = []
    for stream in circuit.streams:
        known = first.setdefault(stream.operation, stream) if stream.operation.source is Source.NUMBERS else stream
        if known is not stream:
            reasons.append((stream, f"it is the same numeric input as {known.label}; make another by numbers()"))
    return reasons


def _alphabet_problems(circuit: Circuit) -> list[tuple[Stream | None, str]]:
    """One circuit reads one token sequence, so all its embeddings share an alphabet, the language's, or it reads
    numbers.
    """
    reasons: list[tuple[Stream | None, str]] = []
    for stream in circuit.streams:
        if stream.operation.source is Source.NUMBERS and circuit.alphabet:
            reasons.append(
                (
                    stream,
                    "it is a numeric input of a circuit that reads tokens; a circuit reads tokens or numbers, not both",
                )
            )
        if stream.operation.token_alphabet not in (None, circuit.alphabet):
            reasons.append((stream, "it embeds another alphabet than the circuit's first embedding does"))
    if circuit.language and circuit.alphabet and circuit.language.alphabet != circuit.alphabet:
        reasons.append((None, "the input language is over another alphabet than the circuit"))
    return reasons


def _language_problems(circuit: Circuit) -> list[tuple[Stream | None, str]]:
    """A promise over no sequence at all is a slip, not a promise."""
    language = circuit.language
    if language is None or any(edge.source == language.start for edge in language.edges):
        return []
    start, states = repr(language.start), str(sorted({edge.source for edge in language.edges}))
    return [(None, f"no edge leaves the start state {start:.60} of its input language; edges leave {states:.60}")]


def _length_problems(circuit: Circuit) -> list[tuple[Stream | None, str]]:
    """What a running sum can reach depends on how long a sequence can be."""
    if circuit.max_length >= 1:
        return []
    return [(None, "it promises no length; give it an input language, or, over numbers, a length of at least 1")]
