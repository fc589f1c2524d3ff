"""The scorer tested by who reads the truth and by who draws, twins by two steps of training, and the page by its
file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import MambaConfig, MambaForCausalLM

from compiler import CheckpointError, compile
from compiler.disguise.key import read_key
from constructions.command.cli import command_line
from constructions.scoring.build import problem_of
from constructions.scoring.circuits import CIRCUITS, circuit
from constructions.scoring.evaluate import score
from constructions.scoring.methods.named import METHODS, ORACLE, found_by
from constructions.scoring.methods.relevance import linear
from constructions.scoring.problem import Featurizer, Found
from constructions.scoring.sites import read_all
from constructions.scoring.table import COLUMNS, KINDS, on_page
from constructions.scoring.truth import Truth
from constructions.scoring.twin import exchanged, fresh, trained
from constructions.scoring.twins_saved import read_twin, write_twin
from tests.tracing.models import NAMED as CASES

ROOT = Path(__file__).parents[2]
KEPT = json.loads((ROOT / "docs" / "scores.json").read_text("utf-8"))


def run(*arguments: object) -> int:
    return command_line()([str(a) for a in arguments], standalone_mode=False) or 0


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A flip-flop, plain and disguised."""
    place = tmp_path_factory.mktemp("scores")
    compile(circuit("flip-flop"), "mamba").save(place / "plain")
    assert run("disguise", place / "plain", "--out", place / "hidden", "--seed", 1, "--samples", 10) == 0
    return place


def problem(place: Path, kind: str):
    return (
        problem_of(place / "plain")
        if kind == "plain"
        else problem_of(place / "hidden", read_key(place / "hidden.key.json"))
    )


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


def test_patching_finds_the_channels_of_a_plain_circuit(place):
    one = problem(place, "plain")
    assert score(one, found_by("activation-patching", one)).area > 0.9


def two_blocks(place: Path, kind: str):
    compile(circuit("at-least"), "mamba").save(place / "two")
    if kind == "plain":
        return problem_of(place / "two")
    assert run("disguise", place / "two", "--out", place / "other", "--seed", 1, "--samples", 10) == 0
    return problem_of(place / "other", read_key(place / "other.key.json"))


@pytest.mark.parametrize("kind", ["plain", "hidden"])
def test_an_edge_is_used_where_its_reader_feels_the_channel(kind, tmp_path):
    """Another way to the same truth: move what a channel writes, and see whether the reader's own output moves."""
    one = two_blocks(tmp_path, kind)
    readers = {"backbone.layers.1.norm": "backbone.layers.1.mixer.in_proj", "backbone.norm_f": "lm_head"}
    model, found = one.given.model, []
    assert [(e.source, e.reader.path) for e in one.given.edges] == [
        (0, [*readers][0]),
        (0, [*readers][1]),
        (1, [*readers][1]),
    ]
    for edges, used in zip(one.given.edges, one.edges_used, strict=True):
        written = model.get_submodule(one.given.nodes[edges.source].path).weight.detach()
        norm = model.get_submodule(edges.reader.path).weight.detach()
        reads = (model.get_submodule(readers[edges.reader.path]).weight.detach() * norm) @ written
        felt = (reads.abs().amax(dim=0) > 0).numpy()
        assert not (used == 1)[~felt].any()  # and what is felt but not used is a decoy
        if kind == "plain":
            assert (felt[used >= 0] == (used[used >= 0] == 1)).all()
        found.append((used == 1).sum())
    assert found[0] and found[2] and not found[1]
    assert score(one, found_by(ORACLE, one)).edges == 1
    assert score(one, found_by("attribution-patching", one)).edges > 0.85
    backwards = Found(edges=[-used.astype(float) for used in one.edges_used])
    assert score(one, backwards).edges == 0
    with pytest.raises(ValueError, match="shapes"):
        score(one, Found(edges=[np.zeros(3)]))


def ordinary() -> MambaForCausalLM:
    """A Mamba of ordinary initialisation without biases: what is relevant stands at the embedding alone."""
    torch.manual_seed(0)
    config = MambaConfig(
        vocab_size=9, hidden_size=16, state_size=4, num_hidden_layers=3, use_conv_bias=False, layer_norm_epsilon=0.0
    )
    return MambaForCausalLM(config).eval()


def test_relevance_is_neither_made_nor_lost():
    """The logit that is asked for stands, whole, at the embedding, and the forward pass is the model's own."""
    model, ids = ordinary(), torch.randint(0, 9, (2, 7), generator=torch.Generator().manual_seed(1))
    stream = model.backbone.embeddings(ids).detach().requires_grad_()
    plain = model(inputs_embeds=stream, use_cache=False).logits
    with linear(model):
        logits = model(inputs_embeds=stream, use_cache=False).logits
    assert torch.allclose(plain, logits, atol=1e-6)
    asked = logits[0, -1, 3]
    (gradient,) = torch.autograd.grad(asked, stream)
    assert float((gradient * stream).sum().detach()) == pytest.approx(float(asked.detach()), rel=1e-4)
    (gradient,) = torch.autograd.grad(plain[0, -1, 3], stream)  # which an ordinary gradient does not give
    assert abs(float((gradient * stream).sum().detach() - asked.detach())) > 0.1 * abs(float(asked.detach()))


def test_relevance_finds_channels_and_refuses_other_blocks(place, tmp_path):
    assert score(problem(place, "plain"), found_by("mamba-lrp", problem(place, "plain"))).area == 1
    compile(circuit("flip-flop"), "mamba2").save(tmp_path / "two")
    with pytest.raises(ValueError, match="blocks of Mamba"):
        found_by("mamba-lrp", problem_of(tmp_path / "two"))


def test_a_twin_is_written_and_read_and_its_lanes_are_exchanged(place, tmp_path):
    truth = Truth(compile(circuit("flip-flop"), "mamba"))
    twin = trained(truth, seed=0, steps=2)
    write_twin(twin, place / "plain", tmp_path / "twin")
    again, _ = read_twin(tmp_path / "twin")
    assert again.lanes == twin.lanes and again.faithfulness == twin.faithfulness
    ids = torch.from_numpy(truth.draw(3, 12, 5))
    assert torch.equal(twin.model(ids).logits, again.model(ids).logits)
    one = problem_of(tmp_path / "twin")
    assert (one.used[0] == 1).sum() == 4 and (one.used[0] == 0).sum() == 28
    base, source = torch.zeros(1, 1, 32), torch.ones(1, 1, 32)
    assert exchanged(base, source, [3, 5]).sum() == 2
    assert all(fresh(truth, 1).lanes[name] != lanes for name, lanes in twin.lanes.items())


def test_every_circuit_has_a_variable_and_its_interchange_changes_answers():
    for name in CIRCUITS:
        truth = Truth(compile(circuit(name), "mamba"))
        ids = truth.draw(40, 12, 1)
        for variable in truth.variables:
            swapped = truth.pairs(variable, ids[:20], ids[20:]).answers
            assert (swapped != truth.answers(ids[:20])).any(), (name, variable)
            own = truth.pairs(variable, ids[:20], ids[:20]).answers
            assert (own == truth.answers(ids[:20])).all(), (name, variable)


def test_refusals(place, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def nothing(given):\n    return 3\n")
    plain = place / "plain"
    asked = {
        "its key": ("score", place / "hidden", "--method", "oracle"),
        "neither FILE.py:function": ("score", plain, "--method", "guess"),
        "no function 'some'": ("score", plain, "--method", f"{bad}:some"),
        "returned int": ("score", plain, "--method", f"{bad}:nothing"),
        "left alone": ("twin", plain, "--out", plain),
    }
    for sentence, arguments in asked.items():
        with pytest.raises((ValueError, CheckpointError), match=sentence):
            run(*arguments)
    one = problem(place, "plain")
    with pytest.raises(ValueError, match="shapes"):
        score(one, Found([np.zeros(3)]))


def test_the_page_has_the_table_of_the_file():
    page = (ROOT / "docs" / "scores.md").read_text("utf-8")
    assert page == on_page(page, KEPT)
    oracle = [row for row in KEPT["rows"] if row["method"] == ORACLE]
    assert oracle and all(
        row[c] in (1, None) or abs(row[c] - 1) < 1e-9 for row in oracle for c in COLUMNS if row["kind"] != KINDS[2]
    )
    assert {row["method"] for row in KEPT["rows"]} == {ORACLE, *METHODS}
