"""Numbers of the kernel: whole, bounded, and of no more positions than a length has."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.verify.kernel.small import only_new, searched
from verify.kernel import cases, exact
from verify.kernel.certificate import prove
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger
from verify.kernel.facts import Cell, Ranged
from verify.kernel.files import read
from verify.kernel.floats import FLOAT32, Unproved, decay
from verify.kernel.language import Edge, Language, parse
from verify.kernel.letters import letter_classes, letter_kinds, on_letters
from verify.kernel.mixers import Floats, Number
from verify.kernel.rules import ballast
from verify.kernel.tasks import keep_nth
from verify.kernel.terms import Poly, Terms, constant


def test_numbers_that_are_not_whole_are_not_cut_off(recall):
    terms = Terms(read(recall).language)
    half = Poly({((0, 0),): Fraction(1, 2)})
    with pytest.raises(Unproved, match="whole"):
        cases.Grid(terms, [half]).cells(half)
    with pytest.raises(Unproved, match="whole"):
        on_letters(terms, half, np.array([0]), np.array([0]))


def test_only_constants_are_ballast(recall):
    terms = Terms(read(recall).language)
    level = constant(1 << 40)
    varied = terms.add([(Fraction(1), level), (Fraction(1), terms.of_letter([Fraction(i) for i in range(13)]))])
    sizes = [Fraction(1 << 40)] * 2
    assert ballast(1, [level, level], [0, 1], sizes, 1e-5, FLOAT32).value == 1 << 40
    for lanes in ([level, varied], [varied, level], [level, constant(3 << 39)]):
        with pytest.raises(Unproved, match="no constant power of two"):
            ballast(1, lanes, [0, 1], sizes, 1e-5, FLOAT32)


def test_fractions_are_made_whole_by_one_number():
    """Cut off at the largest denominator 1/3 and 1/5 were equal, and a false task was proved."""
    assert exact.whole(np.array([Fraction(1, 3), Fraction(1, 5)], object))[0].tolist() == [5, 3]
    assert exact.whole(np.array([0.5, -0.75]))[0].tolist() == [2, -3]


@pytest.mark.parametrize("least", [-1074, -150, -70, 0, 30])
def test_floats_are_whole_numbers_times_a_power_of_two(least):
    """The way by exponents and the way by fractions give the same, and the least multiple."""
    rng = np.random.default_rng(least + 2000)
    numbers = np.append(np.ldexp(rng.integers(-(1 << 20), 1 << 20, 50), rng.integers(least, least + 60, 50)), 0.0)
    found, below = exact.whole(numbers)
    assert [Fraction(int(x), below) for x in found] == [Fraction(x) for x in numbers.tolist()]
    assert below == max(Fraction(x).denominator for x in numbers.tolist())


def test_columns_of_one_kind_are_equal():
    rng = np.random.default_rng(3)
    for _ in range(300):
        rows = rng.integers(-3, 3, (rng.integers(1, 5), rng.integers(1, 60))) * rng.choice([1, 10**7, 10**15])
        first, kind = exact.kinds(list(rows))
        _, expected, inverse = np.unique(rows, axis=1, return_index=True, return_inverse=True)
        assert (first == expected).all() and (kind == inverse.reshape(-1)).all()


def test_two_atoms_of_one_name_are_refused(recall, monkeypatch):
    """Atoms are told apart by the whole digest, and claims that could mean two of them are no claims."""
    terms = Terms(read(recall).language)
    monkeypatch.setattr("verify.kernel.terms.short", lambda name: name[:1])
    with pytest.raises(Unproved, match="two atoms have one name"):
        for i in range(17):
            terms.of_letter([Fraction(j * i + j) for j in range(terms.language.tokens)])
            terms.of_letter([Fraction(j * j + i * (j == 2)) for j in range(terms.language.tokens)])
    assert len({len(atom.name) for atom in terms.atoms}) == 1 and len(terms.atoms[0].name) == 64


def test_a_line_over_what_outgrows_float32_is_bounded_however_it_cancels(recall):
    """A scan may take 2^30 for 9/8 of it, where that is every position: so 2^29 − that is up to 5/4 of 2^29 in size. Of
    fewer it may take 32/15. Adding the line's two terms may round it by two parts of 2^24.
    """
    language = replace(read(recall).language, length=1 << 30)
    floats = Floats(Ledger(Terms(language), only_new))
    steps = floats.running_sum("here", Number(constant(1)))
    assert steps.outgrown is not None
    line = floats.sum("here", [(Fraction(-1), steps), (Fraction(1), Number(constant(1 << 29)))])
    assert floats.size(line) == Fraction(5, 4) * (1 << 29) / (1 - Fraction(2, 1 << 24))
    floats.terms.totals[steps.outgrown] = Ranged(1, (Cell(0, 1 << 28, 0, 1),))
    most = (1 << 29) - 1 + Fraction(17, 15) * (1 << 28)  # it is 1 at least
    assert floats.size(line) == most / (1 - Fraction(2, 1 << 24))


def test_decays_that_float32_rounds_to_few_digits_are_bounded():
    """float32 takes exp(-103.5) for 2^-149, a quarter more than it is."""
    for a_log in (-103.9, -103.5, -100.0, -88.0, -87.5, -86.0, -3.0, 4.5):
        low, high = decay(a_log)
        assert low <= Fraction(float(np.exp(np.float32(a_log)))) <= high


def _position_less(number: int) -> list[dict]:
    """The streams of relu(position − number)."""
    one = {"operation": "Constant", "attributes": {"values": [1]}, "inputs": []}
    bent = {"operation": "Relu", "attributes": {}, "inputs": [2]}
    rows = [{"shape": [1, 1], "rows": [[[0, x]]]} for x in (1, -number)]
    line = {"operation": "Linear", "attributes": {"matrices": rows}, "inputs": [1, 0]}
    return [one, {"operation": "Cumsum", "attributes": {}, "inputs": [0]}, line, bent, bent]


def test_no_length_stands_for_every_length():
    """2^512 stands for it: relu(position − 2^600) was 0, and the circuit was said to score so at every length."""
    letters = Edge(0, 0, np.ones(2, bool), False)
    lanes = lambda number, length: Circuit(
        Ledger(Terms(Language(2, 1, (letters,), length)), only_new), {"streams": _position_less(number), "output": 4}
    ).scores[0][1]
    assert not lanes(1 << 600, 1 << 52).terms and lanes(1 << 199, 1 << 512).terms
    for number in (1 << 600, 1 << 512, 1 << 200):
        with pytest.raises(Unproved, match="a promise without a length"):
            lanes(number, 1 << 512)


def test_bounds_between_numbers_and_the_length_are_refused():
    terms = Terms(Language(2, 1, (Edge(0, 0, np.ones(2, bool), False),), 1 << 512))
    position = terms.sum(constant(1))
    ((((place, _),), _),) = position.terms.items()
    held = terms.latch(terms.relu(terms.add([(Fraction(1 << 190), position), (Fraction(1), constant(1))])), constant(1))
    large = terms.latch(terms.of_letter([Fraction(0), Fraction(1)]), terms.of_letter([Fraction(1), Fraction(0)]))
    assert terms.range(held)[1] > 1 << 512 and terms.range(large) == (0, 1)
    state = terms.atoms[next(iter(large.terms))[0][0]]
    object.__setattr__(state, "range", (0, 1 << 150))
    square = terms.product(large, large)
    with pytest.raises(Unproved, match="a bound of 2\\^200"):
        terms.range(square)
    with pytest.raises(Unproved, match="a bound of 2\\^200"):
        cases.Grid(terms, [square]).cells(square)
    with pytest.raises(Unproved, match="a number of 2\\^200"):
        cases.Grid(terms, [position], [cases.Parts(place, 0, (1 << 300,))])


@pytest.mark.parametrize("length, fine", [(None, True), ((1 << 53) - 1, True), (1 << 53, False), (1 << 300, False)])
def test_a_length_that_is_said_is_below_2_to_the_53(length, fine):
    """A longer one was told as `of every length`."""
    edge = {"from": "s", "to": "s", "tokens": [[0, 1]], "distinct": False}
    promise = {"language": {"tokens": 2, "start": "s", "edges": [edge]}, "length": length}
    if fine:
        assert parse(promise).endless == (length is None)
        return
    with pytest.raises(Unproved, match="expected one below 2"):
        parse(promise)


def test_counts_that_outgrow_float32_end_where_the_bound_of_a_scan_does(recall):
    for length, fine in ((1 << 40, True), ((1 << 40) + 1, False)):
        floats = Floats(Ledger(Terms(replace(read(recall).language, length=length)), only_new))
        if fine:
            assert floats.running_sum("here", Number(constant(1))).outgrown is not None
            continue
        with pytest.raises(Unproved, match="of more than 2"):
            floats.running_sum("here", Number(constant(1)))


def test_a_position_too_far_to_go_through_is_refused(keep):
    """Before a list of as many positions is made."""
    checkpoint, claims = read(keep), [c for c in searched(keep)[1] if c[0] != "asks"]
    ledger = Ledger(Terms(checkpoint.language), iter([]).__next__)
    with pytest.raises(Unproved, match="keeps position 18014398509481984, which no sequence has"):
        keep_nth(ledger, None, {"name": "keep-nth", "n": 1 << 54}, {})  # type: ignore[arg-type]
    with pytest.raises(Unproved, match="no claim of the kind 'asks'"):
        prove(replace(checkpoint, task={"name": "keep-nth", "n": 1 << 39}), claims)


@pytest.mark.parametrize("seed", range(12))
def test_classes_of_letters_are_the_columns_of_their_numbers(seed):
    """By plain sets: of tables that are 0 nearly everywhere, and of others, at letters that a sequence holds or not."""
    rng = np.random.default_rng(seed)
    tokens = int(rng.choice([3, 70, 200]))
    held = rng.random(tokens) < rng.choice([0.2, 0.9, 1.0])
    held[0] = True
    terms = Terms(Language(tokens, 1, (Edge(0, 0, held, False),), 8))
    numbers = []
    for share in (0.01, 0.01, 0.03, 0.5, 1.0):
        table = np.where(rng.random(tokens) < share, rng.integers(-2, 3, tokens), 0).astype(np.int64)
        numbers += [table] if table.any() else []
    atoms = [0, *(terms._table(table) for table in numbers)]
    some = rng.random(tokens) < 0.5
    some[int(np.flatnonzero(held)[-1])] = True
    for letters, mask in ((held, None), (some, some)):
        for count in range(1, len(atoms) + 1):
            of = [terms.atoms[a].table for a in atoms[-count:]]
            expected = sorted({tuple(int(table[i]) for table in of) for i in np.flatnonzero(letters)})
            assert list(zip(*letter_classes(terms, atoms[-count:], mask).tolist(), strict=True)) == expected
            first, many, kind = letter_kinds(terms, atoms[-count:], mask)
            at = [tuple(int(table[i]) for table in of) for i in range(tokens)]
            assert [at[i] for i in first] == expected
            assert all(at[i] == expected[kind[i]] for i in np.flatnonzero(letters))
            assert many.tolist() == [sum(at[i] == one for i in np.flatnonzero(letters)) for one in expected]


@pytest.mark.parametrize("most", [1, 3, (1 << 11) - 1, 1 << 12, (1 << 26) - 1, 1 << 27, 1 << 40])
def test_products_are_exact_whatever_holds_them(most):
    """Floats of 32 or 64 bits, whole numbers of 64 bits, or Python's: 2^24 + 1 and 2^54 + 1 are no such floats."""
    assert exact.matmul(np.array([[most, 1]]), np.array([[most], [1]])).tolist() == [[most * most + 1]]
