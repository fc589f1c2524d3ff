"""Circuits for Gated DeltaNet beside hosts with the same rule: swaps and deletion, against plain Python."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM

from compiler import Alphabet, Circuit, InputLanguage, Tokens, memory, permute, readout_one_hot
from compiler.graft import branch
from tests.constructions.test_refusals import run
from tests.graft.hosts import VOCAB
from tests.graft.test_branch import LETTERS, TOKENS, text, trained
from tests.graft.test_branch_hosts import made, named

ALPHABET = Alphabet(tuple(LETTERS))


def swaps() -> Circuit:
    """A place of three, from the first on: a and b swap neighbours; c, d and e lead to the first, second and third."""
    letters = Tokens(ALPHABET)
    state = permute(0, letters.one_hot(["a", "b"]), [(0, 1), (1, 2)], letters.one_hot(["c", "d", "e"]))
    scores = readout_one_hot(state, ALPHABET, ["a", "b", "c"])
    return Circuit("swaps", scores, InputLanguage.everything(ALPHABET, 10**6))


def swapped(words: list[str | None]) -> list[str | None]:
    place, answers = 0, []
    for word in words:
        if word in ("a", "b"):
            pair = (0, 1) if word == "a" else (1, 2)
            place = sum(pair) - place if place in pair else place
        elif word is not None:
            place = "cde".index(word)
        answers.append(None if word is None else "abc"[place])
    return answers


def deletion() -> Circuit:
    """What followed each letter last; what follows an e is forgotten for the letter before that."""
    x = Tokens(ALPHABET)
    last, e = x.one_hot(), x.is_in("e")
    held = memory.write(key=last.shift(1), value=last, policy="last").delete(e).read(last)
    return Circuit("deletion", readout_one_hot(held, ALPHABET), InputLanguage.everything(ALPHABET, 1000))


def deleted(words: list[str | None]) -> list[str | None]:
    kept: dict[str, str | None] = {}
    answers, before = [], None
    for word in words:
        if before is not None:
            kept[before] = None if word == "e" else word
        answers.append(None if word is None else kept.get(word))
        before = word
    return answers


CASES = {
    "olmo-hybrid: a gated delta rule": ("gated-deltanet", swaps, swapped),
    "qwen3.5: a gated delta rule": ("gated-deltanet-qwen", deletion, deleted),
}


@pytest.mark.parametrize("name", CASES)
def test_swaps_and_deletion_beside_a_host_with_the_same_rule(name, tmp_path):
    """One pass, pieces into which padding goes on, cached generation, and the saved directory."""
    target, build, answers = CASES[name]
    model, ids = made(name), text(0.3)
    mask = torch.stack([(torch.arange(40) >= start).long() for start in (12, 7, 1, 0)])
    joined = branch(model, build(), TOKENS, where="both", target=target)
    letter_of = {place: letter for letter, place in TOKENS.items()}
    with torch.no_grad():
        assert torch.equal(joined(ids, attention_mask=mask).logits, model(ids, attention_mask=mask).logits)
        whole = trained(joined)(ids, attention_mask=mask).logits
        found = joined.reader(ids, mask)
        for piece in (1, 5, 13):
            cache, pieces = joined.new_cache(), zip(ids.split(piece, 1), mask.split(piece, 1), strict=True)
            parts = torch.cat([joined.reader(part, told, cache) for part, told in pieces], 1)
            assert torch.equal(parts[mask > 0], found[mask > 0])
        joined.save_pretrained(tmp_path)
        assert torch.equal(AutoModelForCausalLM.from_pretrained(tmp_path)(ids, attention_mask=mask).logits, whole)
    asked = 0
    for row, told, answer in zip(ids, mask, found, strict=True):
        wanted = answers([letter_of.get(int(token)) for token in row[told > 0]])
        assert named(answer[told > 0]) == wanted
        asked += sum(word is not None for word in wanted)
    assert asked > 40
    options = {"max_new_tokens": 6, "do_sample": False, "eos_token_id": None, "pad_token_id": VOCAB - 1}
    told = {"attention_mask": mask[:, :20]}
    kept = joined.generate(ids[:, :20], **told, **options)
    assert torch.equal(kept, joined.generate(ids[:, :20], **told, use_cache=False, **options))


CIRCUIT = """
from compiler import Alphabet, Circuit, InputLanguage, Tokens, permute, readout_one_hot
two = Alphabet.of("a", "b")
state = permute(0, Tokens(two).one_hot(["b"]), [(0, 1)])
parity = Circuit("parity", readout_one_hot(state, two, ["a", "b"]), InputLanguage.everything(two, 10**6))
"""


def test_the_command_asks_which_mixers_the_circuit_has(tmp_path, capsys):
    made("olmo-hybrid: a gated delta rule").save_pretrained(tmp_path / "host")
    (tmp_path / "map.json").write_text(json.dumps({"a": 3, "b": [4, 5]}))
    (tmp_path / "own.py").write_text(CIRCUIT)
    command = ["graft", str(tmp_path / "host"), f"{tmp_path}/own.py:parity", "--tokens", str(tmp_path / "map.json")]
    command += ["--out", str(tmp_path / "out")]
    assert run(*command, "--mode", "branch") == 2
    assert "gated-deltanet has reflections" in " ".join(capsys.readouterr().err.split())
    assert run(*command, "--target", "gated-deltanet") == 2
    assert "a direct sum has the host's mixers" in " ".join(capsys.readouterr().err.split())
    assert run(*command, "--mode", "branch", "--target", "gated-deltanet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["measured"]["host"]["worst"] == 0
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    answers = model.reader(torch.tensor([[5, 9, 3, 4, 4, 5]]))
    assert named(answers[0]) == ["b", None, "b", "a", "b", "a"]
