"""`construct graft` and `construct compose`: what they write, and exit codes 0, 1 and 2."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from compiler import compile
from compiler.artifact.manifest import manifest_content
from compiler.artifact.tokenizer import tokenizer_files
from compiler.graft import direct_sum
from compiler.graft.families import family
from compiler.graft.families.mamba import MambaHost
from constructions.command.cli import app
from tests.constructions.test_refusals import run
from tests.graft.hosts import VOCAB, counter, host, host_text, induction

NAMES = [f"w{i}" for i in range(VOCAB - 6)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A host with a tokenizer of 45 tokens beside an embedding of 48 rows."""
    place = tmp_path_factory.mktemp("host") / "host"
    host().save_pretrained(place)
    for name, content in tokenizer_files([*NAMES, "<eos>", "<pad>", "<unk>"]).items():
        (place / name).write_text(json.dumps(content))
    return place


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_construction_in_a_host_with_a_tokenizer(directory, tmp_path):
    out = tmp_path / "grafted"
    done = invoke("graft", directory, "induction-heads", "--out", out, "--samples", 10, "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["measured"]["host"]["worst"] == 0 and report["measured"]["answers"]["wrong"] == 0
    model, names = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    before = AutoModelForCausalLM.from_pretrained(directory)
    with torch.no_grad():
        assert torch.equal(model(host_text()).logits[..., :VOCAB], before(host_text()).logits)
    assert names("w3 w0 w7").input_ids == AutoTokenizer.from_pretrained(directory)("w3 w0 w7").input_ids
    text = "w3 <induction-heads:v4> <induction-heads:v9> w1 <induction-heads:v4>"
    ids = names(text, return_tensors="pt").input_ids
    with torch.no_grad():
        assert names.decode(model(ids).logits[0, -1].argmax()) == "<induction-heads:v9>"
    kept = json.loads((out / "graft.json").read_text())
    assert kept["letters"]["v4"] == int(ids[0, 1]) and "model.safetensors" in kept["files"]
    assert "induction-heads" in (out / "README.md").read_text()


def test_a_token_map_by_id_and_name(directory, tmp_path):
    (tmp_path / "map.json").write_text(json.dumps({"v0": 3, "v1": "w9"}))
    out = tmp_path / "grafted"
    done = invoke(
        "graft", directory, "induction-heads", "--out", out, "--tokens", tmp_path / "map.json", "--samples", 4, "--json"
    )
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    found, letters = report["measured"]["answers"], report["letters"]
    kept = json.loads((out / "graft.json").read_text())
    assert kept["measured"]["answers"] == found and "the host adds its own logits" in kept["circuit_promise"]["ties"]
    card = (out / "README.md").read_text()
    assert f"at {found['tied']} more positions of letters none leads" in card or not found["tied"]
    assert letters["v0"] == 3 and letters["v1"] == 9 and min(v for k, v in letters.items() if k not in "v0v1") == VOCAB


def test_two_circuits_of_other_names_are_composed(tmp_path):
    program = tmp_path / "circuits.py"
    program.write_text(
        "from tests.graft.hosts import counter, induction\ncounts = counter()\nfollows = induction('abc')\n"
    )
    out = tmp_path / "both"
    done = invoke("compose", f"{program}:counts", f"{program}:follows", "--out", out, "--samples", 20, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["circuit"] == "count+induction"
    assert invoke("verify", out, "--samples", 20).exit_code == 0
    assert invoke("prove", out).exit_code == 0
    told = invoke("compose", f"{program}:counts", f"{program}:follows", "--out", out, "--samples", 4, "--force")
    said = " ".join(told.stdout.split())  # nothing was proved yet, and `edit-distance lis` is not
    assert said.endswith(f"`construct prove {out}` says whether it is proved"), said


def test_a_composed_circuit_says_what_it_is_promised_for(tmp_path):
    """Two checkpoints in float16 and on Mamba-2 in bfloat16, united with the defaults and as asked."""
    for name, circuit, target, dtype in (
        ("one", counter(length=20), "mamba", "float16"),
        ("two", induction("abc", length=20), "mamba2", "bfloat16"),
    ):
        compile(circuit, target, dtype).save(tmp_path / name)
    command = ("compose", tmp_path / "one", tmp_path / "two", "--samples", 4, "--force", "--out", tmp_path / "both")
    said = " ".join(invoke(*command).stdout.split())
    assert "promised: for mamba in float32" in said
    assert "note: count was for mamba in float16 and is compiled anew" in said
    assert "note: induction was for mamba2 in bfloat16 and is compiled anew" in said
    assert manifest_content(tmp_path / "both")["promise"]["dtype"] == "float32"
    told = json.loads(invoke(*command, "--dtype", "float16", "--json").stdout)
    assert (told["target"], told["dtype"], [part["dtype"] for part in told["parts"]]) == (
        "mamba", "float16", ["float16", "bfloat16"],
    )  # fmt: skip
    assert manifest_content(tmp_path / "both")["promise"]["dtype"] == "float16"
    said = " ".join(invoke(*command, "--dtype", "float16").stdout.split())
    assert "promised: for mamba in float16" in said and "note: count" not in said and "note: induction" in said


def test_tokens_that_several_circuits_read_are_named(tmp_path):
    """Where both read a token their scores are added: the answer of neither need lead."""
    words = [("one", "--regex", "(a|b)*abb"), ("two", "--name", "parity", "--length", 20)]
    for name, *how in words:
        assert invoke("automaton", *how, "--samples", 4, "--out", tmp_path / name).exit_code == 0
    command = ("compose", tmp_path / "one", tmp_path / "two", "--samples", 4, "--out", tmp_path / "both")
    told = json.loads(invoke(*command, "--json").stdout)
    letters = {name: set(AutoTokenizer.from_pretrained(tmp_path / name).get_vocab()) for name in ("one", "two")}
    both = {letter for letter in letters["one"] & letters["two"] if letter[0] != "<"}
    (shared,) = told["read_by_several"]
    names = [f"automaton ({tmp_path / name})" for name in ("one", "two")]  # which is which
    assert shared["circuits"] == names == [each["circuit"] for each in told["among_others"]]
    assert {"a", "b"} <= set(shared["tokens"]) == both
    said = " ".join(invoke(*command, "--force").stdout.split())
    assert "there their scores are added, and which letter leads need be none's answer" in said
    answers = []
    for name in ("one", "two", "both"):
        names = AutoTokenizer.from_pretrained(tmp_path / name)
        ids = names("a b b", return_tensors="pt").input_ids
        with torch.no_grad():
            answers.append(
                names.decode(AutoModelForCausalLM.from_pretrained(tmp_path / name)(ids).logits[0, -1].argmax())
            )
    assert answers[0] != answers[1], "so one of them is not the composed model's"


def test_edited_weights_are_not_composed(tmp_path, capsys):
    for name, circuit in (("one", counter(length=6)), ("two", induction("ab", length=6))):
        compile(circuit).save(tmp_path / name)
    weights = load_file(tmp_path / "two" / "model.safetensors")
    weights["lm_head.weight"][0, 0] += 1
    save_file(weights, tmp_path / "two" / "model.safetensors", metadata={"format": "pt"})
    assert run("compose", *(str(tmp_path / name) for name in ("one", "two")), "--out", str(tmp_path / "both")) == 1
    assert "lm_head.weight differ" in capsys.readouterr().err
    assert not (tmp_path / "both").exists()


def test_misuse_is_one_sentence_and_exit_code_2(directory, tmp_path, capsys):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "far.json").write_text('{"v0": "nowhere"}')
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    graft = ("graft", str(directory), "induction-heads", "--out")
    for arguments, words in (
        ((*graft, str(full)), "no grafted model"),
        ((*graft, str(tmp_path / "o"), "--width", "70"), "the least width that holds them"),
        ((*graft, str(tmp_path / "o"), "--tokens", str(tmp_path / "list.json")), "must hold an object"),
        ((*graft, str(tmp_path / "o"), "--tokens", str(tmp_path / "far.json")), "no token of the host"),
        (("graft", str(tmp_path), "induction-heads", "--out", str(tmp_path / "o")), "config.json"),
        (("graft", str(directory), "nonsense", "--out", str(tmp_path / "o")), "no construction"),
        (("graft", str(directory), "automaton", "--out", str(tmp_path / "o")), "run `construct automaton`"),
        (("compose", "automaton", "induction-heads", "--out", str(tmp_path / "o")), "run `construct automaton`"),
        (("compose", "induction-heads", "--out", str(tmp_path / "o")), "at least two"),
    ):
        assert run(*arguments) == 2
        told = capsys.readouterr().err.strip()
        assert words in told.replace("\n", " ") and "Traceback" not in told
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("mode", "content", "words"),
    [
        ("direct-sum", '{"v0": 3, "v0": 4}', "the key 'v0' stands in one object twice"),
        ("direct-sum", None, "--tokens"),
        ("direct-sum", '{"v0": [3, 4]}', "lists belong to a side branch (--mode branch)"),
        ("branch", '{"v0": []}', "leads 'v0' to no token at all"),
        ("branch", '{"v0": [3, 3]}', "leads 'v0' to 3 twice"),
        ("branch", '{"v0": 3, "v1": [4, 3]}', "leads 'v0' and 'v1' both to 3"),
    ],
)
def test_a_token_map_that_cannot_be_is_refused(directory, tmp_path, capsys, mode, content, words):
    place = tmp_path / "map.json"
    if content is not None:
        place.write_text(content)
    out = tmp_path / "o"
    arguments = ("induction-heads", "--out", str(out), "--mode", mode, "--tokens", str(place))
    assert run("graft", str(directory), *arguments) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert words in told and "Traceback" not in told and not out.exists()


def test_what_mapped_letters_leave_to_the_host_is_compared(directory, tmp_path, monkeypatch):
    """Tokens of the host are what they were after letters too; one that speaks as a letter does is exit code 1."""
    (tmp_path / "map.json").write_text(json.dumps({f"v{i}": 3 + i for i in range(16)}))
    arguments = ("graft", directory, "induction-heads", "--tokens", tmp_path / "map.json", "--samples", 2)
    done = invoke(*arguments, "--out", tmp_path / "good", "--json")
    assert done.exit_code == 0, done.stderr
    measured = json.loads(done.stdout)["measured"]["host"]
    assert measured["worst"] == 0 and measured["same_sums"] and measured["nats_before"] == measured["nats_after"] > 0
    held = direct_sum._head

    def loud(plan, host, ids, vocab):
        table = held(plan, host, ids, vocab)
        table[40, plan.host.d_model :] = table[3, plan.host.d_model :]
        return table

    monkeypatch.setattr(direct_sum, "_head", loud)
    done = invoke(*arguments, "--out", tmp_path / "bad")
    assert done.exit_code == 1 and "the host's logits changed" in done.stderr and not (tmp_path / "bad").exists()


def test_sums_that_differ_are_exit_code_1(directory, tmp_path, monkeypatch):
    held = MambaHost.widened

    def wrong(self, state, host, wide):
        result = held(self, state, host, wide)
        return result | {"D": result["D"] * (1 + 2**-12)}

    monkeypatch.setattr(MambaHost, "widened", wrong)
    done = invoke("graft", directory, "induction-heads", "--out", tmp_path / "o", "--samples", 2)
    assert done.exit_code == 1 and "contradicts what is proved" in done.stderr
    assert "proved:" not in done.stdout and not (tmp_path / "o").exists()


def test_the_level_follows_what_is_stored(directory, tmp_path, monkeypatch):
    """Norm weights that are not scaled exactly are no reason to fail, but nothing is called equal."""
    held = family.widened_norm
    monkeypatch.setattr(family, "widened_norm", lambda *told: held(*told) * (1 + 2**-12))
    done = invoke("graft", directory, "induction-heads", "--out", tmp_path / "o", "--samples", 2, "--json")
    promise = json.loads(done.stdout)["host_promise"]
    assert done.exit_code == 0 and promise["level"] == "rounded norm weights"
    assert 2**-13 < promise["norm_change"] < 2**-11 and "bit for bit" not in promise["proved"]
    assert "zeros" not in promise["text"] and promise["text"] in (tmp_path / "o" / "README.md").read_text()


def test_wrong_answers_are_exit_code_1(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(direct_sum, "_scale", lambda *told: -1.0)  # the best letter becomes the worst
    done = invoke("graft", directory, "induction-heads", "--out", tmp_path / "o", "--samples", 4)
    assert done.exit_code == 1 and "wrong answers" in done.stderr
    assert "nothing is saved" in done.stdout and not (tmp_path / "o").exists()
    done = invoke("graft", directory, "induction-heads", "--out", tmp_path / "o", "--samples", 4, "--json")
    assert done.exit_code == 1 and json.loads(done.stdout)["directory"] is None


def test_a_branch_that_changes_its_host_is_not_saved(directory, tmp_path, monkeypatch):
    from compiler.graft import side

    held = side.branch

    def loud(*told, **options):
        joined = held(*told, **options)
        with torch.no_grad():
            joined.say.add_(1.0)
        return joined

    monkeypatch.setattr(side, "branch", loud)
    (tmp_path / "map.json").write_text(json.dumps({f"v{i}": 3 + i for i in range(16)}))
    out = tmp_path / "o"
    arguments = ("induction-heads", "--mode", "branch", "--tokens", tmp_path / "map.json", "--out", out)
    done = invoke("graft", directory, *arguments)
    assert done.exit_code == 1 and "equal ones are promised" in done.stderr and not out.exists()
