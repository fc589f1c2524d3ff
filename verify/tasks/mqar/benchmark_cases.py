"""Sequences of the benchmark's layout that break wrong circuits: each case is a function from a layout to its rows.

All keep the layout's pairs, distinct keys and values, and even query slots; cases that need filler other than the
neutral token return no rows where the layout has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice

from verify.tasks.mqar.benchmark_parts import BenchmarkParts

Row = tuple[Sequence[int], Sequence[int]]


def benchmark_cases(layout: BenchmarkParts) -> Iterator[tuple[str, list[Row]]]:
    """(case, rows of one length) for each case that the layout allows."""
    for case, build in CASES.items():
        if rows := build(layout):
            yield case, rows


def _row(layout: BenchmarkParts, slots: Sequence[int], noise: Sequence[int] = (0,)) -> Row:
    """Keys ascending, values descending, keys asked in `slots`, `noise` over and over elsewhere."""
    keys, values = layout.keys[: layout.pairs], layout.values[::-1][: layout.pairs]
    return layout.assemble(keys, values, slots, list(islice(cycle(noise), layout.length - 3 * layout.pairs)))


def _early(layout: BenchmarkParts) -> range:
    """The first slots."""
    return range(layout.pairs)


def _late(layout: BenchmarkParts) -> range:
    """The last slots."""
    return range(layout.slots - layout.pairs, layout.slots)


def _has_noise(layout: BenchmarkParts) -> bool:
    """Whether filler may be any token."""
    return len(layout.noise) > 1


def earliest_queries(layout: BenchmarkParts) -> list[Row]:
    """Queries as close behind the pairs as slots allow, in the order of the pairs and backwards.

    Backwards, the first query follows its own pair.
    """
    return [_row(layout, _early(layout)), _row(layout, _early(layout)[::-1])]


def latest_queries(layout: BenchmarkParts) -> list[Row]:
    """Queries as late as slots allow, in the order of the pairs and backwards."""
    return [_row(layout, _late(layout)), _row(layout, _late(layout)[::-1])]


def last_keys_and_lowest_values(layout: BenchmarkParts) -> list[Row]:
    """The highest key ids, descending, with the lowest value ids, ascending."""
    keys, values = layout.keys[::-1][: layout.pairs], layout.values[: layout.pairs]
    return [layout.assemble(keys, values, _early(layout), [0] * (layout.length - 3 * layout.pairs))]


def minimum_length(layout: BenchmarkParts) -> list[Row]:
    """As many slots as pairs, and no more."""
    shortest = replace(layout, length=4 * layout.pairs)
    return [_row(shortest, _early(shortest)), _row(shortest, _early(shortest)[::-1])]


def one_pair_only(layout: BenchmarkParts) -> list[Row]:
    """k v, then k in the first or the last slot."""
    single = replace(layout, pairs=1)
    return [_row(single, [0]), _row(single, [single.slots - 1])]


def key_before_each_query(layout: BenchmarkParts) -> list[Row]:
    """Filler is one key everywhere: the first, or the last; queries stand between keys."""
    filler = [layout.keys[0], layout.keys[-1]] if _has_noise(layout) else []
    return [_row(layout, _late(layout), [key]) for key in filler]


def value_after_each_query(layout: BenchmarkParts) -> list[Row]:
    """Filler is one value everywhere: (query, filler) looks like a pair that rebinds the key."""
    filler = [layout.values[0], layout.values[-1]] if _has_noise(layout) else []
    return [_row(layout, _early(layout), [value]) for value in filler]


def filler_rebinds_before_the_queries(layout: BenchmarkParts) -> list[Row]:
    """Filler binds the keys again, each to another value, before they are asked for; only the first write counts."""
    if not _has_noise(layout) or layout.vocab == 1:
        return []
    values = layout.values[::-1]
    rebinding = [
        token for i, key in enumerate(layout.keys[: layout.pairs]) for token in (key, values[(i + 1) % layout.vocab])
    ]
    return [_row(layout, _late(layout), rebinding)]


def filler_repeats_the_context(layout: BenchmarkParts) -> list[Row]:
    """Filler writes the same pairs again and again."""
    if not _has_noise(layout):
        return []
    pairs = zip(layout.keys[: layout.pairs], layout.values[::-1])
    return [_row(layout, _late(layout), [token for pair in pairs for token in pair])]


CASES = {
    "earliest queries": earliest_queries,
    "latest queries": latest_queries,
    "last keys and lowest values": last_keys_and_lowest_values,
    "minimum length": minimum_length,
    "one pair only": one_pair_only,
    "key before each query": key_before_each_query,
    "value after each query": value_after_each_query,
    "filler rebinds before the queries": filler_rebinds_before_the_queries,
    "filler repeats the context": filler_repeats_the_context,
}
