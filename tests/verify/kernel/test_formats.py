"""Formats narrower than float32: the same proofs with other limits, and norms that round once more."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.kernel.attack import Target, accepted, edited, found
from tests.verify.kernel.small import copied
from verify.kernel.certificate import prove, replay
from verify.kernel.claims import Refused
from verify.kernel.files import numbers, read
from verify.kernel.floats import FLOAT32, FORMATS, Unproved
from verify.kernel.rules import ballast
from verify.kernel.terms import Terms, constant
from verify.prover.prove import search

PLACES = [("mqar_sum", "mamba", "float16"), ("mqar_sum", "mamba2", "bfloat16"), ("count_since", "mamba2", "bfloat16")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Each checkpoint, made once, and its claims."""
    root, made = tmp_path_factory.mktemp("formats"), {}
    for name, target, dtype in PLACES:
        case = next(case for case in CASES if case.name == name)
        directory = write(root / f"{name}-{target}-{dtype}", case.build(), target, dtype)
        made[name, target, dtype] = directory, search(directory)[1]
    return made


@pytest.mark.parametrize("place", PLACES)
def test_a_narrow_format_is_proved_and_named(saved, place):
    directory, claims = saved[place]
    assert f"in {place[2]}, by ids" in replay(directory, claims).lines()[0]


@pytest.mark.parametrize("place", PLACES)
def test_another_format_than_the_config_has_is_refused(saved, place, tmp_path):
    directory, claims = saved[place]
    config, manifest = (json.loads((directory / f"{n}.json").read_text()) for n in ("config", "construction"))
    for other in {*FORMATS} - {place[2]}:
        with pytest.raises(Unproved, match="the config has dtype"):
            replay(copied(directory, tmp_path / f"config {other}", config=config | {"dtype": other}), claims)
    for other in ("float64", 32, ["float32"]):
        promise = manifest["promise"] | {"dtype": other}
        with pytest.raises(Unproved, match="files are not a checkpoint's"):
            replay(copied(directory, tmp_path / str(other), construction=manifest | {"promise": promise}), claims)


@pytest.mark.parametrize("place", PLACES)
def test_a_weight_that_the_format_does_not_hold_is_refused(saved, place, tmp_path):
    directory, claims = saved[place]
    copy = copied(directory, tmp_path / "copy")
    for number in (1 + 2.0**-12, 3e38, 2.0**-140, np.nan, -np.inf):
        tensors = {k: v.copy() for k, v in load_file(directory / "model.safetensors").items()}
        tensors["backbone.layers.0.mixer.D"].reshape(-1)[0] = number
        save_file(tensors, copy / "model.safetensors")
        with pytest.raises(Unproved, match="D has an entry that"):
            replay(copy, claims)


def test_numbers_of_a_format_are_those_that_torch_has():
    rng = np.random.default_rng(1)
    for name, form in FORMATS.items():
        kind = getattr(torch, name)
        values = (rng.standard_normal(2000) * 2.0 ** rng.integers(-30, 20, 2000)).astype(np.float32)
        kept = torch.from_numpy(values).to(kind).to(torch.float32).numpy()
        assert numbers("w", kept[np.isfinite(kept)], form).shape
        for value in values[(kept != values) & np.isfinite(kept)][:200]:
            with pytest.raises(Unproved, match="does not hold|beyond"):
                numbers("w", np.array([value]), form)


@pytest.mark.parametrize("place", PLACES)
def test_weights_that_score_otherwise_are_not_proved(saved, place):
    """By the old claims, by edited ones and by those of a fresh search."""
    directory, claims = saved[place]
    rng = random.Random(str(place))
    for other, how in Target(directory, rng, claims).changes(rng, 8):
        assert not accepted(other, claims) and not accepted(other, edited(claims, rng)) and not found(other), how


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_a_norm_hides_what_its_format_rounds_away(name, recall):
    """x / K of every number x of the format, computed as torch does; and beyond the limit some are off."""
    terms, form, kind = Terms(read(recall).language), FORMATS[name], getattr(torch, name)
    level, half = 1 << 10, form.units // 2
    every = (torch.arange(half) + half).to(torch.float32)
    worst = Fraction(8, 3) * (Fraction(1, 2 * form.units) - Fraction(16, 1 << 24))
    lanes = [constant(2 * level), *[terms.of_letter([Fraction(1)] * 13)] * 3]

    def tried(size: Fraction) -> tuple[bool, bool]:
        """Whether the rule accepts three lanes of this size, and whether x / K comes out right where all are."""
        try:
            accepts = ballast(1, lanes, [0], [Fraction(2 * level), *[size] * 3], 2.0**-100, form).value == level
        except Unproved:
            accepts = False
        off = torch.rsqrt(torch.tensor([float((Fraction(level) ** 2 * 4 + 3 * size**2) / 4)]))
        return accepts, bool(((every * off).to(kind) == every / level).all())

    edge = Fraction(float(worst) ** 0.5 * level)
    assert tried(edge * Fraction(99, 100)) == (True, True)
    assert tried(edge * Fraction(101, 100))[0] is False and tried(edge * 2) == (False, False)
    with pytest.raises(Unproved, match="does not hide"):
        ballast(1, lanes, [0], [Fraction(2 * level), *[edge / 8] * 3], 2.0**-100, FLOAT32)


def test_the_claims_of_one_format_do_not_prove_another(saved):
    """float16 has claims that float32 refuses: what a norm hides there, float32 would see."""
    directory, claims = saved[PLACES[1]]
    checkpoint = replace(read(directory), form=FLOAT32)
    with pytest.raises((Unproved, Refused)):
        prove(checkpoint, claims)
