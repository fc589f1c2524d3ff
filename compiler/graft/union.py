"""Several circuits as one: the union of their alphabets, shared lanes, one head.

Each circuit reads the tokens of its own alphabet; any other token is to it a position that holds none of its tokens,
as padding is. Letters of one name are one token, which every circuit that has it reads. The scores are

    score(v) = Σ_i score_i(v)/u_i + W · [some circuit reads both v and the present token] − W · [that is the guest],

where circuits that do not read the present token say nothing of letters that they share (`shared_letters`). u_i is the
quantum of circuit i's scores, a power of two: divided by it they are whole numbers, so that circuits whose scores
differ in scale fit into one head. W is more than what two sums of scores can differ by, on the union's language. So
after a token the letters of the circuits that read it are ahead of all others, and where one circuit alone reads it,
its letters stand in its own order. The guest is one more token that no circuit reads: a host model's own text
(`compiler.graft.direct_sum`); it scores 0, and after it every letter is below 0, or at 0 where it is to be silent.

The input language is the product of the languages: a token leads every circuit that has it one edge further and leaves
the others where they are. So all sequences are covered whose part that circuit i reads lies in its language, however
the parts are interleaved. An edge that takes each token once does so in every state of the others, so the product may
hold a few sequences more; the promise is then for these as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from math import floor

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.analysis.domains.claims import check_claims
from compiler.graft.shared_letters import at_own_tokens
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.arguments import instance
from compiler.language.circuit import Circuit
from compiler.language.graph import operation_of
from compiler.language.input_language import Edge, InputLanguage
from compiler.language.lanes import place_matrix
from compiler.language.markdown import one_line
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.types import Logits

MOST_STATES = 4096  # of the product of the languages


def union(
    *circuits: Circuit, name: str | None = None, guest: str | None = None, silent: Collection[str] = ()
) -> Circuit:
    """One circuit that holds all of these: tokens of each, its answers after each.

    name: of the result, by default the names with "+" between; guest: a token that no circuit reads; silent: letters
    that score exactly 0 after the guest (one block more), where others are negative.

    Raises ValueError for circuits over numbers or of different ends, for a guest that is a letter of one, for scores
    without a bound, and where the product of the languages has more than 4096 states.
    """
    for circuit in circuits:
        _over_tokens(circuit)
    if not circuits:
        raise ValueError("union was given no circuit, and at least one is needed")
    alphabet = _alphabet(circuits, guest)
    language = _language(circuits, alphabet, guest)
    tokens = Tokens(alphabet)
    scores = _whole_scores(alphabet, circuits, language)
    bonus = float(_spread(scores, language))
    terms = [(scores, ops.scaled_identity(alphabet.size))]
    if guest is not None:
        after = tokens.is_in(guest, name="guest")
        terms = [(_gated(scores, after) if silent else scores, terms[0][1])]
        loud = [t for t in alphabet.tokens if t != guest and t not in silent]
        terms.append((after, _column(alphabet, loud, -bonus)))
    for readers, own in _audiences(circuits, alphabet).items():
        heard = dict.fromkeys(token for i in readers for token in circuits[i].token_alphabet.tokens)
        if readers and len(heard) < alphabet.size:  # else all letters are ahead alike
            flag = tokens.is_in(own, name="_and_".join(f"reads_{circuits[i].name}" for i in readers))
            terms.append((flag, _column(alphabet, heard, bonus)))
    name = name or "+".join(circuit.name for circuit in circuits)
    output = _scores(alphabet, [(matrix, stream) for stream, matrix in terms])
    output.origin = circuits[0].output.origin
    return Circuit(name, output, language, end=_end(circuits))


def _over_tokens(circuit: object) -> None:
    instance(circuit, Circuit, "what union takes", "a Circuit")
    assert isinstance(circuit, Circuit)
    if circuit.token_language.alphabet.size != circuit.output.width:
        raise ValueError(
            f"circuit {circuit.name!r} gives {circuit.output.width} numbers for {circuit.token_alphabet.size} tokens, "
            "and a score for each token is needed; read it out with output.readout…"
        )


def _audiences(circuits: Sequence[Circuit], alphabet: Alphabet) -> dict[tuple[int, ...], list[str]]:
    """The tokens that are read by the same circuits, by the numbers of these."""
    known = [frozenset(circuit.token_alphabet.tokens) for circuit in circuits]
    found: dict[tuple[int, ...], list[str]] = {}
    for token in alphabet.tokens:
        found.setdefault(tuple(i for i, own in enumerate(known) if token in own), []).append(token)
    return found


def read_by_several(circuits: Sequence[Circuit]) -> dict[tuple[int, ...], list[str]]:
    """The tokens that more than one circuit reads, by the numbers of these. After such a token their scores are added,
    so the letter that leads need be no circuit's own answer.
    """
    found = _audiences(circuits, _alphabet(circuits, None))
    return {readers: tokens for readers, tokens in found.items() if len(readers) > 1}


def _alphabet(circuits: Sequence[Circuit], guest: str | None) -> Alphabet:
    """Every letter once, in the order of the circuits, then the guest. Groups keep to the circuits they are of."""
    letters = dict.fromkeys(token for circuit in circuits for token in circuit.token_alphabet.tokens)
    if guest in letters:
        raise ValueError(f"the guest is {guest!r}, which is a letter of a circuit; call it something else")
    return Alphabet((*letters, *([guest] if guest is not None else [])))


def _end(circuits: Sequence[Circuit]) -> str | None:
    ends = sorted({circuit.end for circuit in circuits if circuit.end is not None})
    if len(ends) > 1:
        raise ValueError(
            f"the circuits end a generation with {' and '.join(map(repr, ends))}, and a model has one such token; "
            "give all of them the same end, or none"
        )
    return ends[0] if ends else None


# The language ---------------------------------------------------------------------------------------


def _language(circuits: Sequence[Circuit], alphabet: Alphabet, guest: str | None) -> InputLanguage:
    """The product of the languages, from the states that can be reached."""
    parts = [circuit.token_language for circuit in circuits]
    ids = [np.array([alphabet.index(t) for t in part.alphabet.tokens]) for part in parts]
    readers = [frozenset(int(i) for i in own) for own in ids]
    moves = [_moves(part, own) for part, own in zip(parts, ids, strict=True)]
    start = tuple(part.start for part in parts)
    edges: dict[Edge, None] = {}
    pending, seen = [start], {start}
    while pending:
        states = pending.pop()
        for tokens, target, distinct in _steps(states, moves, readers, alphabet.size):
            edges[Edge("|".join(states), "|".join(target), tokens, distinct)] = None
            if target not in seen:
                if len(seen) >= MOST_STATES:
                    raise ValueError(f"the product of the input languages has more than {MOST_STATES} states")
                seen.add(target)
                pending.append(target)
    length = min(part.max_length for part in parts)
    told = " interleaved with ".join(part.description for part in parts)
    between = f", with {guest} anywhere between" if guest is not None else ""
    return InputLanguage(alphabet, "|".join(start), tuple(edges), length, told + between)


_Move = tuple[frozenset[int], str, bool]


def _moves(language: InputLanguage, ids: np.ndarray) -> dict[str, list[_Move]]:
    """(tokens of the union, next state, distinct) by state."""
    found: dict[str, list[_Move]] = {}
    for edge in language.edges:
        tokens = frozenset(int(ids[token]) for token in edge.tokens)
        found.setdefault(edge.source, []).append((tokens, edge.target, edge.distinct))
    return found


def _steps(states: tuple[str, ...], moves: list[dict[str, list[_Move]]], readers: list[frozenset[int]], size: int):
    """(tokens, next states, distinct) of the product: who reads a token moves by one of its edges, the rest stays."""
    partial: list[tuple[frozenset[int], tuple[str, ...], bool]] = [(frozenset(range(size)), (), False)]
    for state, own, read in zip(states, moves, readers, strict=True):
        further = []
        for tokens, target, distinct in partial:
            for taken, after, once in ((tokens - read, state, False), *_taken(tokens, own.get(state, []))):
                if taken:
                    further.append((taken, (*target, after), distinct or once))
        partial = further
    return partial


def _taken(tokens: frozenset[int], moves: list[_Move]):
    return [(tokens & wanted, target, distinct) for wanted, target, distinct in moves]


# The scores -----------------------------------------------------------------------------------------


def _placed(circuit: Circuit, alphabet: Alphabet) -> Stream:
    """The circuit's output over the union's tokens; what it reads of tokens that are not its own is zeros."""
    kept: dict[Stream, Stream] = {}
    place = _rows(circuit, alphabet)
    for stream in circuit.streams:
        inputs = [kept[source] for source in stream.inputs]
        new = Stream(stream.operation.over(alphabet, place), inputs, stream.name)
        new.origin = stream.origin
        kept[stream] = new
    return kept[circuit.output]


def _rows(circuit: Circuit, alphabet: Alphabet) -> sparse.csr_array:
    """(union × circuit): each of its scores at the token's place in the union."""
    ids = np.array([alphabet.index(token) for token in circuit.token_alphabet.tokens])
    return place_matrix(ids, alphabet.size)


def _gated(scores: Stream, guest: Stream) -> Stream:
    """The scores, and 0 after the guest."""
    return Stream(ops.Linear(operation_of(scores, ops.Linear).matrices), scores.inputs, "scores") * ~guest


def _column(alphabet: Alphabet, tokens: Iterable[str], value: float) -> sparse.csr_array:
    """(union × 1): the value on each of these tokens."""
    column = np.zeros((alphabet.size, 1))
    column[[alphabet.index(token) for token in tokens]] = value
    return ops.exact_matrix(column)


def _scores(alphabet: Alphabet, terms: Sequence[tuple[sparse.csr_array, Stream]]) -> Stream:
    return Stream(
        ops.Linear(tuple(ops.exact_matrix(matrix) for matrix, _ in terms), Logits(alphabet.size)),
        [stream for _, stream in terms],
        "logits",
    )


def _whole_scores(alphabet: Alphabet, circuits: Sequence[Circuit], language: InputLanguage) -> Stream:
    """The sum of the circuits' scores, each in its own quanta; of shared letters only who reads the token."""
    placed = [_placed(circuit, alphabet) for circuit in circuits]
    terms = [(_rows(circuit, alphabet), scores) for circuit, scores in zip(circuits, placed, strict=True)]
    domains = _domains(_scores(alphabet, terms), language)
    found = []
    for circuit, (rows, scores) in zip(circuits, terms, strict=True):
        in_steps = rows / (float(domains.of(scores).step) or 1.0)
        found += _heard(circuit, circuits, alphabet, in_steps, scores)
    return _scores(alphabet, found)


def _heard(
    circuit: Circuit, circuits: Sequence[Circuit], alphabet: Alphabet, rows: sparse.csr_array, scores: Stream
) -> list[tuple[sparse.csr_array, Stream]]:
    """What one circuit scores, without what it would say of letters of another where only that one reads the token."""
    own = set(circuit.token_alphabet.tokens)
    others = [other.token_alphabet.tokens for other in circuits if not own.issuperset(other.token_alphabet.tokens)]
    is_shared = np.array([token in own and any(token in other for other in others) for token in alphabet.tokens])
    shared = sparse.csr_array(sparse.diags_array(is_shared.astype(float)) @ rows)
    reads = Tokens(alphabet).is_in(circuit.token_alphabet.tokens, name=f"reads_{one_line(circuit.name)}")
    terms = at_own_tokens(scores, shared, reads)
    return [(rows, scores)] if terms is None else [(sparse.csr_array(rows - shared), scores), *terms]


def _spread(scores: Stream, language: InputLanguage) -> Fraction:
    """More than the difference of any two scores, and of one and 0, over all positions of all sequences."""
    domain = _domains(scores, language).of(scores)
    spread = max(domain.hi, Fraction(0)) - min(domain.lo, Fraction(0))
    return Fraction(floor(spread) + 1)


def _domains(scores: Stream, language: InputLanguage) -> Domains:
    """What the streams behind the scores can hold; ValueError where a score has no bound."""
    domains = Domains(language, language.max_length)
    check_claims(Circuit("scores", scores, language).streams, domains)
    if not np.isfinite(float(domains.of(scores).bound)):
        raise ValueError("the scores of a circuit have no bound, and one is needed to tell which circuit answers")
    return domains
