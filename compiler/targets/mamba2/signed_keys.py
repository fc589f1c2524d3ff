"""Signed keys, where nothing linear follows the rectifier of B and C (Mamba-2).

With k = relu(k) − relu(−k) and the same for q,

    <k, q> = <[relu(k), relu(−k)], [relu(q), relu(−q)]> − <[relu(k), relu(−k)], [relu(−q), relu(q)]>,

so two memories with 2n non-negative columns each, in two blocks, do what the signed one does.

For balanced codes c = 2b − u (bits b, half of them 1; u: whether a key is present) there is
a smaller way:

    Σ_s v_s <c_s, c_q> = 4 Σ_s v_s <b_s, b_q> − p Σ_s v_s u_s u_q,

so a memory over the bits and one over the single column u do what the signed memory does
(paper A, Theorem 3, whose proof takes the σ at B to be the identity, (74)). One block holds both: the
second copy of the value is written one position after the first, under a column that is
on only then, when the columns of the bits are all 0. N = p + 1.

Free signs (Lemma 4) are balanced over their bits and the complements u − b together, which count where two codes agree:

    Σ_s v_s <c_s, c_q> = 2 Σ_s v_s (<b_s, b_q> + <u_s − b_s, u_q − b_q>) − p Σ_s v_s u_s u_q,

in one block again, of the same lanes, with N = 2p + 1.
"""

from __future__ import annotations

import numpy as np

from compiler.analysis.affine_form import affine_form
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.language.words import concatenate


def signed_memory(value: Stream, key: Stream, query: Stream) -> Stream:
    """An equal additive memory whose columns are non-negative."""
    smaller = code_memory(value, key, query)
    return _difference_of_memories(value, key, query) if smaller is None else smaller


def _difference_of_memories(value: Stream, key: Stream, query: Stream) -> Stream:
    written, asked, opposite = (concatenate(s, -1 * s).relu() for s in (key, query, -1 * query))
    same, other = (Stream(ops.MemoryRead("sum"), (value, written, read), "memory") for read in (asked, opposite))
    return same - other


def code_memory(value: Stream, key: Stream, query: Stream) -> Stream | None:
    """The memory of ±1 codes of one token, written one position before flags of a token that is no key; else None."""
    found = [_token_lanes(s) for s in (key, query, value)]
    placed = [lanes for lanes in found if lanes is not None]
    if len(placed) < len(found):
        return None
    (keys, key_lag), (queries, lag), (value_lanes, value_lag) = placed
    (values,) = affine_form(value).values()
    length, key_lanes = key.width, _bits_and_presence(key, keys)
    query_lanes = key_lanes if _same_table(key, query) else _bits_and_presence(query, queries)
    if not (
        key_lanes is not None
        and query_lanes is not None
        and lag == value_lag
        and key_lag == lag + 1
        and _flags(value_lanes)
        and bool((ops.exact_matrix(operation_of(value_lanes, ops.Embed).table @ values.T).data == 1).all())
        and _disjoint(key_lanes, value_lanes, length)
        and _disjoint(query_lanes, value_lanes, length)
    ):
        return None
    here = key_lanes[length]
    held = _any(value_lanes)
    now = value + _at(here, lag + 1) - 1
    later = _at(value, 1) + _at(here, lag + 2) - 1
    follows = _at(held, lag + 1) + _at(here, lag + 2) - 1
    written, asked = key_lanes[:length], query_lanes[:length]
    balanced = _is_balanced(key_lanes, length) and _is_balanced(query_lanes, length)
    if not balanced:
        written = concatenate(written, here - written)
        asked = concatenate(asked, query_lanes[length] - asked)
    columns = concatenate(_at(written, lag + 1), follows).relu()
    asked = concatenate(_at(asked, lag), _at(query_lanes[length], lag))
    stored = concatenate(now.relu(), later.relu())
    memory = Stream(ops.MemoryRead("sum"), (stored, columns, asked if balanced else asked.relu()), "memory")
    width = value.width
    return (4 if balanced else 2) * memory[:width] - length * memory[width:]


def _at(stream: Stream, k: int) -> Stream:
    return stream.shift(k) if k else stream


def _token_lanes(stream: Stream) -> tuple[Stream, int] | None:
    """(embedding, lag) of a stream that is linear in one embedding at one lag."""
    form = affine_form(stream)
    if len(form) != 1:
        return None
    ((atom, lag),) = form
    return (atom, lag) if atom.operation.source is Source.TOKEN else None


def _codes(stream: Stream) -> np.ndarray:
    """(letters, width), what a stream that is linear in one embedding holds for each letter."""
    ((atom, _),), (matrix,) = affine_form(stream), affine_form(stream).values()
    return (operation_of(atom, ops.Embed).table @ matrix.T).toarray()


def _same_table(one: Stream, other: Stream) -> bool:
    return one.width == other.width and bool((_codes(one) == _codes(other)).all())


def _bits_and_presence(code: Stream, lanes: Stream) -> Stream | None:
    """The bits of ±1 codes and a presence flag, as lanes: the embedding itself where it holds them; None where some
    letter has neither a code nor zeros.
    """
    table, length = _codes(code), code.width
    present = np.abs(table).sum(axis=1) > 0
    if (np.abs(table[present]) != 1).any():
        return None
    flags = np.hstack([table > 0, present[:, None]]).astype(float)
    embed = operation_of(lanes, ops.Embed)
    if lanes.width == length + 1 and (embed.table.toarray() == flags).all():
        return lanes
    return Stream(ops.Embed(embed.alphabet, ops.exact_matrix(flags), Bool(length + 1)), (), f"{code.label}.bits")


def _is_balanced(lanes: Stream, length: int) -> bool:
    """Whether of every code half of the bits are 1."""
    table = operation_of(lanes, ops.Embed).table.toarray()
    return bool((2 * table[:, :length].sum(axis=1) == length * table[:, length]).all())


def _flags(lanes: Stream) -> bool:
    return bool((operation_of(lanes, ops.Embed).table.data == 1).all())


def _any(lanes: Stream) -> Stream:
    """Whether any lane of an embedding is set: a flag of the token."""
    embed = operation_of(lanes, ops.Embed)
    table = (abs(embed.table).sum(axis=1) > 0).astype(float).reshape(-1, 1)
    return Stream(ops.Embed(embed.alphabet, ops.exact_matrix(table), Bool()), (), f"{lanes.label}.present")


def _disjoint(keys: Stream, values: Stream, length: int) -> bool:
    """Whether no token has both a code and a value."""
    present = operation_of(keys, ops.Embed).table[:, [length]].toarray().reshape(-1)
    return not (present[abs(operation_of(values, ops.Embed).table).sum(axis=1) > 0]).any()
