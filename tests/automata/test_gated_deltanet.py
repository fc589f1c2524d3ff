"""Automata with groups on Gated DeltaNet: blocks, and a checkpoint in plain transformers, beside their tables."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from compiler.automata.regex import regex_table
from compiler.automata.table import Table
from compiler.compiled import run_blocks
from compiler.driver import compile
from compiler.errors import CompileError
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.explain import decide
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import drawn
from constructions.checkpoints.built import build
from constructions.command.cli import app
from tests.automata.groups import alternating, cyclic, group_table, symmetric
from tests.automata.tables import answers
from tests.automata.walked import most_layers

TABLES = {name: NAMED[name].make() for name in ("parity", "abab-star", "tomita-3", "cycle-5", "s3", "ends-with-abb")}
TABLES |= {"C_3": group_table(cyclic(3)), "S_3": group_table(symmetric(3)), "C_9": group_table(cyclic(9))}
TABLES |= {"one answer": drawn(1), "a place that no first swap moves": drawn(21)}
PAGE = (Path(__file__).parents[2] / "docs" / "groups.md").read_text("utf-8")
NAMES, COUNTS = re.search(r"^(\| `parity`.*)\n\| --- .*\n(.*)$", PAGE, re.MULTILINE).groups()  # type: ignore[union-attr]
BLOCKS = dict(zip(re.findall(r"`(.*?)`", NAMES), map(int, re.findall(r"\d+", COUNTS)), strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_blocks_answer_what_the_table_answers(name: str) -> None:
    table = TABLES[name]
    construction = Automaton(table=table_json(table), arch="gated-deltanet")
    compiled, alphabet = construction.compiled(), construction.alphabet()
    assert len(compiled.blocks) <= most_layers(construction)
    assert BLOCKS.get(name, len(compiled.blocks)) == len(compiled.blocks)
    letters = [alphabet.index(letter) for letter in table.letters]
    words = np.random.default_rng(0).integers(len(letters), size=(4, 60))
    said = (run_blocks(compiled, np.array(letters)[words])[-1] @ compiled.head.toarray().T).argmax(axis=-1)
    for word, row in zip(words.tolist(), said.tolist(), strict=True):
        assert [alphabet.tokens[i] for i in row] == answers(table, word)


@pytest.mark.parametrize("arch, length, upto", [("gated-deltanet", None, 7), ("mamba", 20, 5)])
def test_a_level_that_has_fewer_tiles_than_where_it_starts(arch: str, length: int | None, upto: int) -> None:
    """Its start is tile 2, and behind another value of the level above only two tiles are left, which a letter swaps.

    All words of up to so many letters, beside Python's own expressions.
    """
    expression, letters = "(c|a[^b])+|(c|b*)*", "abc"
    construction = Automaton(table=table_json(regex_table(expression, letters)), arch=arch, max_length=length)  # type: ignore[arg-type]
    assert decide(construction.given).groups[0].name == "C_2"
    compiled, alphabet = construction.compiled(), construction.alphabet()
    words = list(product(letters, repeat=upto))
    tokens = np.array([[alphabet.index(letter) for letter in word] for word in words])
    said = (run_blocks(compiled, tokens)[-1] @ compiled.head.toarray().T).argmax(axis=-1)
    accepts = re.compile(expression).fullmatch
    for word, row in zip(words, said.tolist(), strict=True):
        matched = [accepts("".join(word[:end])) is not None for end in range(1, upto + 1)]
        assert [alphabet.tokens[i] == "yes" for i in row] == matched


def run(*arguments: str) -> dict:
    done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout)


def test_parity_for_ever_in_plain_transformers(tmp_path: Path) -> None:
    out = str(tmp_path / "parity")
    report = run(
        *("automaton", "--regex", "(b*ab*a)*b*", "--arch", "gated-deltanet", "--length", "forever"),
        *("--out", out, "--samples", "20"),
    )
    assert report["promise"] == "every length"
    from transformers import AutoModelForCausalLM, AutoTokenizer

    names = AutoTokenizer.from_pretrained(out)
    yes, no, a = (names.convert_tokens_to_ids(token) for token in ("yes", "no", "a"))
    word = torch.from_numpy(np.random.default_rng(1).choice([a, names.convert_tokens_to_ids("b")], size=(1, 3000)))
    right = torch.where((word == a).cumsum(-1) % 2 == 0, yes, no)
    for dtype in ("float32", "bfloat16"):
        model = AutoModelForCausalLM.from_pretrained(out, dtype=dtype)
        with torch.no_grad():
            assert torch.equal(model(word).logits.argmax(-1), right), dtype
    card = (tmp_path / "parity" / "README.md").read_text("utf-8")
    assert "exact weights of a real Gated DeltaNet model" in card and "\n- gated-deltanet\n" in card


def test_it_is_explained_with_its_theorem() -> None:
    said = run("automaton", "--name", "a5", "--explain")
    assert said["swaps"] == 4
    told = "Gated DeltaNet: 4 columns of state, each moved by one swap of two places a letter, and 0 resets"
    assert said["says"][-1].startswith(told) and "Grazzi" in said["says"][-1]


def test_no_swap_is_told_where_there_is_none() -> None:
    said = run("automaton", "--name", "ends-with-abb", "--explain")
    assert said["swaps"] == 0 and said["says"][-1] == "Gated DeltaNet: 3 resets, every length (Krohn and Rhodes 1965)."


def test_what_is_too_large_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from compiler.automata import turning

    monkeypatch.setattr(turning, "MOST_PLACES", 2)
    with pytest.raises(ValueError, match="moves 3 places, and 2 are the most"):
        CliRunner().invoke(app, ["automaton", "--name", "s3", "--arch", "gated-deltanet"], catch_exceptions=False)


def test_a_swap_that_is_looked_up_is_printed_as_it_is_meant() -> None:
    """Its flag is a sum of ramps, whose weights are larger than the flag."""
    table = NAMED["modulo-5"].make()
    built = build(Automaton(table=table_json(table), arch="gated-deltanet"))
    stack, letters = built.stack(), np.array([built.construction.alphabet().index(a) for a in table.letters])
    assert stack is not None
    word = np.random.default_rng(0).integers(len(letters), size=100)
    with torch.no_grad():
        said = stack(torch.from_numpy(letters[word])[None]).argmax(dim=-1)[0]
    assert [built.construction.alphabet().tokens[i] for i in said.tolist()] == answers(table, word.tolist())


def _in_bfloat16(table: Table) -> int:
    """How many blocks it takes."""
    circuit = Automaton(table=table_json(table), arch="gated-deltanet").circuit()
    return len(compile(circuit, "gated-deltanet", dtype="bfloat16").blocks)


@pytest.mark.parametrize("name", ["parity", "abab-star", "s3", "cycle-5", "A_5"])
def test_bfloat16_is_compiled(name: str) -> None:
    table, blocks = (group_table(alternating(5)), 18) if name == "A_5" else (TABLES[name], BLOCKS[name])
    assert _in_bfloat16(table) == blocks


def test_bfloat16_is_refused_with_the_number() -> None:
    (reached,) = re.findall(r"`C_7` is refused: .* may reach (\d+)", " ".join(PAGE.split()))
    with pytest.raises(CompileError, match=f"can reach {reached} quanta, and bfloat16 adds exactly up to 256"):
        _in_bfloat16(group_table(cyclic(7)))


def test_the_command_takes_the_dtype(tmp_path: Path) -> None:
    report = run(
        *("automaton", "--name", "s3", "--arch", "gated-deltanet", "--dtype", "bfloat16", "--samples", "5"),
        *("--out", str(tmp_path / "s3")),
    )
    assert report["dtype"] == "bfloat16" and report["guarantee"]["certificate"]["holds"]
