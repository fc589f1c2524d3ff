"""Counts that outgrow a format: how far torch takes them from the truth, what may read them, and what is proved."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from constructions.registry import CONSTRUCTIONS
from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.kernel.attack import Target, accepted, edited, found
from tests.verify.kernel.small import make, only_new
from verify.kernel.certificate import prove, replay
from verify.kernel.claims import Ledger, Refused
from verify.kernel.files import read
from verify.kernel.floats import FORMATS, NARROW, Format, Unproved
from verify.kernel.language import Edge, Language
from verify.kernel.mixers import Floats, Number
from verify.kernel.rules import total
from verify.kernel.terms import Terms, constant
from verify.prover.prove import search

LONG = 700  # letters, more than bfloat16 counts
PLACES = [(name, target) for name in ("absolute-time", "mqar-first") for target in ("mamba", "mamba2")]
PLACES += [("keep-nth", "mamba"), ("keep-nth", "mamba2")]


def floats_of(form: Format, length: int = 1 << 20) -> Floats:
    language = Language(2, 1, (Edge(0, 0, np.ones(2, bool), False),), length)
    return Floats(Ledger(Terms(language), only_new), form)


@pytest.mark.parametrize("form", NARROW, ids=lambda form: form.name)
def test_torch_counts_within_the_bounds_of_a_narrow_format(form):
    """A prefill in float32 and a cast behind it, then a cast behind each step, of ones at random: no less than the
    format's units where there are as many, and no more than the bound.
    """
    rng, kind = np.random.default_rng(7), getattr(torch, form.name)
    worst, units = 0.0, form.units
    for first, part in ((0, 1.0), (0, 0.5), (units + 3, 1.0), (3 * units + 3, 0.3), (31 * units + 9, 1.0)):
        held, truth = torch.tensor(float(first)).to(kind), first
        for one in rng.random(6 * units) < part:
            held = (held.to(torch.float32) + float(one)).to(kind)
            truth += int(one)
            assert min(truth, units) <= held.item() <= truth * (1 + form.excess)
            worst = max(worst, held.item() / max(truth, 1))
    assert worst > 1  # some are more than the truth, so a bound is needed


@pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: form.name)
def test_a_count_is_held_as_9_8_of_all_positions_at_most(form):
    """Counts.narrow_positions_at_most. What a prefill may hold, near each place where a step of the format becomes
    larger, and then at most 1 at each position.
    """
    rng, kind = np.random.default_rng(11), getattr(torch, form.name)
    for first in (form.units * k // 8 for k in range(1, 34)):
        held = torch.tensor(first * 16 / 15, dtype=torch.float32).to(kind)
        for one in [*np.ones(40), *rng.random(40)]:
            held = (held.to(torch.float32) + float(one)).to(kind)
        assert held.item() <= max(form.units, Fraction(9, 8) * first)
    length, few = 4 * form.units, floats_of(form, 4 * form.units)
    steps = few.running_sum("here", Number(few.terms.of_letter([Fraction(0), Fraction(1)])))
    assert few.size(steps) == Fraction(9, 8) * length < (1 + form.excess) * length


def test_a_cast_behind_each_part_adds_more_than_there_is():
    """Why 32/15 of float32 is no bound here: parts of 1.5 steps, which each cast rounds up, all but add a third."""
    held, truth = torch.tensor(256.0).to(torch.bfloat16), 256
    for _ in range(80):
        held = (held.to(torch.float32) + 3).to(torch.bfloat16)
        truth += 3
    assert held.item() / truth > 1.15


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_falling_line_is_read_where_it_is_low_enough_before_it_rounds(name):
    """128 · (k − count) is exact while the count and k have at most the format's units in sum, and -128 is low enough.
    In float16 no such line is in range where a count outgrows it.
    """
    form = FORMATS[name]
    floats = floats_of(form, 1 << 30)
    steps = floats.running_sum("here", Number(constant(1)))
    assert (steps.outgrown is not None, steps.exact_to) == (True, form.units)
    line = lambda slope, level: floats.sum("here", [(Fraction(slope), steps), (Fraction(1), Number(constant(level)))])
    most = form.units // 2 - 1
    fine = floats.activation("here", line(-128, 128 * most))
    assert fine.outgrown is None and floats.terms.range(fine.poly) == (0, 128 * (most - 1))
    for slope, level in ((-128, 128 * most + 128), (128, 0), (-128, 256 * form.units)):
        with pytest.raises(Unproved, match="reads a sum that is exact up to"):
            floats.activation("here", line(slope, level))
    with pytest.raises(Unproved, match=f"outgrows {form.name} in another way"):
        line(-3, 4)
    with pytest.raises(Unproved, match=f"multiplies a count that outgrows {form.name}"):
        floats.product("here", steps, Number(floats.terms.of_letter([Fraction(0), Fraction(1)])))


def test_a_count_beyond_the_largest_number_of_a_format_is_refused():
    with pytest.raises(Unproved, match="can reach 6.75e\\+04, and float16 ends at 6.55e\\+04"):
        floats_of(FORMATS["float16"], 60000).running_sum("here", Number(constant(1)))


def test_a_line_is_bounded_however_often_it_is_rounded():
    floats = floats_of(FORMATS["bfloat16"])
    line, sizes = floats.running_sum("here", Number(constant(1))), []
    with pytest.raises(Unproved, match="is rounded 130 times"):
        while True:
            line = floats.sum("here", [(Fraction(1), line), (Fraction(1), Number(constant(1)))])
            sizes.append(floats.size(line))
    assert len(sizes) == 64 and all((x < y for x, y in zip(sizes, sizes[1:], strict=False)))
    assert sizes[-1] >= (1 << 20) * Fraction(9, 8) * (1 + Fraction(1, 256)) ** 128


def test_what_a_state_holds_is_of_the_format_and_what_a_scan_adds_of_float32():
    """+1 and −1 by turns: each sum of them is 0 or 1, and as many terms as float32 adds are not too many."""
    up, down = np.eye(2, dtype=bool)
    for length, fits in ((1 << 24, True), (1 << 25, False)):
        terms = Terms(Language(2, 2, (Edge(0, 1, up, False), Edge(1, 0, down, False)), length))
        turn = terms.of_letter([Fraction(1), Fraction(-1)])
        state = next(iter(terms.sum(turn).terms))[0][0]
        name = terms.atoms[state].name[:16]
        claims = iter([["follow", terms.name(terms.sum(turn))[:16], [name], []]])
        floats = Floats(Ledger(terms, lambda place, subjects, left=claims: next(left, None)), FORMATS["bfloat16"])
        if fits:
            assert floats.running_sum("here", Number(turn)).poly.terms
            continue
        with pytest.raises(Unproved, match="beyond what float32 adds exactly"):
            floats.running_sum("here", Number(turn))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Each in bfloat16, and the claims of a search."""
    root = tmp_path_factory.mktemp("counts")
    made = {(name, target): make(root / f"{name}-{target}", name, target, "bfloat16") for name, target in PLACES}
    return {place: (directory, search(directory)[1]) for place, directory in made.items()}


@pytest.mark.parametrize("place", PLACES)
def test_a_count_beyond_bfloat16_is_proved(saved, place):
    directory, claims = saved[place]
    assert replay(directory, claims).task is not None
    assert ["outgrows"] in claims or place[0] == "mqar-first"
    rng = random.Random(str(place))
    for other, how in Target(directory, rng, claims).changes(rng, 6):
        assert not accepted(other, claims) and not accepted(other, edited(claims, rng)) and not found(other), how


@pytest.mark.parametrize("place", [place for place in PLACES if place[0] != "mqar-first"])
def test_the_real_module_answers_as_proved_beyond_what_it_counts(saved, place):
    """Whole, and step by step."""
    directory, _ = saved[place]
    letters = read(directory).circuit["alphabet"]
    rng = np.random.default_rng(3)
    text = rng.integers(0, len(letters), LONG) if place[0] == "keep-nth" else np.zeros(LONG, int)
    expected = [letters.index(f"t{min(t + 1, 6)}") for t in range(LONG)] if place[0] == "absolute-time" else text[2]
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.bfloat16)
    tokens = torch.from_numpy(text)[None]
    with torch.no_grad():
        whole = model(tokens).logits[0].float().argmax(-1).numpy()
        cache, steps = None, []
        for t in range(LONG):
            more = {} if cache is None else {"cache_position": torch.tensor([t + 3])}
            out = model(tokens[:, t : t + 1], cache_params=cache, use_cache=True, **more)
            cache = out.cache_params
            steps.append(int(out.logits[0, -1].float().argmax()))
    first = 2 if place[0] == "keep-nth" else 0
    assert (whole[first:] == np.array(expected)[first:] if place[0] != "keep-nth" else whole[first:] == expected).all()
    assert steps == whole.tolist()


def test_a_position_is_compared_with_less_than_half_of_what_a_format_counts(tmp_path):
    """K − position is exact while both have 2^8 units in sum, and it has to be −104 or less before that ends."""
    near, far = (make(tmp_path / str(n), "keep-nth", "mamba", "bfloat16", n=n) for n in (126, 127))
    assert replay(near, search(near)[1]).task is not None
    with pytest.raises(Unproved, match="reads a sum that is exact up to 128"):
        search(far)


def test_a_count_that_is_said_to_outgrow_and_fits_is_refused(saved):
    directory, claims = saved["mqar-first", "mamba"]
    with pytest.raises((Refused, Unproved)):
        prove(read(directory), [["outgrows"], *claims])
    with pytest.raises((Refused, Unproved)):
        prove(read(directory), [*claims, ["outgrows"]])


def test_a_majorant_is_what_a_table_has_above_0_or_below_0():
    """relu(−T(now) − T(before) − 1) is 1 where two letters with −1 follow each other: no more than max(−T(now), 0)."""
    language = Language(3, 1, (Edge(0, 0, np.ones(3, bool), False),), 10)
    terms = Terms(language)
    table = terms.of_letter([Fraction(0), Fraction(1), Fraction(-1)])
    bent = terms.add([(Fraction(-1), table), (Fraction(-1), terms.earlier(table, 1)), (Fraction(-1), constant(1))])
    (t,), (summed,) = ({a for m in p.terms for a, _ in m} for p in (table, terms.sum(terms.relu(bent))))
    each = Fraction(1), [Fraction(0)], []
    for lag in (0, 1):
        assert total(terms, 1, summed, [(t, lag, -1)], [], each).cells[0][:2] == (0, 10)
        for weight in (1, 0, 7):
            with pytest.raises(Unproved, match="the majorant is less than what is summed"):
                total(terms, 1, summed, [(t, lag, weight)], [], each)
    with pytest.raises(Unproved):
        total(terms, 1, summed, [(t, 0, -1)], [], (Fraction(1, 2), [Fraction(0)], []))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_recall_on_s4d_is_proved_by_totals_of_such_tables(tmp_path, dtype):
    construction = CONSTRUCTIONS["mqar"](kappa=2, vocab=3, arch="s4d", dtype=dtype)
    directory = write(tmp_path / "s4d", construction.circuit(), "s4d", dtype, task=construction.asks())
    claims = search(directory)[1]
    assert replay(directory, claims).task is not None and ["outgrows"] not in claims
    rest = [claim for claim in claims if claim[0] != "total"]
    with pytest.raises((Refused, Unproved)):
        replay(directory, rest)


def test_logits_are_bounded_by_the_terms_of_each_sign(tmp_path):
    """Terms of up to 2,280 in size, of both signs, add up to no more than 2,048 in float16 in any order."""
    case = next(case for case in CASES if case.name == "division_of_counters")
    directory = write(tmp_path / "division", case.build(), "mamba", "float16")
    assert replay(directory, search(directory)[1]).dtype == "float16"
