"""The scorer, tested by who reads the truth and by who draws; and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from compiler import (
    CheckpointError,
    Circuit,
    InputLanguage,
    Tokens,
    compile,
    count,
    emit,
    present,
)
from constructions.scoring.build import problem_of
from constructions.scoring.evaluate import score
from constructions.scoring.methods.named import METHODS, ORACLE, Named, found_by
from constructions.scoring.problem import Featurizer, Found
from constructions.scoring.sites import read_all
from tests.artifact.test_compare import LETTERS
from tests.scoring.problems import problem, run
from tests.tracing.models import NAMED as CASES


@pytest.mark.parametrize("kind", ["plain", "hidden"])
def test_the_truth_scores_one_and_chance_does_not(place, kind):
    one = problem(place, kind)
    right = score(one, found_by(ORACLE, one))
    assert right.area == right.faithfulness == right.interchange == 1 and right.matched == pytest.approx(1)
    assert right.answers > 200
    areas = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        areas.append(score(one, Found([rng.random(site.width) for site in one.given.nodes])).area)
    assert abs(np.mean(areas) - 0.5) < 0.12
    assert score(one, found_by("random", one)).interchange < 0.6
    wrong = {name: Featurizer(f.read.flip(0), f.write) for name, f in one.oracle.items()}
    assert score(one, Found(None, wrong)).interchange < 0.5


@pytest.mark.parametrize("kind", ["plain", "hidden"])
def test_a_constant_score_keeps_what_no_score_keeps(kind, place):
    """Ties are kept together or not at all: no order of the channels is worth anything, and certainly not 1."""
    one = problem(place, kind)
    faithful = lambda scores: score(one, Found([scores(used) for used in one.used])).faithfulness
    flat = faithful(lambda used: np.zeros(len(used)))
    assert flat == faithful(lambda used: np.where(used, -1.0, 0.0)) < 0.5  # more unused than have room, before the used
    assert faithful(lambda used: used.astype(float)) == 1
    assert faithful(lambda used: np.where(used, 2.0, np.arange(len(used)) / len(used))) == 1  # ties that have room


NOT_SCORED = {
    "NaN": (float("nan"), float("nan"), "is not of finite real numbers"),
    "infinite": (1.0, float("inf"), "is not of finite real numbers"),
    "complex": (1j, 1.0, "is not of finite real numbers"),
    "beyond float64": (1e308, 1e308, "numbers so large that the model overflows"),
    "beyond float32": (1e20, 1e20, "numbers so large that the model overflows"),
    "beyond the norm": (1e10, 1e10, "numbers so large that the model overflows"),
}


@pytest.mark.parametrize("case", NOT_SCORED)
def test_a_featurizer_that_makes_no_numbers_is_refused(case, place):
    """A model that gives NaN everywhere, or 0, would be taken to answer the first letter."""
    one, (read, write, said) = problem(place, "plain"), NOT_SCORED[case]
    whole = {name: torch.eye(site.width, dtype=torch.float64) for name, site in one.given.site.items()}
    with pytest.raises(ValueError, match=f"'last_name'.*{said}"):
        score(one, Found(variables={name: Featurizer(read * eye, write * eye) for name, eye in whole.items()}))


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.int64])
def test_a_featurizer_may_be_of_any_real_kind_and_scale(kind, place):
    """All that stands at a site is what the variable does and more; a correlation is no more than 1."""
    one = problem(place, "plain")
    whole = {name: torch.eye(site.width, dtype=kind) for name, site in one.given.site.items()}
    plain = score(one, Found(variables={name: Featurizer(eye, eye) for name, eye in whole.items()}))
    share = one.given.size["last_name"] / one.given.site["last_name"].width  # of what is named
    assert plain.interchange == share < 0.2 and 0.99 * share < plain.matched <= share
    large = {name: Featurizer(2.0**700 * eye.double(), 2.0**-700 * eye.double()) for name, eye in whole.items()}
    assert score(one, Found(variables=large)) == plain
    assert score(one, found_by(ORACLE, one)).matched <= 1


def beside(found: Featurizer, more: torch.Tensor) -> Featurizer:
    """The same subspace, with more rows, which nothing is exchanged with."""
    return Featurizer(torch.cat([found.read, more]), torch.cat([found.write, 0 * more.T], dim=1))


@pytest.mark.parametrize("kind", ["plain", "hidden"])
def test_who_names_more_than_is_there_has_not_found_it(kind, place):
    """The whole stream exchanges the variable as well, and of very many rows one goes with it by chance."""
    one = problem(place, kind)
    (name, site), truth = *one.given.site.items(), one.oracle["last_name"]
    size, noise = len(truth.read), np.random.default_rng(0)
    assert one.given.size == {name: size} and size < site.width
    right, whole = (score(one, found_by(method, one)) for method in (ORACLE, "whole-stream"))
    assert right.interchange == 1 and whole.interchange == size / site.width
    rows = lambda count: torch.from_numpy(noise.normal(size=(count, site.width)))
    many = score(one, Found(variables={name: Featurizer(rows(5000), 0 * rows(5000).T)}))
    assert many.matched < 0.01 and many.interchange == 0
    twice = score(one, Found(variables={name: beside(truth, rows(size))}))
    assert twice.interchange == 0.5 and twice.matched == pytest.approx(0.5, abs=0.01)
    fewer = score(one, Found(variables={name: Featurizer(truth.read[:1], truth.write[:, :1])}))
    assert fewer.matched == pytest.approx(1 / size) and score(one, found_by("das", one)).matched > many.matched


def test_a_variable_that_never_varies_is_not_matched(tmp_path):
    """No number of it correlates with anything, so there is nothing that could be 0."""
    letters = Tokens(LETTERS)
    never = present(letters.is_in("."))  # which the language does not have
    since = count(letters.is_in("a"), reset=letters.is_in("b"))
    cases = [(never, "8"), *((since >= n, str(n)) for n in range(7, 0, -1))]
    language = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b"))], 8, "strings of a and b")
    compile(Circuit("guarded", emit(LETTERS, *cases, otherwise="0"), language)).save(tmp_path / "made")
    one = problem_of(tmp_path / "made")
    assert len(one.oracle) == 2 and score(one, found_by(ORACLE, one)).matched == pytest.approx(1)
    held = {name: labels[:, :, :0] for name, labels in one.held_labels.items()}
    assert score(replace(one, held_labels=held), found_by(ORACLE, one)).matched is None


def test_components_that_have_no_order_are_refused(place):
    one = problem(place, "plain")
    for scores in (lambda n: np.ones(n) * 1j, lambda n: np.full(n, "a"), lambda n: np.full(n, np.nan)):
        with pytest.raises(ValueError, match="no finite real numbers"):
            score(one, Found([scores(site.width) for site in one.given.nodes]))


SPOILERS = """
import random
import numpy as np, torch
from constructions.scoring.problem import Found
torch.set_default_dtype(torch.float16)

def spoils(given):
    with torch.no_grad():
        for parameter in given.model.parameters():
            parameter.zero_()
    given.model.lm_head.register_forward_hook(lambda module, read, out: 0 * out)
    given.model.train()
    given.ids.zero_(), given.answers.fill_(-100)
    for pairs in given.pairs.values():
        pairs.base[:] = 0
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    torch.set_grad_enabled(False), torch.set_default_dtype(torch.float64), torch.set_default_device("meta")
    return Found([np.arange(site.width) for site in given.nodes])

def draws(given):
    return Found([np.random.rand(site.width) + torch.rand(site.width).numpy() for site in given.nodes])

def hooks(given):
    torch.nn.modules.module.register_module_forward_hook(lambda module, read, out: 0)
    return spoils(given)
"""


def test_no_method_spoils_the_model_of_the_next(place, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(SPOILERS)
    one = problem(place, "plain")
    settings = lambda: (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_default_device())
    before, numbers = settings(), torch.get_rng_state()
    named = lambda name: Named.of(name if name in METHODS else f"{file}:{name}")
    scored = {name: named(name).score(one) for name in ("draws", "das", "attribution-patching")}
    assert named("spoils").score(one).area is not None
    assert settings() == before and torch.equal(torch.get_rng_state(), numbers)
    assert scored == {name: named(name).score(one) for name in scored}
    hooked = torch.nn.modules.module._global_forward_hooks
    try:
        with pytest.raises(ValueError, match="own.py:hooks changed what every model in this process computes"):
            named("hooks").score(one)
    finally:
        hooked.clear()


@pytest.mark.parametrize("target", ["gated-deltanet", "gated-deltanet-qwen"])
def test_the_truth_scores_one_where_the_library_has_other_names(target, tmp_path):
    compile(CASES["accepted"].build(), target).save(tmp_path / "made")
    one = problem_of(tmp_path / "made")
    right = score(one, found_by(ORACLE, one))
    assert right.area == right.faithfulness == 1 and right.matched == pytest.approx(1)


def test_sites_are_read_in_the_order_in_which_they_are_asked_for(place):
    one = problem(place, "plain")
    sites = [*one.given.site.values(), *one.given.nodes]
    for site, values in zip(sites, read_all(one.given.model, sites, one.given.ids), strict=True):
        assert torch.equal(values, site.read(one.given.model, one.given.ids))


def test_refusals(place, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "def nothing(given):\n    return 3\ndef without():\n    pass\n"
        "def lines(given):\n    raise RuntimeError('one\\ntwo')\n"
        "from constructions.scoring.problem import Found\ndef odd(given):\n    return Found(components=3)\n"
    )
    ends = tmp_path / "ends.py"
    ends.write_text("raise SystemExit(0)\n")
    plain = place / "plain"
    asked = {
        "its key": ("score", place / "hidden", "--method", "oracle"),
        "neither FILE.py:function": ("score", plain, "--method", "guess"),
        "no function 'some'": ("score", plain, "--method", f"{bad}:some"),
        "returned int": ("score", plain, "--method", f"{bad}:nothing"),
        r"bad.py:without: TypeError: without\(\) takes 0 positional arguments": (
            "score",
            plain,
            "--method",
            f"{bad}:without",
        ),
        "bad.py:lines, line 6: RuntimeError: one two": ("score", plain, "--method", f"{bad}:lines"),
        "what it returned cannot be scored.*: TypeError": ("score", plain, "--method", f"{bad}:odd"),
        "ends.py:f.*, line 1: SystemExit: 0": ("score", plain, "--method", f"{ends}:f"),
        "neither FILE.py:function of a file that exists": ("score", tmp_path / "nothing", "--method", "no.py:find"),
        "left alone": ("twin", plain, "--out", plain),
        "there is no directory": ("score-table", tmp_path / "models", "--keep", tmp_path / "none" / "k.json"),
        "is no disguised checkpoint; leave the key out": (
            *("score", plain, "--key", place / "hidden.key.json", "--method", "oracle"),
        ),
    }
    for sentence, arguments in asked.items():
        with pytest.raises((ValueError, CheckpointError), match=sentence):
            run(*arguments)
    for command in (("score", plain, "--method", "oracle"), ("twin", plain, "--out", tmp_path / "t")):
        with pytest.raises(Exception, match="less than or equal to 18446744073709551615"):
            run(*command, "--seed", 1 << 64)  # which PyTorch cannot be given
    one = problem(place, "plain")
    with pytest.raises(ValueError, match="shapes"):
        score(one, Found([np.zeros(3)]))
