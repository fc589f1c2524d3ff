"""Sequences of the paper's layout that break wrong circuits: each case is a function from a layout to its sequences.

A case outside the layout's conditions (a repeated query where each key is asked once, say) returns no sequences. Cases
may have fewer pairs or queries than random sequences of the layout, and may be shorter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from verify.tasks.mqar.paper_parts import PaperParts

Pairs = list[tuple[int, int]]


class Handmade(NamedTuple):
    """A token sequence that starts with `pairs` (key, value) pairs."""

    tokens: list[int]
    pairs: int


def paper_cases(layout: PaperParts) -> Iterator[tuple[str, list[Handmade]]]:
    """(case, sequences of one length) for each case that the layout's conditions allow."""
    for case, build in CASES.items():
        if sequences := build(layout):
            yield case, sequences


def _bound(layout: PaperParts) -> Pairs:
    """`pairs` pairs: keys ascending, values descending, both starting again when they run out."""
    return [(layout.keys[i % layout.kappa], layout.values[-1 - i % layout.vocab]) for i in range(layout.pairs)]


def _asked(layout: PaperParts, pairs: Pairs) -> list[int]:
    """The distinct keys of the pairs, as many as may be queried."""
    return list(dict.fromkeys(key for key, _ in pairs))[: layout.queries]


def _sequence(layout: PaperParts, pairs: Pairs, tail: list[int], at: int = 0) -> Handmade:
    """The pairs, then `tail` from place `at` of the second part on, noise elsewhere, `length` tokens in all."""
    context = [token for pair in pairs for token in pair]
    before = [layout.noise[0]] * at
    after = [layout.noise[0]] * (layout.length - len(context) - at - len(tail))
    return Handmade(context + before + tail + after, len(pairs))


def _other_value(layout: PaperParts, value: int) -> int:
    """A value that differs from `value`; there must be two."""
    return layout.values[0] if value != layout.values[0] else layout.values[1]


def _noise_may_rebind(layout: PaperParts) -> bool:
    """Whether noise can hold a value that differs from the bound one."""
    return layout.vocab > 1 and layout.values[0] in layout.noise


def adjacent_queries(layout: PaperParts) -> list[Handmade]:
    """All queries back to back behind the pairs, in the order of the pairs and backwards."""
    pairs = _bound(layout)
    asked = _asked(layout, pairs)
    return [_sequence(layout, pairs, order) for order in (asked, asked[::-1])] if len(asked) > 1 else []


def queries_at_the_end(layout: PaperParts) -> list[Handmade]:
    """All queries back to back up to the last position."""
    pairs = _bound(layout)
    asked = _asked(layout, pairs)
    return [_sequence(layout, pairs, order, at=layout.tail - len(asked)) for order in (asked, asked[::-1])]


def query_after_its_own_pair(layout: PaperParts) -> list[Handmade]:
    """.. k v k: the last key is asked right after its value."""
    pairs = _bound(layout)
    return [_sequence(layout, pairs, [pairs[-1][0]])]


def first_pair_at_the_last_position(layout: PaperParts) -> list[Handmade]:
    """The longest way from a write to its read."""
    pairs = _bound(layout)
    return [_sequence(layout, pairs, [pairs[0][0]], at=layout.tail - 1)]


def one_query_only(layout: PaperParts) -> list[Handmade]:
    """Each key alone, at the first and at the last place behind the pairs."""
    pairs = _bound(layout)
    keys = dict.fromkeys(key for key, _ in pairs)
    return [_sequence(layout, pairs, [key], at=at) for key in keys for at in (0, layout.tail - 1)]


def one_pair_only(layout: PaperParts) -> list[Handmade]:
    """One pair of the first or the last key and value, asked at the last position."""
    single = [[(key, value)] for key in _ends(layout.keys) for value in _ends(layout.values)]
    return [_sequence(layout, pairs, [pairs[0][0]], at=layout.length - 3) for pairs in single]


def minimum_length(layout: PaperParts) -> list[Handmade]:
    """k v k for the first and the last key and value."""
    return [Handmade([key, value, key], 1) for key in _ends(layout.keys) for value in _ends(layout.values)]


def all_values_equal(layout: PaperParts) -> list[Handmade]:
    """Every key bound to the first value, then every key to the last."""
    keys = [key for key, _ in _bound(layout)]
    bound = [[(key, value) for key in keys] for value in _ends(layout.values)]
    return [_sequence(layout, pairs, _asked(layout, pairs)) for pairs in bound]


def values_descending(layout: PaperParts) -> list[Handmade]:
    """Values in descending order, under keys in ascending and in descending order."""
    pairs = _bound(layout)
    downwards = [(layout.keys[-1 - i % layout.kappa], value) for i, (_, value) in enumerate(pairs)]
    return [_sequence(layout, bound, _asked(layout, bound)) for bound in (pairs, downwards)]


def noise_value_after_each_query(layout: PaperParts) -> list[Handmade]:
    """(query, another value) looks like a pair that rebinds the key."""
    pairs = _bound(layout)
    first = dict(reversed(pairs))
    asked = _asked(layout, pairs)[: layout.tail // 2]
    if not _noise_may_rebind(layout) or not asked:
        return []
    return [_sequence(layout, pairs, [token for key in asked for token in (key, _other_value(layout, first[key]))])]


def same_key_queried_many_times(layout: PaperParts) -> list[Handmade]:
    """One key back to back, and with another value after each query where noise holds values."""
    if not layout.repeat_queries or layout.queries < 2:
        return []
    pairs = _bound(layout)
    key, value = pairs[0]
    cases = [_sequence(layout, pairs, [key] * layout.queries)]
    if _noise_may_rebind(layout):
        rebinding = [key, _other_value(layout, value)] * layout.queries
        # Cut to the tail: the last query may lose the noise behind it, and with a short tail queries go too.
        cases.append(_sequence(layout, pairs, rebinding[: layout.tail]))
    return cases


def context_rebinds_one_key(layout: PaperParts) -> list[Handmade]:
    """One key in every pair: to different values, to one value, and in turn with another key."""
    if not layout.rebind:
        return []
    values = [value for _, value in _bound(layout)]
    key, other = _ends(layout.keys)[0], _ends(layout.keys)[-1]
    bound = [
        [(key, value) for value in values],
        [(key, values[0]) for _ in values],
        [((key, other)[i % 2], value) for i, value in enumerate(values)],
    ]
    return [_sequence(layout, pairs, _asked(layout, pairs)) for pairs in bound]


def _ends(tokens: range) -> tuple[int, ...]:
    """The first and the last token, once if they are the same."""
    return tuple(dict.fromkeys((tokens[0], tokens[-1])))


CASES = {
    "adjacent queries": adjacent_queries,
    "queries at the end": queries_at_the_end,
    "query after its own pair": query_after_its_own_pair,
    "first pair at the last position": first_pair_at_the_last_position,
    "one query only": one_query_only,
    "one pair only": one_pair_only,
    "minimum length": minimum_length,
    "all values equal": all_values_equal,
    "values descending": values_descending,
    "noise value after each query": noise_value_after_each_query,
    "same key queried many times": same_key_queried_many_times,
    "context rebinds one key": context_rebinds_one_key,
}
