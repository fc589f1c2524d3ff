"""What a construction guarantees, in words and as data: proved where the checker proves it, and which part is not."""

import json

import pytest

from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import manifest_content, sealed
from compiler.driver import compile
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import Tokens
from compiler.language.words import count
from constructions.checkpoints import artifact
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.guarantee import proof_of, sentence
from constructions.checkpoints.saved import verify_checkpoint
from constructions.registry import CONSTRUCTIONS
from verify.check import Verification
from verify.checker.check import UNSTATED, Verdict, check

PROVED = [
    ("mqar", {"kappa": 3, "vocab": 6}, 62259200),
    ("mqar", {"kappa": 3, "vocab": 6, "dtype": "bfloat16"}, 4),
    ("mqar", {"kappa": 3, "vocab": 6, "write": "first"}, 4),
    ("mqar", {"kappa": 3, "vocab": 6, "write": "last"}, 4),
    ("mqar", {"kappa": 3, "vocab": 6, "arch": "mamba2"}, 4),
    ("mqar", {"kappa": 3, "vocab": 6, "arch": "mamba2", "write": "first"}, 4),
    ("mqar", {"kappa": 3, "vocab": 6, "arch": "mamba2", "write": "last"}, 4),
    ("mqar", {"kappa": 3, "vocab": 6, "arch": "s4d"}, 4),
    ("mqar", {"kappa": 4, "vocab": 6, "guarantee": "random", "key_code": 64}, 128),
    ("induction-heads", {"vocab": 5}, 1),
    ("induction-heads", {"vocab": 5, "codes": True}, 1),
    ("induction-heads", {"vocab": 5, "arch": "mamba2"}, 1),
    ("keep-nth", {"n": 3, "vocab": 8}, 4),
    ("keep-nth", {"n": 3, "vocab": 8, "arch": "mamba2"}, 4),
    ("absolute-time", {"horizon": 6}, 1),
    ("absolute-time", {"horizon": 6, "arch": "mamba2"}, 1),
    ("absolute-time", {"horizon": 6, "arch": "s4d"}, 1),
    ("count-in-row", {"largest": 5}, 1),
    ("count-in-row", {"largest": 5, "arch": "mamba2"}, 1),
    ("copy", {"n": 3}, 1),
    ("copy", {"form": "place", "n": 3, "vocab": 3, "arch": "mamba2"}, 1),
    ("selective-copy", {"n": 2, "vocab": 2, "length": 4}, 1),
    ("lcs", {"length": 3}, 1),
]


def made(name: str, params: dict) -> Built:
    return build(CONSTRUCTIONS[name](**params))


@pytest.mark.parametrize("name, params, margin", PROVED, ids=str)
def test_every_answer_is_proved_from_the_weights(name, params, margin):
    found, said = proof_of(made(name, params))
    assert found["holds"] and found["margin"] == margin and found["level"] == "bit-exact"
    assert said.startswith(f"proved from the weights: every answer is right, with margin {margin:g}; it rests on")


@pytest.mark.parametrize("name", ["max-subarray", "knapsack"])
def test_the_scores_of_chains_are_proved(name):
    """Of the circuit that the checkpoint stores, where the weights of rules are numbers."""
    found, said = proof_of(made(name, {}))
    assert found["parts"]["arithmetic"] and found["parts"]["meaning"] and not found["parts"]["task"]
    assert "what they answer is only tested" in said


def test_what_is_only_tested_is_named():
    found, said = proof_of(made("lis", {}))
    assert not found["holds"] and not found["parts"]["task"] and "only tested" in said
    codes = proof_of(made("mqar", {"kappa": 16, "vocab": 8, "guarantee": "random"}))
    assert not codes[0]["holds"] and not codes[0]["parts"]["task"] and "only tested" in codes[1]


def test_a_mixer_without_checkpoints_keeps_its_certificate():
    found, said = proof_of(made("induction-heads", {"vocab": 3, "arch": "mamba-delta-t"}))
    assert found["kind"] == "ColumnsCertificate" and found["holds"] and "every answer is right with margin 0.5" in said


@pytest.mark.parametrize(
    "verdict, said",
    [
        (Verdict("d", None, None, None), "every score is the circuit's; what they answer is only tested; it rests on"),
        (Verdict("d", None, None, None, "why"), "what they answer is only tested (why)"),
        (Verdict("d", None, "why", None, None), "proved of the circuit: every answer is right; that the weights"),
        (Verdict("d", "why", "why", "why", UNSTATED), "only tested: that the scores are the circuit's (why)"),
    ],
)
def test_the_words_claim_no_more_than_the_verdict(verdict, said):
    assert said in sentence(verdict)


def test_a_circuit_of_one_s_own_is_proved_to_be_what_the_weights_compute(tmp_path):
    letters = Alphabet.of("a", "b", *(str(n) for n in range(4)))
    x = Tokens(letters)
    run = count(x.is_in("a"), reset=x.is_in("b"))
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 9, "strings of a and b")
    compile(Circuit("run", readout_integer(run, letters, {str(n): n for n in range(4)}), language)).save(tmp_path / "c")
    found = verify_checkpoint(tmp_path / "c", "none").proof
    assert found[1].startswith("proved from the weights: every score is the circuit's; it rests on")
    assert found[0]["parts"] == {"arithmetic": True, "meaning": True, "specials": True, "task": False}


def test_the_files_say_what_the_checker_proves(tmp_path):
    """Manifest, card and `construct verify` have one sentence; the checker proves it of the files; a false one is
    found."""
    built = made("mqar", {"kappa": 2, "vocab": 3, "length": 16})
    proof = proof_of(built)
    artifact.save(built, {}, tmp_path / "c", None, proof)
    manifest, verdict = manifest_content(tmp_path / "c"), check(tmp_path / "c")
    assert verdict.accepted and verdict.task is None and float(verdict.margin) == proof[0]["margin"]
    assert manifest["guarantee"]["proof"] == proof[1] == verify_checkpoint(tmp_path / "c", "none").proof[1]
    assert proof[1] in (tmp_path / "c" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("older", [False, True])
def test_what_was_saved_without_a_test_is_not_said_to_be_tested(older, tmp_path):
    """The card and the manifest of `--verify none`; an earlier version wrote there what it writes of a test."""
    built = made("lis", {})
    proof = proof_of(built)
    artifact.save(built, artifact.not_run(built), tmp_path / "c", None, proof)
    manifest = manifest_content(tmp_path / "c")
    for said in (manifest["guarantee"]["proof"], (tmp_path / "c" / "README.md").read_text("utf-8")):
        assert "what they answer is neither proved nor tested here" in said and "only tested" not in said
    if older:
        manifest["guarantee"]["proof"] = proof[1]
        (tmp_path / "c" / "construction.json").write_text(canonical_json(sealed(manifest, tmp_path / "c")))
    assert not verify_checkpoint(tmp_path / "c", "none").complaints
    run = artifact.report(built, {"run": Verification(sequences=1)}, None, None, proof)
    assert "what they answer is only tested" in run["guarantee"]["proof"]


@pytest.mark.parametrize("task", [{"write": "first"}, {"values": "v"}, {"name": "sorting"}], ids=str)
def test_another_task_than_the_circuit_s_is_rejected(task, tmp_path):
    built = made("mqar", {"kappa": 2, "vocab": 3, "length": 16})
    artifact.save(built, {}, tmp_path / "c", None, proof_of(built))
    path = tmp_path / "c" / "construction.json"
    manifest = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(manifest | {"task": manifest["task"] | task}), "utf-8")
    verdict = check(tmp_path / "c")
    assert verdict.weights is None and verdict.task and not verdict.accepted
