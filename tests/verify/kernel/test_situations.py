"""Situations and equal atoms: held against all sequences of small languages, gone through one by one."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from verify.kernel import situations
from verify.kernel.cases import Apart, Cases, Grid, Parts
from verify.kernel.claims import Ledger, Refused, Unused
from verify.kernel.facts import Ranged, closer, ends
from verify.kernel.floats import Unproved
from verify.kernel.language import Edge, Language
from verify.kernel.machines import Machine, beside
from verify.kernel.meaning import _uncancelled
from verify.kernel.mixers import Floats, Number
from verify.kernel.rules import answered, same
from verify.kernel.situations import Situations
from verify.kernel.terms import Poly, Terms, constant, short

LETTERS, LENGTH, ONE = 3, 5, Fraction(1)


def language(rng: random.Random) -> Language:
    edges = []
    for source, target in [(0, 1), (1, 0), (1, 1), (1, 2), (2, 2)][: rng.randint(2, 5)]:
        letters = np.array([rng.random() < 0.7 for _ in range(LETTERS)])
        letters[rng.randrange(LETTERS)] = True
        edges.append(Edge(source, target, letters, rng.random() < 0.3))
    return Language(LETTERS, 3, tuple(edges), LENGTH)


def sequences(language: Language) -> set[tuple[int, ...]]:
    """All of the language, none of them empty."""
    found, paths = set(), [(0, (), ())]
    while paths:
        state, letters, taken = paths.pop()
        for i, e in enumerate(language.edges):
            for a in np.flatnonzero(e.letters).tolist() if e.source == state and len(letters) < LENGTH else ():
                if not (e.distinct and (i, a) in taken):
                    found.add((*letters, a))
                    paths.append((e.target, (*letters, a), (*taken, (i, a))))
    return found


def value(terms: Terms, p: Poly, letters: tuple[int, ...], t: int) -> Fraction:
    """p at position t (1 is the first), from what terms mean and nothing else."""
    total = Fraction(0)
    for m, c in p.terms.items():
        for a, lag in m:
            c = c * (number(terms, a, letters, t - lag) if t > lag else 0)
        total += c
    return total


def number(terms: Terms, a: int, letters: tuple[int, ...], t: int) -> Fraction:
    atom = terms.atoms[a]
    if atom.kind == "table":
        return Fraction(int(atom.table[letters[t - 1]]))
    if atom.kind == "relu":
        return max(value(terms, atom.of, letters, t), Fraction(0))
    opened = [s for s in range(1, t + 1) if atom.kind != "sum" and value(terms, atom.flag, letters, s) >= 1]
    if atom.kind == "latch":
        return value(terms, atom.of, letters, opened[-1]) if opened else Fraction(0)
    return sum((value(terms, atom.of, letters, s) for s in range((opened or [0])[-1] + 1, t + 1)), Fraction(0))


def drawn(terms: Terms, rng: random.Random) -> list[Poly]:
    """Polynomials of each kind of atoms, upon each other."""
    table = lambda low, high: terms.of_letter([Fraction(rng.randint(low, high)) for _ in range(LETTERS)])
    flag = terms.of_letter([Fraction(rng.randint(0, 1)) for _ in range(LETTERS)])
    found = [table(-2, 2), table(0, 3)]
    for _ in range(6):
        p, q = rng.choice(found), rng.choice(found)
        mixed = terms.add([(Fraction(rng.randint(-2, 2)), p), (ONE, terms.earlier(q, rng.randint(0, 2)))])
        mixed = terms.add([(ONE, mixed), (Fraction(rng.randint(-1, 1)), constant(1))])
        make = rng.choice(
            [terms.relu, terms.relu, terms.sum, lambda x: terms.latch(x, flag), terms.product, terms.count]
        )
        if make in (terms.product, terms.count):
            found.append(make(mixed, flag if make == terms.count else q))
        else:
            found.append(make(mixed))
        if rng.random() < 0.3:  # a difference of two relus of nearly the same
            near = terms.relu(terms.add([(ONE, mixed), (Fraction(rng.choice([-2, -1, 1, 2])), constant(1))]))
            found.append(
                terms.add([(Fraction(rng.choice([-1, 1])), near), (Fraction(rng.choice([-1, 1])), terms.relu(mixed))])
            )
    return [p for p in found if not p.constant]


def states(terms: Terms, p: Poly, found: set[int] | None = None) -> set[int]:
    found = set() if found is None else found
    for m in p.terms:
        for a, _ in m:
            atom = terms.atoms[a]
            if a not in found and atom.kind != "table":
                found.add(a)
                states(terms, atom.of, found)
                states(terms, atom.flag, found)
    return {a for a in found if terms.atoms[a].kind != "relu"}


def holds(cases: Cases, q: Poly, seen: set[Fraction]) -> set[int]:
    """Asserts that each number is in one of the cells; the numbers of cells that hold one each."""
    cells = cases.cells(q)
    for x in seen:
        assert any(c.lo <= x <= c.hi and (x == c.rest if not c.step else (x - c.rest) % c.step == 0) for c in cells), x
    return {c.lo for c in cells if c.lo == c.hi}


@pytest.mark.parametrize("rounds", [situations._EXACT_ROUNDS, 0, 2])
@pytest.mark.parametrize("seed", range(12))
def test_every_position_of_every_sequence_is_at_a_situation(seed, rounds, monkeypatch):
    """All states followed give no number that is never there, if letters may come again. rounds: how many letters
    come before intervals that grow become the ranges of their states.
    """
    monkeypatch.setattr(situations, "_EXACT_ROUNDS", rounds)
    rng = random.Random(seed)
    terms = Terms(language(rng))
    words = sequences(terms.language)
    exact = 0
    for p in drawn(terms, rng):
        q = p.primitive[1]
        seen = {value(terms, q, letters, len(letters)) for letters in words}
        mine = states(terms, q)
        bounded = {a for a in mine if rng.random() < 0.5}
        for ways in ((mine, set()), (set(), mine), (mine - bounded, bounded), (set(), set())):
            try:
                points = holds(Situations(terms, [q], *ways), q, seen)
            except Unproved as reason:
                assert "moves by what is not" in str(reason)
                continue
            if ways == (mine, set()) and not any(e.distinct for e in terms.language.edges):
                assert points == seen
                exact += 1
        holds(Grid(terms, [q]), q, seen)
    assert exact or any(e.distinct for e in terms.language.edges)


def two_letters() -> Terms:
    """Up and down by turns, 2^30 letters."""
    up, down = np.array([True, False]), np.array([False, True])
    return Terms(Language(2, 2, (Edge(0, 1, up, False), Edge(1, 0, down, False)), 1 << 30))


def test_a_range_along_paths_is_no_total():
    """Up and down by turns: the sum is 0 or 1, and what it adds up is not exact in any order for that."""
    terms = two_letters()
    step = terms.of_letter([ONE, -ONE])
    p = terms.sum(step)
    ((((a, _),), _),) = p.terms.items()
    cells = Situations(terms, [p], [a], []).cells(p)
    assert {c.lo for c in cells} == {0, 1} and all(c.lo == c.hi for c in cells)
    terms.ranged[p.key] = Ranged(1, cells)
    assert terms.range(p) == (0, 1) and terms.total(a) == 1 << 30
    with pytest.raises(Unproved, match="beyond what float32 adds exactly"):
        Floats(Ledger(terms, lambda place, subjects: None)).running_sum("here", Number(step))


def test_a_flag_that_is_not_known_opens_or_does_not():
    """A latch under a flag that reads a bounded state holds what it held, or what it stores."""
    rng = random.Random(3)
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    table = lambda *numbers: terms.of_letter([Fraction(n) for n in numbers])
    opened = terms.latch(table(0, 1, 1), table(0, 1, 0))
    both = terms.latch(table(1, 0, 1), table(1, 0, 1))
    for p in (terms.latch(table(1, 2, 3), both), terms.count(table(1, 1, 2), both), terms.product(opened, both)):
        q = p.primitive[1]
        seen = {value(terms, q, letters, len(letters)) for letters in sequences(terms.language)}
        mine = states(terms, q)
        for bounded in (mine, {rng.choice(sorted(mine))}):
            try:
                holds(Situations(terms, [q], mine - bounded, bounded), q, seen)
            except Unproved as reason:
                assert "moves by what is not" in str(reason)


def test_what_grows_without_end_is_not_followed(monkeypatch):
    monkeypatch.setattr("verify.kernel.situations._MOST_ROUNDS", 1 << 7)
    terms = two_letters()
    p = terms.sum(constant(1))
    ((((a, _),), _),) = p.terms.items()
    for ways in (([a], []), ([], [a])):
        with pytest.raises(Unproved, match="still after|situations and more"):
            Situations(terms, [p], *ways)


@pytest.mark.parametrize("ways", [([], [0]), ([5], []), ([1, 1], []), ([1], [1])])
def test_only_states_that_are_read_are_followed(ways):
    terms = two_letters()
    p = terms.sum(terms.of_letter([ONE, -ONE]))
    assert [atom.kind for atom in terms.atoms] == ["table", "table", "sum"]
    place = {0: 1, 5: 2, 1: 2}
    followed, bounded = ([place[a] for a in found] for found in ways)
    other = terms.of_letter([ONE, ONE * 2])
    with pytest.raises(Unproved, match="no state|followed twice"):
        Situations(terms, [other if ways == ([5], []) else p], followed, bounded)


def test_only_equal_atoms_are_the_same():
    terms = two_letters()
    one, two = terms.of_letter([ONE, 0 * ONE]), terms.of_letter([0 * ONE, ONE])
    atom = lambda p: next(iter(p.terms))[0][0]
    position = terms.sum(constant(1))
    less = lambda k: terms.add([(ONE, position), (Fraction(-k), constant(1))])
    first, second = (atom(terms.relu(less(k))) for k in (3, 4))
    sums = [atom(terms.sum(p)) for p in (one, two)]
    latches = [atom(terms.latch(terms.earlier(one, 1), flag)) for flag in (one, two)]
    grid = lambda p: Grid(terms, [p])
    for pair in ((second, first), (first, second), (first, first), (sums[1], sums[0]), (latches[1], latches[0])):
        with pytest.raises(Unproved, match="not shown to be the same|not of one kind"):
            same(terms, 1, *pair, 1, grid)
    with pytest.raises(Unproved, match="not of one kind"):
        same(terms, 1, latches[0], sums[0], 1, grid)


def test_a_state_may_be_minus_another_one_and_a_relu_not():
    """The letters alternate from the first one on, so [one letter was there] less both letters is minus the second."""
    terms = two_letters()
    second = terms.of_letter([0 * ONE, ONE])
    stored = [(ONE, terms.earlier(constant(1), 1)), (-2 * ONE, second), (-ONE, terms.earlier(second, 1))]
    minus = terms.add(stored)
    always = lambda p: Situations(terms, [p], [], [])
    for make in (terms.sum, lambda p: terms.latch(p, second)):
        (((two, _),), _), (((one, _),), c) = (next(iter(make(p).terms.items())) for p in (second, minus))
        assert terms.atoms[one].kind == terms.atoms[two].kind != "relu" and c == 1
        for sign in (1, 0, 2, -2):
            with pytest.raises(Unproved, match="not shown to be the same"):
                same(terms, 1, one, two, sign, always)
        terms.equal[one] = same(terms, 1, one, two, -1, always)
        assert terms.replaced(Poly({((one, 3),): ONE})).terms == {((two, 3),): -ONE}
    bent = [terms.relu(terms.add([(ONE, p), (-ONE, terms.earlier(second, 1))])) for p in (second, minus)]
    two, one = (next(iter(p.terms))[0][0] for p in bent)
    with pytest.raises(Unproved, match="a relu that is minus"):
        same(terms, 1, one, two, -1, always)


def test_what_no_path_leads_to_is_0():
    """The letters alternate, so the last two are never both the first one: a grid does not see it."""
    terms = two_letters()
    one = terms.of_letter([ONE, 0 * ONE])
    both = [(ONE, terms.earlier(one, 1)), (ONE, terms.earlier(one, 2)), (-ONE, constant(1))]
    ((((a, _),), _),) = terms.relu(terms.add(both)).terms.items()
    with pytest.raises(Unproved, match="not shown to be the same"):
        same(terms, 1, a, None, 1, lambda p: Grid(terms, [p]))
    assert same(terms, 1, a, None, 1, lambda p: Situations(terms, [p], [], [])).other is None


def test_closer_cells_are_within_and_say_more():
    terms = two_letters()
    wide = Grid(terms, [terms.sum(constant(1))]).cells(terms.sum(constant(1)))
    assert not closer(wide, wide)
    lows = tuple(cell._replace(hi=cell.lo) for cell in wide)
    assert closer(lows, wide) and not closer(wide, lows)


def test_two_relus_are_apart_only_where_both_are_straight():
    """x is -3, 1 or 3. Where it is at least 0, relu(x) is x, and relu(x − 2) is bent: they differ by 0 to 2. Where x is
    at most 2, relu(x − 2) is 0 and relu(x) may be more, itself bent or not.
    """
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    x = terms.latch(terms.of_letter([Fraction(n) for n in (-3, 1, 3)]), terms.of_letter([ONE, ONE, 0 * ONE]))
    ((((a, _),), _),) = x.terms.items()
    less = lambda p: terms.relu(terms.add([(ONE, p), (Fraction(-2), constant(1))]))
    one = terms.relu(x)
    for two in (less(x), less(one)):
        for first, second in ((one, two), (two, one)):
            p = Poly({**first.terms, **{m: -c for m, c in second.terms.items()}})
            seen = {value(terms, p, letters, len(letters)) for letters in sequences(terms.language)}
            assert ONE in seen or -ONE in seen
            for cuts in ((0,), (0, 3), (3,)):
                holds(Grid(terms, [p], [Parts(a, 0, cuts)]), p, seen)


def test_a_relu_that_hardly_bends_is_seen_beside_its_line():
    """n is a count, at least 0. relu(n − 1) is n − 1 and at most 1 more, so n − relu(n − 1) is 0 or 1."""
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    n = terms.sum(terms.of_letter([ONE, 0 * ONE, 0 * ONE]))
    minus = lambda k: terms.relu(terms.add([(ONE, n), (Fraction(-k), constant(1))]))
    for k in (1, 2):
        p = terms.add([(ONE, n), (-ONE, minus(k))])
        seen = {value(terms, p, letters, len(letters)) for letters in sequences(terms.language)}
        grid = Grid(terms, [p])
        holds(grid, p, seen)
        assert ends(grid.cells(p)) == (0, k) == (min(seen), max(seen))


def test_a_relu_that_is_0_in_a_case_does_not_make_another_one_0():
    """n is at most 5, and t 0 or 1. Where t is 0, relu(n + 2t − 5) is 0, and relu(n + 2t − 4) is not."""
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    n, t = terms.sum(constant(1)), terms.of_letter([ONE, 0 * ONE, 0 * ONE])
    bent = lambda k: terms.relu(terms.add([(ONE, n), (Fraction(2), t), (Fraction(-k), constant(1))]))
    one, two = bent(4), bent(5)
    for first, second in ((one, two), (two, one)):
        p = Poly({**first.terms, **{m: -c for m, c in second.terms.items()}})
        p = terms.add([(ONE, p), (Fraction(9), t)])  # so that numbers where t is 0 are no numbers where it is 1
        seen = {value(terms, p, letters, len(letters)) for letters in sequences(terms.language)}
        assert len(seen) == 4
        holds(Grid(terms, [p]), p, seen)


def test_relus_that_are_one_where_a_flag_is_1_are_seen_to_be():
    """The nearest known relu is another one in each case: relu(n + 3f − 5) is relu(n − 2) where f is 1, and elsewhere
    it is relu(n − 5), which is nearer to relu(n − 4).
    """
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), 8))
    n = terms.sum(terms.of_letter([ONE, 0 * ONE, 0 * ONE]))
    f = terms.latch(constant(1), terms.of_letter([0 * ONE, ONE, 0 * ONE]))
    bent = lambda k, w=0: terms.relu(terms.add([(ONE, n), (Fraction(w), f), (Fraction(-k), constant(1))]))
    apart = terms.product(f, terms.add([(ONE, bent(5, 3)), (-ONE, bent(2))]))
    both = terms.add([(ONE, apart), (ONE, bent(4)), (-ONE, bent(5))])
    ways = [{a for a in states(terms, both) if terms.atoms[a].kind == kind} for kind in ("latch", "sum")]
    assert ends(Situations(terms, [apart], *ways).cells(apart)) == (0, 0)
    assert ends(Situations(terms, [both], *ways).cells(both)) == (0, 1)


def test_a_count_that_starts_again_is_0():
    """The flag is 1 + a·b, of which a·b is only known to be 0 or 1: what the count stores is no number, and it is 0."""
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    held = [terms.latch(constant(1), terms.of_letter([Fraction(n) for n in table])) for table in ((1, 0, 0), (0, 1, 0))]
    flag = terms.add([(ONE, constant(1)), (ONE, terms.product(*held))])
    p = terms.count(terms.of_letter([ONE, ONE, 2 * ONE]), flag)
    cells = Situations(terms, [p], [], states(terms, p)).cells(p)
    assert {(cell.lo, cell.hi) for cell in cells} == {(0, 0)}


@pytest.mark.parametrize("last", [-1, 0, 1, 2, Fraction(1, 2)])
def test_a_sum_less_its_latch_is_a_count_only_where_the_flag_is_one(last):
    """The flag is known one position back. At the last letter, which stands nowhere else, it is another number."""
    first, end = np.array([True, True, False]), np.array([False, False, True])
    terms = Terms(Language(LETTERS, 2, (Edge(0, 0, first, False), Edge(0, 1, end, False)), LENGTH))
    flag, stored = (
        terms.of_letter([ONE, Fraction(0), Fraction(last)]),
        terms.of_letter([Fraction(x) for x in (2, 3, 5)]),
    )
    total = terms.sum(stored)
    latch = terms.earlier(terms.latch(terms.earlier(total, 1), terms.earlier(flag, 1)), -1)
    less = terms.add([(ONE, total), (-ONE, latch)])
    counted = {terms.atoms[a].kind for m in less.terms for a, _ in m} == {"count"}
    assert counted == (last in (0, 1))
    for letters in sequences(terms.language):
        t = len(letters)
        assert value(terms, less, letters, t) == value(terms, total, letters, t) - value(terms, latch, letters, t)


def test_equal_atoms_that_nothing_reads_are_refused_by_number():
    for read in (False, True):
        terms = two_letters()
        both = [terms.earlier(terms.of_letter([ONE, 0 * ONE]), lag) for lag in (1, 2)]
        p = terms.relu(terms.add([*((ONE, q) for q in both), (-ONE, constant(1))]))
        ((((a, _),), _),) = p.terms.items()
        claims = iter([["same", short(terms.atoms[a].name), None, ["follow", [], []]], ["new"]])
        ledger = Ledger(terms, lambda place, subjects, claims=claims: next(claims))
        ledger.compare("here", [a])
        if read:
            assert not terms.replaced(p).terms
            ledger.check_used()
            continue
        with pytest.raises(Unused, match="claim 1 is used nowhere"):
            ledger.check_used()


def answers(rng: random.Random) -> tuple[bool, set[Fraction]]:
    """Whether a lead drawn at random is accepted at one state of a machine that may stop; what it is there in all
    sequences."""
    terms = Terms(language(rng))
    table = lambda low, high: terms.of_letter([Fraction(rng.randint(low, high)) for _ in range(LETTERS)])
    lead = terms.add([(ONE, terms.latch(table(0, 2), table(0, 1))), (ONE, table(-1, 2))])
    step = {(s, a): rng.choice([0, 1, 0, 1, None]) for s in range(2) for a in range(LETTERS)}
    both, right = beside(terms.language, Machine(0, lambda s, a: step[s, a], lambda s: 0 if s else None))
    seen = set()
    for letters in sequences(terms.language):
        state: int | None = 0
        for a in letters:
            state = None if state is None else step[state, a]
        seen |= {value(terms, lead, letters, len(letters))} if state else set()
    try:
        answered(terms, 1, {(0, 1): lead}, both, right, sorted(states(terms, lead)), [])
    except Unproved:
        assert min(seen, default=0) <= 0 or any(e.distinct for e in terms.language.edges)
        return False, seen
    return True, seen


def test_a_letter_answers_where_it_leads_in_every_sequence_and_nowhere_else():
    """A tie is no lead."""
    rng = random.Random(6)
    found = [answers(rng) for _ in range(60)]
    assert all(x > 0 for accepted, seen in found if accepted for x in seen)
    assert sum(accepted and bool(seen) for accepted, seen in found) > 5
    assert sum(min(seen, default=1) == 0 for _, seen in found) > 5


def test_a_state_of_numbers_below_0_is_not_0():
    """A relu of them is."""
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    flag = terms.of_letter([ONE, ONE, 0 * ONE])
    x = terms.latch(terms.of_letter([Fraction(n) for n in (-3, 1, 3)]), flag)
    more = terms.relu(x), terms.relu(terms.add([(ONE, x), (ONE, constant(1))]))
    less = terms.add([(ONE, more[0]), (-ONE, more[1])])
    grid = lambda p: Grid(terms, [p])
    assert {cell.hi for cell in grid(less).cells(less)} == {0}
    for p in (terms.sum(less), terms.latch(less, flag)):
        ((((a, _),), c),) = p.terms.items()
        assert c == 1
        with pytest.raises(Unproved, match="not shown to be the same"):
            same(terms, 1, a, None, 1, grid)


def stored(terms: Terms, rng: random.Random, wrong: bool) -> list[tuple[Fraction, Poly]]:
    """Weights and states that add up to 0: of p, of q and of p + q, under one flag that is bent from either side.

    wrong: the last of them is under another flag.
    """
    table = lambda: terms.of_letter([Fraction(rng.randint(-2, 2)) for _ in range(LETTERS)])
    bent = lambda p: terms.relu(terms.add([(ONE, p), (ONE, terms.earlier(p, 1)), (-ONE, constant(1))]))
    flag = terms.of_letter([Fraction(rng.randint(0, 1)) for _ in range(LETTERS)])
    both, left = terms.add([(ONE, flag), (ONE, terms.earlier(flag, 1)), (-ONE, constant(1))]), bent(flag)
    other = terms.add([(ONE, terms.relu(terms.add([(-ONE, both)]))), (ONE, both)])  # relu(−x) + x is relu(x)
    before = terms.earlier(table(), 1)
    p, q = (terms.product(table(), before) for _ in range(2))
    make, whole = rng.choice([terms.latch, terms.count]), terms.add([(ONE, p), (ONE, q)])
    last = terms.of_letter([Fraction(rng.randint(0, 1)) for _ in range(LETTERS)]) if wrong else left
    return [(ONE, make(p, left)), (ONE, make(q, other)), (-ONE, make(whole, last))]


def test_what_cancels_as_states_is_0_in_every_sequence():
    """And with a number that is off, or a state of another flag, it stays."""
    gone = kept = 0
    for seed in range(40):
        columns = np.array([[2, 1, 0, 0], [4, 0, 1, 0], [1, 0, 0, 1]] * (1 + seed % 3))  # of a few, or of many letters
        rng = random.Random(seed)
        terms = Terms(language(rng))
        scored = terms.add(stored(terms, rng, seed % 4 == 1))
        by_mono = {m: {0: int(c / scored.primitive[0])} for m, c in scored.terms.items()}
        if seed % 4 == 3 and by_mono:
            by_mono[rng.choice(sorted(by_mono))][1 + rng.randrange(3)] = rng.choice([-1, 1])
        left = _uncancelled(terms, columns, by_mono)
        held = {m: columns @ [times.get(i, 0) for i in range(4)] for m, times in by_mono.items() if m not in left}
        lost = [Poly({m: Fraction(int(column[r])) for m, column in held.items()}) for r in range(3)]
        for letters in sequences(terms.language) if len(left) < len(by_mono) else ():
            assert not any(value(terms, p, letters, len(letters)) for p in lost)
        gone += len(by_mono) - len(left)
        kept += len(left)
    assert gone > 15 and kept > 15, (gone, kept)


def test_only_a_new_atom_is_compared():
    terms = two_letters()
    ((((a, _),), _),) = terms.sum(constant(1)).terms.items()
    ledger = Ledger(terms, lambda place, subjects: ["same", short(terms.atoms[a].name), None, []])
    with pytest.raises(Refused, match="claim 1 is refused: it compares no new atom"):
        ledger.compare("here", [])


def test_products_apart_are_within_what_letters_allow_and_no_closer():
    """Every number is within the ends; and by letter they are the ends of one product, not of all in sum."""
    rng, closer_than_all, met = random.Random(8), 0, 0
    for _ in range(60):
        terms = Terms(language(rng))
        held = sequences(terms.language)
        for p in drawn(terms, rng):
            q = terms.add([(Fraction(rng.randint(-2, 2)), x) for x in drawn(terms, rng)[:2]] + [(ONE, p)]).primitive[1]
            lag = rng.randint(0, 2)
            try:
                (cell,) = Apart(terms, lag).cells(q)
            except Unproved:
                continue
            seen = {value(terms, q, letters, t) for letters in held for t in range(1, len(letters) + 1)}
            assert all(cell.lo <= x <= cell.hi for x in seen)
            closer_than_all += terms.range(q) != (cell.lo, cell.hi)
            met += {cell.lo, cell.hi} <= seen
    assert closer_than_all > 20 and met > 20


def test_of_products_that_read_one_letter_each_only_one_counts():
    """Each of two letters times how often it came: two counts up to 5, of which one is read."""
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    letters = [terms.of_letter(np.eye(LETTERS, dtype=np.int64)[a]) for a in (1, 2)]
    p = terms.add([(ONE, terms.product(x, terms.sum(x))) for x in letters])
    assert terms.range(p)[1] == 2 * LENGTH
    assert Apart(terms, 0).cells(p)[0].hi == LENGTH
    assert Apart(terms, 1).cells(p)[0].hi == 2 * LENGTH  # the letter before says nothing of these
    assert Apart(terms, 0).cells(terms.earlier(p, 1))[0].hi == 2 * LENGTH
    assert Apart(terms, 1).cells(terms.earlier(p, 1))[0].hi == LENGTH
