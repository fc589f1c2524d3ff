"""Rows get the number of equal rows only, in one batch and across batches."""

from __future__ import annotations

import numpy as np
import pytest

from verify.distinct import Numbered, distinct


def drawn(seed: int, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Two parts of rows of few different numbers, 0 and −0 among them."""
    draw = np.random.default_rng(seed)
    numbers = np.array([0.0, -0.0, 1.0, 2.0])
    return numbers[draw.integers(0, 4, (count, 2))].astype(np.float32), numbers[draw.integers(0, 4, (count, 2))]


def bits(parts: tuple[np.ndarray, ...], i: int) -> bytes:
    return b"".join(part[i].tobytes() for part in parts)


def met(numbered: Numbered, batches: int) -> tuple[dict[int, bytes], int]:
    """What each number stands for, and how many there are; every batch must agree with those before it."""
    stands_for: dict[int, bytes] = {}
    for seed in range(batches):
        parts = drawn(seed)
        row, known, new = numbered.of(*parts)
        stands_for = {number: row for number, row in stands_for.items() if number < known}
        assert len(stands_for) == known and row.max() < known + len(new)
        stands_for |= {known + i: bits(parts, int(at)) for i, at in enumerate(new)}
        assert [stands_for[int(number)] for number in row] == [bits(parts, i) for i in range(len(row))]
    return stands_for, len(set(stands_for.values()))


def test_equal_rows_have_one_number_in_all_batches() -> None:
    stands_for, different = met(Numbered(), 5)
    assert len(stands_for) == different > 250


@pytest.mark.parametrize("limit", ["_ROWS", "_WORDS", "_IN_CACHE", "_BITS"])
def test_rows_that_are_forgotten_or_pushed_out_get_new_numbers(monkeypatch, limit: str) -> None:
    monkeypatch.setattr(f"verify.distinct.{limit}", {"_ROWS": 100, "_WORDS": 600, "_IN_CACHE": 50, "_BITS": 4}[limit])
    stands_for, different = met(Numbered(), 5)
    assert different <= len(stands_for)


def test_rows_whose_hashes_collide_stand_for_themselves(monkeypatch) -> None:
    monkeypatch.setattr("verify.distinct._hashes", lambda words: np.zeros(len(words), dtype=np.uint64))
    met(Numbered(), 3)
    first, row = distinct(np.arange(12, dtype=np.uint32).reshape(6, 2), np.zeros(6, np.uint64))
    assert (first == np.arange(6)).all() and (row == np.arange(6)).all()


def test_rows_of_another_width_are_other_rows() -> None:
    numbered = Numbered()
    numbered.of(np.zeros((3, 2), np.float32))
    row, known, new = numbered.of(np.zeros((4, 3), np.float32))
    assert (row.tolist(), known, new.tolist()) == ([0, 0, 0, 0], 0, [0])
