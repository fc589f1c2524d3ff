"""What depends on the numbers of domains alone is found once, and is what it would be otherwise."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from benchmarks.mixtures import mixed, mixture, remembered
from compiler.analysis.domains import Domains, linear
from compiler.driver import compile
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream, constant
from compiler.lattice.domain import Domain, up
from compiler.lattice.matrix_sums import MatrixSums, MatrixSumsCache, added, least_units

ALPHABET = Alphabet.of("a", "b", "c")


@pytest.mark.parametrize("add", [mixed, remembered], ids=lambda add: add.__name__)
def test_equal_sums_of_equal_domains_are_formed_once(add, monkeypatch) -> None:
    formed, asked = [], []
    original, domain = linear._summed, linear.linear_domain
    monkeypatch.setattr(linear, "_summed", lambda *given: (formed.append(1), original(*given))[1])
    monkeypatch.setattr("compiler.analysis.domains.known.linear_domain", lambda *g: (asked.append(1), domain(*g))[1])
    compile(mixture(add, 400), "mamba")
    assert len(formed) < 0.5 * len(asked)


def test_domains_that_say_the_same_are_still_told_apart() -> None:
    """One operation of streams with the same bounds may give what is bounded otherwise: "the third a" is on once."""
    tokens, both = Tokens(ALPHABET), ops.And()
    a, b = tokens.is_in(["a"]), tokens.is_in(["b"])
    third_a, third_b = a.cumsum() == 3, b.cumsum() == 3
    domains = Domains(InputLanguage.everything(ALPHABET, 9), 9)
    assert domains.of(third_a).alike == domains.of(third_b).alike
    assert [domains.of(Stream(both, (third, a))).total for third in (third_a, third_b)] == [1, 9]


def _domain(width: int, rng: np.random.Generator) -> Domain:
    low, high = -rng.integers(0, 5, width).astype(float), rng.integers(0, 5, width).astype(float)
    totals = 7 * np.maximum(-low, high)
    return Domain(np.ones(width), low, high, Fraction(int(np.maximum(-low, high).sum())), totals)


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_few_rows_among_many_are_those_of_the_rows_alone(seed) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(-3, 4, (4, 3)).astype(float)
    dense[(dense == 0).all(axis=1), 0] = 1
    at = np.sort(rng.choice(40, 4, replace=False))
    spread = np.zeros((40, 3))
    spread[at] = dense
    domain = _domain(3, rng)
    alone, among = (MatrixSums(sparse.csr_array(m)).of(domain, up(domain.l1)) for m in (dense, spread))
    assert isinstance(among.at, np.ndarray) and among.at.tolist() == at.tolist()
    for field in fields(alone):
        if field.name != "at":
            assert np.array_equal(getattr(alone, field.name), getattr(among, field.name))
    whole = added([among, among], lambda part: part.high, 40)
    assert np.array_equal(whole[at], 2 * alone.high) and not np.delete(whole, at).any()
    units = least_units([among], 40)
    assert np.array_equal(units[at], alone.units) and np.isinf(np.delete(units, at)).all()


def test_matrices_are_equal_exactly_where_their_entries_are() -> None:
    """Also those of which most rows are empty, whatever the width of their indices."""
    one = sparse.csr_array(([1.0], ([7], [0])), shape=(20, 2))
    same = sparse.csr_array(
        (one.data.copy(), one.indices.astype(np.int64), one.indptr.astype(np.int64)), shape=one.shape
    )
    others = [
        sparse.csr_array(([1.0], ([8], [0])), shape=(20, 2)),
        sparse.csr_array(([1.0], ([7], [1])), shape=(20, 2)),
        sparse.csr_array(([2.0], ([7], [0])), shape=(20, 2)),
        sparse.csr_array(([1.0], ([7], [0])), shape=(21, 2)),
        sparse.csr_array(([1.0, 1.0], ([7, 7], [0, 1])), shape=(20, 2)),
        sparse.csr_array(([1.0, 1.0], ([7, 8], [0, 1])), shape=(20, 2)),
    ]
    sums = MatrixSumsCache()
    assert sums(one) is sums(same)
    assert len({id(sums(matrix)) for matrix in (one, *others)}) == 7


def test_a_rectifier_may_read_no_multiple_of_a_constant() -> None:
    """A matrix without entries has no rows at all."""
    count = Tokens(ALPHABET).is_in(["a"]).cumsum()
    rectified = Stream(ops.Linear((ops.scaled_identity(1), ops.scaled_identity(1, 0.0))), (count, constant(5))).relu()
    domains = Domains(InputLanguage.everything(ALPHABET, 9), 9)
    assert (domains.of(rectified).lo, domains.of(rectified).hi) == (0, 9)
