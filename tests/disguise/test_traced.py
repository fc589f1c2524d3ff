"""A disguised model read and set by the names of its circuit, and one with noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from compiler import CheckpointError, compile, load
from compiler.artifact.generate import transformers_model
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import text_hash
from compiler.artifact.model import Stack
from compiler.artifact.package import language_model, with_a_block
from compiler.disguise.basis import channels_used, lane_basis
from compiler.disguise.draw import draw
from compiler.disguise.errors import DisguiseError
from compiler.disguise.facts import facts_of
from compiler.disguise.key import read_key
from compiler.disguise.steps import Patch, undone
from compiler.disguise.traced import load_disguised
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.disguised import with_tensors
from constructions.registry import CONSTRUCTIONS
from examples.programs import two_brackets
from tests.disguise.pairs import run
from tests.disguise.test_disguise import inputs, same_bits
from tests.tracing.models import NAMED
from verify.kernel.certificate import claims_of, written

TEXT, PATCH = "( [ ] ( [", {"stack": {3: "["}}


@pytest.fixture(scope="module", params=["mamba", "mamba2"])
def pair(request, tmp_path_factory) -> tuple[Path, Path]:
    """A plain checkpoint of bounded brackets, and one in another basis, with its key beside."""
    place = tmp_path_factory.mktemp(request.param)
    compile(two_brackets.circuit(), request.param).save(place / "plain")
    assert run("disguise", place / "plain", "--out", place / "hidden", "--seed", 1, "--samples", 10) == 0
    return place / "plain", place / "hidden"


def opened(pair: tuple[Path, Path]):
    return load(pair[0]), load_disguised(pair[1], pair[1].with_name("hidden.key.json"))


def test_a_trace_has_the_plain_models_values(pair):
    plain, hidden = (model.trace(TEXT) for model in opened(pair))
    assert hidden.agrees and [*hidden] == [*plain]
    for name in hidden.readable:
        assert np.array_equal(hidden[name].raw, plain[name].raw), name
    assert hidden.why(2).answer == plain.why(2).answer
    stream = hidden._run.streams[-1][0, :, : plain.lanes.shape[1]].double().numpy()
    assert not np.array_equal(stream, plain.lanes), "the stream itself is in another basis"
    with pytest.raises(ValueError, match="no names"):
        hidden.block(1)


def test_patches_do_what_the_circuit_does(pair):
    plain, hidden = (model.patch(PATCH).trace(TEXT) for model in opened(pair))
    assert hidden.agrees and hidden["stack"][3] == "[" and np.array_equal(hidden.scores, plain.scores)
    assert opened(pair)[1].interchange("stack", [("( [", "[ (", 0), ("( [", "[ (", 1)]).exact == 1


def patched_by_hook(pair):
    model = opened(pair)[1]
    site, ids = model.hooks()["stack"], torch.tensor([model.truth.ids(TEXT).tolist()])
    return site, transformers_model(pair[1], "float32"), ids, torch.tensor(model.patch(PATCH).trace(TEXT).scores)


def test_a_hook_patches_the_librarys_model(pair):
    site, theirs, ids, expected = patched_by_hook(pair)
    seen = []

    def change(module, given, output):
        seen.append(output)
        return site.write(output, 3, "[")

    handle = theirs.get_submodule(site.module).register_forward_hook(change)
    with torch.no_grad():
        logits = theirs(ids).logits[0].double()
    handle.remove()
    assert torch.equal(logits, expected) and site.read(seen[0]) == [["(", "[", "(", "(", "["]]
    numbers = seen[0][0, :, list(site.lanes)].double().numpy() @ site.matrix[0].T
    assert np.array_equal(numbers, site.raw(seen[0])[0]), "the matrix says the same as read"


def test_nnsight_and_transformer_lens_patch_it(pair, tmp_path, monkeypatch):
    """By the lines of docs/ground_truth.md."""
    nnsight = pytest.importorskip("nnsight", reason="nnsight is not installed: pip install '.[interpretability]'")
    bridges = pytest.importorskip("transformer_lens.model_bridge", reason="transformer-lens is not installed")
    site, theirs, ids, expected = patched_by_hook(pair)
    wrapped = nnsight.NNsight(theirs)
    with torch.no_grad(), wrapped.trace(ids):
        layer = wrapped.backbone.layers[site.layer]
        layer.output = site.write(layer.output, 3, "[")
        logits = wrapped.lm_head.output.save()
    assert torch.equal(logits[0].double(), expected)
    bridge = bridges.TransformerBridge.boot_transformers(str(pair[1]), dtype=torch.float32)
    place = (site.transformer_lens, lambda tensor, hook: site.write(tensor, 3, "["))
    assert torch.equal(bridge.run_with_hooks(ids, fwd_hooks=[place])[0].double(), expected)


def test_the_command_traces_with_the_key(pair, capsys):
    key = pair[1].with_name("hidden.key.json")
    assert run("trace", pair[1], "--key", key, "--input", TEXT, "--patch", "stack@3=[", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] and found["variables"]["stack"]["values"][3] == "["
    with pytest.raises(CheckpointError, match="give its key with --key FILE"):
        run("trace", pair[1], "--input", TEXT)


def test_a_key_of_others_is_refused(pair, tmp_path):
    assert run("disguise", pair[0], "--out", tmp_path / "other", "--seed", 2, "--samples", 5) == 0
    with pytest.raises(DisguiseError, match="other weights"):
        load_disguised(pair[1], tmp_path / "other.key.json")
    with pytest.raises(DisguiseError, match="no disguised checkpoint"):
        run("trace", pair[0], "--key", tmp_path / "other.key.json", "--input", TEXT)


def test_the_basis_and_its_inverse_are_exact(pair):
    steps = read_key(pair[1].with_name("hidden.key.json")).steps
    width = load(pair[0]).config["hidden_size"]
    there, back = lane_basis(steps, width), lane_basis(steps, width, inverse=True)
    assert np.array_equal(there @ back, np.eye(width)) and (np.abs(there) > 0).sum() > width


# Noise ----------------------------------------------------------------------------------------------------


IN_HEAD = ("--noise", 1e-5, "--noise-in", "head")


def noisy(pair, out: Path, *more: object) -> Path:
    assert run("disguise", pair[0], "--out", out, "--seed", 1, "--samples", 20, "--json", *more) == 0
    return out


def test_noise_is_measured_and_taken_back(pair, tmp_path, capsys):
    out = noisy(pair, tmp_path / "noisy", "--noise", 1e-4)
    told = json.loads(capsys.readouterr().out)
    assert not told["bit_equal"] and told["noise"]["epsilon"] == 1e-4
    said = json.loads((out / "construction.json").read_text("utf-8"))["disguise"]["noise"]
    assert said == told["noise"] and said["answers"] > 50 and 0 < said["largest_change"] < 1
    assert "nothing of it is proved" in (out / "README.md").read_text("utf-8")
    key = tmp_path / "noisy.key.json"
    assert run("verify", out, "--key", key, "--samples", 5) == 0
    assert run("prove", out, "--key", key) == run("prove", out) == 1, "the weights with noise are not proved"
    assert run("undisguise", out, "--key", key, "--out", tmp_path / "back") == 0
    for file in pair[0].iterdir():
        assert (tmp_path / "back" / file.name).read_bytes() == file.read_bytes(), file.name
    with pytest.raises(DisguiseError, match="maker recorded.*noise of up to 0.0001 in every weight; on .* sequences"):
        run("verify", out)


def test_noise_in_the_head_leaves_a_lead_that_is_proved(tmp_path, capsys):
    assert run("keep-nth", "--n", 2, "--vocab", 4, "--out", tmp_path / "plain", "--samples", 20) == 0
    exact, out = (noisy([tmp_path / "plain"], tmp_path / n, *more) for n, more in (("exact", ()), ("noisy", IN_HEAD)))
    told = json.loads(capsys.readouterr().out.splitlines()[-1])["noise"]
    before, after = (load_file(place / "model.safetensors") for place in (exact, out))
    assert [name for name in before if not torch.equal(before[name], after[name])] == ["lm_head.weight"]
    assert "every input of its promise" in (out / "README.md").read_text("utf-8")
    assert run("prove", out, "--key", tmp_path / "noisy.key.json", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"]["proved"] and 0 < told["lead"] == found["noise"]["lead"] < found["task"]["margin"]
    loud = noisy([tmp_path / "plain"], tmp_path / "loud", "--noise", 0.5, "--noise-in", "head")
    assert "leads by" in json.loads((loud / "construction.json").read_text())["disguise"]["noise"]["unproved"]


def test_with_its_key_a_directory_is_proved_as_it_stands(tmp_path, capsys):
    """A key may do anything, and a directory may hold anything: neither is taken from the plain checkpoint."""
    assert run("keep-nth", "--n", 2, "--vocab", 4, "--out", tmp_path / "plain", "--samples", 20) == 0
    loud = noisy([tmp_path / "plain"], tmp_path / "loud", "--noise", 0.5)
    content = json.loads((loud / "construction.json").read_text("utf-8"))
    del content["sha256"], content["disguise"]["noise"]  # as if there were none
    (loud / "construction.json").write_text(canonical_json(content | {"sha256": text_hash(canonical_json(content))}))
    beside = noisy([tmp_path / "plain"], tmp_path / "beside")
    quiet = noisy([tmp_path / "plain"], tmp_path / "quiet", *IN_HEAD)
    for out in (beside, quiet):
        assert run("prove", out, "--key", out.with_name(f"{out.name}.key.json")) == 0
        (out / "special_tokens_map.json").write_text('{"bos_token": "v1"}')
    for out, part in ((loud, "arithmetic"), (beside, "meaning"), (quiet, "meaning")):
        capsys.readouterr()
        assert run("prove", out, "--key", out.with_name(f"{out.name}.key.json"), "--json") == 1
        found = json.loads(capsys.readouterr().out)
        assert found["task"]["proved"] and not found["accepted"] and not found["disguised"]["accepted"]
        assert not found["disguised"][part]["proved"], found["disguised"]


def test_a_certificate_overwrites_no_other_file_and_a_key_needs_a_disguise(pair, tmp_path):
    other = tmp_path / "weights"
    other.write_bytes(b"precious")
    with pytest.raises(ValueError, match="exists and is no certificate"):
        run("prove", pair[0], "--certificate", other)
    assert other.read_bytes() == b"precious"
    for text in (
        '{"version": 1, "claims": []}',
        '{"version": 4, "claims": [["cut", "mine"]]}',
        '{"version": "mine", "claims": [\n["cut","mine"]\n]}\n',
        '{"version": 4, "claims": [\n"mine"\n]}\n',
        '{"version": 4, "claims": {"mine": 1}}',
        '["version", "claims"]',
    ):
        other.write_text(text)
        with pytest.raises(ValueError, match="exists and is no certificate"):
            run("prove", pair[0], "--certificate", other)
        assert other.read_text() == text
    other.write_text(written([["cut", "a", []]]).replace('"version": 4', '"version": 1'))  # of an earlier version
    assert run("prove", pair[0], "--certificate", other) == 0
    assert claims_of(other)
    with pytest.raises(ValueError, match="nowhere does not exist"):
        run("verify", tmp_path / "nowhere", "--key", pair[1].with_name("hidden.key.json"))
    with pytest.raises(ValueError, match="is no disguised checkpoint"):
        run("prove", pair[0], "--key", pair[1].with_name("hidden.key.json"))


def test_of_a_circuit_without_a_task_no_lead_is_proved(pair, tmp_path, capsys):
    noisy(pair, tmp_path / "noisy", *IN_HEAD)
    assert "no lead of the right letter is proved" in json.loads(capsys.readouterr().out)["noise"]["unproved"]
    for wrong, why in (
        (("--noise-in", "head"), "it needs --noise"),
        (("--noise", 0.1, "--noise-in", "foot"), "all, head"),
    ):
        with pytest.raises(DisguiseError, match=why):
            run("disguise", pair[0], "--out", tmp_path / "d", *wrong)


def test_noise_is_a_share_of_each_weight(pair, tmp_path, capsys):
    exact, out = pair[1], noisy(pair, tmp_path / "noisy", "--noise", 0.3)  # of one seed
    said = json.loads(capsys.readouterr().out.splitlines()[-1])["noise"]
    plain, changed = (load_file(place / "model.safetensors") for place in (exact, out))
    for name, weights in plain.items():
        assert torch.equal(weights == 0, changed[name] == 0), name
        live = weights != 0
        share = (changed[name][live] / weights[live] - 1).abs()
        assert (share <= 0.3 + 1e-6).all() and ((share > 0.01).any() or not live.any()), name
    assert said["right"] < said["answers"], "so much noise is felt"


def test_noise_has_a_seed_and_a_limit(pair, tmp_path):
    out = noisy(pair, tmp_path / "a", "--noise", 0.01)
    again = noisy(pair, tmp_path / "b", "--noise", 0.01)
    read = lambda place: (place / "model.safetensors").read_bytes()
    assert read(out) == read(again) != read(pair[1])
    for wrong in (-0.1, 0.6, float("nan")):
        with pytest.raises(DisguiseError, match="at most 0.5"):
            run("disguise", pair[0], "--out", tmp_path / "d", "--noise", wrong)
    assert not (tmp_path / "d").exists()


# Groups of B and C ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 2, 3])
def test_groups_of_columns_keep_their_bits(level):
    """Two groups: they change places as wholes, and heads and columns within them."""
    one = grouped()
    assert one.model.config["n_groups"] == 2
    found = draw(facts_of(one.compiled, one.model), level, 3)
    assert any(found.tensors[name].tobytes() != t.numpy().tobytes() for name, t in one.model.tensors.items())
    other = with_tensors(one, found.tensors).stack()
    with torch.no_grad():
        for tokens in inputs(one):
            assert same_bits(one.stack()(tokens), other(tokens))
    orders = {tuple(draw(facts_of(one.compiled, one.model), 1, seed).steps[-2].order[:2]) for seed in range(8)}
    assert len(orders) > 1


def grouped() -> Built:
    return build(CONSTRUCTIONS["mqar"](kappa=4, vocab=6, arch="mamba2", n_groups=2))


# Channels merged ----------------------------------------------------------------------------------------------


def test_channels_that_compute_the_same_are_merged():
    """The last block of this circuit reads two flags twice on Mamba-2, so it has pairs of channels of equal rows."""
    compiled = with_a_block(compile(NAMED["accepted"].build(), "mamba2"))
    model = language_model(compiled)
    found = draw(facts_of(compiled, model), 3, 1)
    merged = [s.what for s in found.steps if isinstance(s, Patch) and s.what.get("change") == "merged"]
    assert found.counts["channels merged"] == len(merged) == 2
    plain, other = (
        Stack.from_language_model(model.config, tensors)
        for tensors in (model.tensors, {name: torch.from_numpy(t) for name, t in found.tensors.items()})
    )
    ids = torch.from_numpy(np.array(compiled.source.token_language.sample(40, 9, 0)))
    with torch.no_grad():
        assert same_bits(plain(ids), other(ids))
    back = undone(found.steps, found.tensors)
    assert all(back[name].tobytes() == t.numpy().tobytes() for name, t in model.tensors.items())
    only = [s for s in found.steps if isinstance(s, Patch) and s.what == merged[0]]
    used = np.zeros(model.config["intermediate_size"], dtype=bool)
    used[merged[0]["seats"]] = True  # of an edge that the other channel alone had, the one that is left has both
    after = channels_used(only, merged[0]["layer"], used)
    assert after[merged[0]["channel"]] and not after[merged[0]["seats"]].any()
