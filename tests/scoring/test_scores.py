"""The scorer tested by who reads the truth and by who draws, twins by two steps of training, and the page by its
file."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Mamba2Config, Mamba2ForCausalLM, MambaConfig, MambaForCausalLM

from compiler import (
    Alphabet,
    CheckpointError,
    Circuit,
    InputLanguage,
    Tokens,
    compile,
    count,
    emit,
    present,
    readout_integer,
)
from compiler.artifact.manifest import file_hash
from compiler.disguise.key import read_key
from constructions.command.cli import command_line
from constructions.command.scoring import _kept as kept
from constructions.scoring.build import problem_of
from constructions.scoring.evaluate import score
from constructions.scoring.methods.named import METHODS, ORACLE, Named, found_by
from constructions.scoring.methods.recurrence import mixers, recurrence
from constructions.scoring.methods.relevance import linear
from constructions.scoring.problem import Featurizer, Found, NothingFound
from constructions.scoring.sites import read_all
from constructions.scoring.table import COLUMNS, TWINS, on_page
from constructions.scoring.truth import Truth
from constructions.scoring.twin import behind_first, exchanged, fresh, onwards, trained
from constructions.scoring.twins_saved import read_twin, write_twin
from constructions.selectivity.mqar import MQAR
from constructions.zoo.collection import entries
from tests.artifact.test_compare import LETTERS, count_since
from tests.tracing.models import NAMED as CASES

ROOT = Path(__file__).parents[2]
KEPT = json.loads((ROOT / "docs" / "scores.json").read_text("utf-8"))


def renamed_nodes(graph: dict) -> dict:
    for node in graph["nodes"]:
        node["variable"] = node["variable"] and "other"
    return graph


def circuit(name: str):
    return entries()[name].circuit()


def run(*arguments: object) -> int:
    return command_line()([str(a) for a in arguments], standalone_mode=False) or 0


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """The name that stood last, of three: plain and disguised."""
    place = tmp_path_factory.mktemp("scores")
    compile(circuit("last-name"), "mamba").save(place / "plain")
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


def test_patching_finds_the_channels_of_a_plain_circuit(place):
    one = problem(place, "plain")
    assert score(one, found_by("activation-patching", one)).area > 0.9


def test_the_method_of_the_page_runs(place, tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "scores.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_method.py").write_text(program, "utf-8")
    one = problem(place, "plain")
    found = score(one, found_by(f"{tmp_path / 'my_method.py'}:find", one))
    assert found.area == 1 and found.interchange > 0.9


def two_blocks(place: Path, kind: str):
    compile(circuit("at-least-3"), "mamba").save(place / "two")
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


def ordinary(mixer: str) -> MambaForCausalLM | Mamba2ForCausalLM:
    """A model of ordinary initialisation without biases: what is relevant stands at the embedding alone."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 9, "hidden_size": 16, "num_hidden_layers": 3, "use_conv_bias": False}
    if mixer == "mamba":
        return MambaForCausalLM(MambaConfig(**sizes, state_size=4, layer_norm_epsilon=0.0)).eval()
    heads = {"num_heads": 4, "head_dim": 8, "n_groups": 2, "chunk_size": 4}
    return Mamba2ForCausalLM(Mamba2Config(**sizes, **heads, state_size=6, layer_norm_epsilon=0.0)).eval()


def some_ids() -> torch.Tensor:
    return torch.randint(0, 9, (2, 7), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("mixer", ["mamba", "mamba2"])
def test_relevance_is_neither_made_nor_lost(mixer):
    """The logit that is asked for stands, whole, at the embedding, and the forward pass is the model's own."""
    model, ids = ordinary(mixer), some_ids()
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


@torch.no_grad()
@pytest.mark.parametrize("mixer", ["mamba", "mamba2"])
def test_the_hidden_attention_times_the_channels_is_what_states_put_out(mixer):
    """Held to what out_proj of the library's own block reads, gate and norm included."""
    model, ids, read = ordinary(mixer), some_ids(), []
    one = mixers(model, "a method")[1]
    one.register_forward_pre_hook(lambda module, given: read.append(given[0]))
    one.out_proj.register_forward_pre_hook(lambda module, given: read.append(given[0]))
    model(ids, use_cache=False)
    parts = recurrence(one, read[0])
    attention = parts.attention()
    assert attention.shape == (2, 32, 7, 7) and not attention.triu(1).any()
    put = torch.einsum("ndij,njd->nid", attention, parts.x) + parts.skip * parts.x
    assert torch.allclose(put, parts.scanned(), atol=1e-5)
    whole = one.norm(put, parts.gate) if mixer == "mamba2" else put * torch.nn.functional.silu(parts.gate)
    assert torch.allclose(whole, read[1], atol=1e-5)


def test_methods_that_look_inside_blocks_find_channels_and_refuse_other_blocks(place, tmp_path):
    compile(circuit("last-name"), "mamba2").save(tmp_path / "two")
    compile(CASES["accepted"].build(), "gated-deltanet").save(tmp_path / "other")
    one, two, other = problem(place, "plain"), problem_of(tmp_path / "two"), problem_of(tmp_path / "other")
    for method in ("mamba-lrp", "hidden-attention"):
        assert score(one, found_by(method, one)).area == score(two, found_by(method, two)).area == 1
        with pytest.raises(ValueError, match="blocks of Mamba"):
            found_by(method, other)


def check_edits(directory: Path) -> None:
    """A twin.json that says otherwise is one sentence, and other lanes are not taken for the truth."""
    file = directory / "twin.json"
    told = json.loads(file.read_text())
    (name,) = told["lanes"]
    for entry, value, said in (
        ("files", [], "twin.json: files"),
        ("files", {}, "must have the hashes of"),
        ("files", told["files"] | {"../plain/config.json": ""}, "must have the hashes of"),
        ("measured", {}, "twin.json: measured"),
        ("lanes", [], "twin.json: lanes"),
        ("steps", -1, "twin.json: steps is -1"),
        ("lanes", {name: [10**6]}, "its lanes are not those"),
        ("lanes", {name: [0, 1, 3, 4]}, "its lanes are not those"),
        ("rest", [31], "its lanes are not those"),
        ("measured", told["measured"] | {"strict": 0.99}, "measured anew it is otherwise"),
        ("seed", -1, "its lanes are not those"),
        ("of", None, "twin.json has no entry of"),
    ):
        other = {k: v for k, v in (told | {entry: value}).items() if v is not None}
        file.write_text(json.dumps(other))
        with pytest.raises(CheckpointError, match=said) as refused:
            problem_of(directory)
        assert refused.value.exit_code == 1, "an edited file is a failed verification"
    file.write_text(json.dumps(told))


@pytest.mark.parametrize("name", ["circuit.json", "tokenizer.json", "causal_graph.json"])
def test_a_file_of_another_circuit_beside_a_twin_is_found(name, place, tmp_path):
    """Also where twin.json has its hash."""
    write_twin(trained(Truth(compile(circuit("last-name"), "mamba")), seed=0, steps=2), place / "plain", tmp_path / "t")
    compile(circuit("at-least-3"), "mamba").save(tmp_path / "other")
    shutil.copyfile(tmp_path / "other" / name, tmp_path / "t" / name)
    told = json.loads((tmp_path / "t" / "twin.json").read_text())
    told["files"][name] = file_hash(tmp_path / "t" / name)
    (tmp_path / "t" / "twin.json").write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match=f"{name} is not that of the circuit whose twin this is") as refused:
        problem_of(tmp_path / "t")
    assert refused.value.exit_code == 1


def test_a_twin_is_written_and_read_and_its_lanes_are_exchanged(place, tmp_path):
    truth = Truth(compile(circuit("last-name"), "mamba"))
    twin = trained(truth, seed=0, steps=2)
    write_twin(twin, place / "plain", tmp_path / "twin")
    again, _ = read_twin(tmp_path / "twin")
    assert again.lanes == twin.lanes and again.faithfulness == twin.faithfulness
    ids = torch.from_numpy(truth.draw(3, 5))
    assert torch.equal(twin.model(ids).logits, again.model(ids).logits)
    one = problem_of(tmp_path / "twin")
    assert (one.used[0] == 1).sum() == 4 and (one.used[0] == 0).sum() == 28
    assert [e.reader.path for e in one.given.edges] == ["backbone.layers.1.norm", "backbone.norm_f"]
    assert (one.edges_used[0] == one.used[0]).all() and not one.edges_used[1].any()
    assert [len(each) for each in found_by("activation-patching", one).edges] == [32, 32]
    block, head = (e.reader for e in one.given.edges)
    with torch.no_grad():
        here = behind_first(one.given.model, ids)
        there = here.roll(1, dims=0)
        for reader, streams in ((block, (here, there)), (head, (there, here))):  # what trains an edge, and what cuts it
            with reader.changed(one.given.model, lambda x: x + there - here):
                logits = one.given.model(ids, use_cache=False).logits
            assert torch.allclose(onwards(one.given.model, *streams), logits, atol=1e-5)
    check_edits(tmp_path / "twin")
    (tmp_path / "twin" / "model.safetensors").rename(tmp_path / "gone")
    with pytest.raises(CheckpointError, match="missing") as gone:
        problem_of(tmp_path / "twin")
    assert gone.value.exit_code == 1
    (tmp_path / "gone").rename(tmp_path / "twin" / "model.safetensors")
    with pytest.raises(NothingFound, match="lanes"):
        found_by("hidden-attention", one)
    base, source = torch.zeros(1, 1, 32), torch.ones(1, 1, 32)
    assert exchanged(base, source, [3, 5]).sum() == 2
    assert all(fresh(truth, 1).lanes[name] != lanes for name, lanes in twin.lanes.items())


@pytest.fixture(scope="module")
def own_twin(tmp_path_factory) -> Path:
    """Two steps of a twin of a circuit of one's own, whose author calls a variable `since`."""
    root = tmp_path_factory.mktemp("own")
    compile(count_since()).save(root / "own")
    assert run("twin", root / "own", "--out", root / "twin", "--steps", 2) == 0
    return root / "twin"


def test_a_twin_of_ones_own_circuit_keeps_the_names_of_its_variables(own_twin):
    assert list(problem_of(own_twin).given.site) == ["since"]


def test_what_the_user_put_beside_an_earlier_twin_stays(own_twin, tmp_path):
    twin = Path(shutil.copytree(own_twin, tmp_path / "twin"))
    for name in ("notes.txt", "README.md"):
        (twin / name).write_text("mine")
    assert run("twin", own_twin.parent / "own", "--out", twin, "--steps", 1, "--force") == 0
    assert (twin / "notes.txt").read_text() == (twin / "README.md").read_text() == "mine"
    told = json.loads((twin / "twin.json").read_text())
    assert told["steps"] == 1 and not {"notes.txt", "README.md"} & told["files"].keys()
    assert list(problem_of(twin).given.site) == ["since"]


FORGED = {
    "other letters": (
        "config.json",
        lambda c: c | {"vocab_size": 99},
        "embeddings.weight is .*, and by its config.json",
    ),
    "no size": ("config.json", lambda c: c | {"hidden_size": "x"}, "config.json is not that of a twin"),
    "no convolution": ("config.json", lambda c: c | {"state_size": -3}, "cannot be read as a model"),
    "no object": ("config.json", lambda c: [c], "config.json is not that of a twin"),
    "another class": ("config.json", lambda c: c | {"model_type": "evil"}, "config.json is not that of a twin"),
    "another activation": ("config.json", lambda c: c | {"hidden_act": "relu"}, "hidden_act is 'relu', and a twin has"),
    "no weights": ("model.safetensors", None, "cannot be read as a model"),
    "another name": ("causal_graph.json", renamed_nodes, "is not that of the circuit whose twin this is"),
    "not measured": ("twin.json", lambda t: t | {"measured": None}, "measured is null"),
    "a better one": (
        "twin.json",
        lambda t: t | {"measured": t["measured"] | {"accuracy": 1.0}},
        "measured.accuracy is",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_twin_that_was_changed_and_sealed_again_is_refused(case, own_twin, tmp_path):
    twin = Path(shutil.copytree(own_twin, tmp_path / "twin"))
    name, edit, said = FORGED[case]
    (twin / name).write_text("hello" if edit is None else json.dumps(edit(json.loads((twin / name).read_text()))))
    told = json.loads((twin / "twin.json").read_text())
    told["files"] = {name: file_hash(twin / name) for name in told["files"]}
    (twin / "twin.json").write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match=said) as caught:
        problem_of(twin)
    assert "\n" not in str(caught.value)


def test_a_twin_that_nothing_is_left_to_measure_on_is_refused(tmp_path):
    letters = Alphabet.of("a", "b", "0", "1", "2")
    seen = Tokens(letters).is_in("a").cumsum().named("seen")
    answer = readout_integer(seen, letters, {"0": 0, "1": 1, "2": 2})
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 2, "two letters")
    compile(Circuit("two", answer, language)).save(tmp_path / "two")
    with pytest.raises(ValueError, match="none is left to measure it on"):
        run("twin", tmp_path / "two", "--out", tmp_path / "twin")
    assert not (tmp_path / "twin").exists()


def test_no_code_beside_a_twin_is_run(own_twin, tmp_path):
    twin = Path(shutil.copytree(own_twin, tmp_path / "twin"))
    (twin / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass X: pass\n")
    config = json.loads((twin / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.X", "AutoModelForCausalLM": "evil.X"}
    (twin / "config.json").write_text(json.dumps(config))
    told = json.loads((twin / "twin.json").read_text())
    told["files"]["config.json"] = file_hash(twin / "config.json")
    (twin / "twin.json").write_text(json.dumps(told))
    assert list(problem_of(twin).given.site) == ["since"] and not (tmp_path / "ran").exists()


def test_inputs_are_drawn_where_keys_run_out():
    """Whoever goes on with pairs behind the third has no key left."""
    truth = Truth(compile(MQAR(kappa=3, vocab=4).circuit(), "mamba"))
    assert truth.draw(50, 0).shape == (50, 12)


def test_inputs_are_as_long_as_the_language_has_them():
    circuit = count_since()
    two = InputLanguage.of(LETTERS, "s", [("s", "t", "a"), ("t", "end", ("a", "b"))], 8, "two letters")
    assert Truth(compile(replace(circuit, language=two), "mamba")).draw(5, 0).shape == (5, 2)


def test_every_circuit_has_a_variable_and_its_interchange_changes_answers():
    for name in TWINS:
        truth = Truth(compile(circuit(name), "mamba"))
        ids = truth.draw(40, 1)
        for variable in truth.variables:
            swapped = truth.pairs(variable, ids[:20], ids[20:]).answers
            assert (swapped != truth.answers(ids[:20])).any(), (name, variable)
            own = truth.pairs(variable, ids[:20], ids[:20]).answers
            assert (own == truth.answers(ids[:20])).all(), (name, variable)


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


@pytest.mark.parametrize(
    "rows",
    [
        3,
        [3],
        [{}],
        [{"circuit": "a", "kind": "plain", "method": "das"}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "area": "1"}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "area": 10**9}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "answers": -1}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "area": float("nan")}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "more": 1}],
    ],
)
def test_a_file_of_other_rows_is_refused(rows, tmp_path):
    (tmp_path / "keep.json").write_text(json.dumps({"rows": rows}))
    with pytest.raises(ValueError, match="keep.json: it holds no rows of scores"):
        kept(tmp_path / "keep.json")


def test_its_own_file_is_taken():
    assert kept(ROOT / "docs" / "scores.json") == KEPT["rows"]


def test_the_page_has_the_table_of_the_file():
    page = (ROOT / "docs" / "scores.md").read_text("utf-8")
    assert page == on_page(page, KEPT)
    oracle = [row for row in KEPT["rows"] if row["method"] == ORACLE]
    assert oracle and all(
        row[c] in (1, None) or abs(row[c] - 1) < 1e-9 for row in oracle for c in COLUMNS if row["kind"] != "twin"
    )
    assert {row["method"] for row in KEPT["rows"]} == {ORACLE, *METHODS}
