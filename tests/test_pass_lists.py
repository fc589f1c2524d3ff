"""The passes, strategies and variants as data: the page prints them, and the command tells what they did."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import compiler
from compiler import run as run_module
from compiler.driver import compile
from compiler.language import memory
from compiler.pipeline import PASSES, STRATEGIES, VARIANTS
from compiler.steps import AS_WRITTEN
from scripts import pass_lists
from tests.circuits import is_a, is_b, over_abc, token
from tests.constructions.test_construct import run

ROOT = Path(compiler.__file__).parents[1]


def test_the_page_has_the_lists_of_the_program() -> None:
    page = pass_lists.PAGE.read_text("utf-8")
    assert pass_lists.written(page) == page
    assert all(f"**{entry.name}**" in page for entry in (*PASSES, *STRATEGIES, *VARIANTS))
    with pytest.raises(ValueError, match="the lists belong between them"):
        pass_lists.written("no marks")


def test_every_pass_file_is_in_the_table() -> None:
    """A pass that no tuple names never runs; what the others call are parts, and say so."""
    parts = {"conditions", "direct_sums", "fold_masks", "lane_by_lane", "logic", "urgency", "represent", "__init__"}
    files = {path.stem for path in (ROOT / "compiler" / "passes").glob("*.py")} - parts
    named = {entry.name.replace(" ", "_") for entry in (*PASSES, *STRATEGIES)}
    assert files <= named


def test_each_sentence_is_one() -> None:
    for entry in (*PASSES, *STRATEGIES, *VARIANTS):
        assert entry.does[0].isupper() and entry.does.endswith(".") and entry.does.count(". ") == 0, entry.name


def test_a_circuit_tells_what_its_passes_did() -> None:
    steps = compile(over_abc("count", is_a.cumsum())).steps
    assert [step.name for step in steps] == [entry.name for entry in PASSES]
    assert {step.attempt for step in steps} == {AS_WRITTEN} and not any(step.refused for step in steps)


def test_a_refusal_is_one_error_with_what_was_tried() -> None:
    with pytest.raises(compiler.CompileError) as refusal:
        compile(over_abc("square", (2**20 * is_a).cumsum() ** 2, 1 << 16))
    text = "".join(traceback.format_exception(refusal.value))
    assert text.count("Traceback (most recent call last)") == 1
    attempts = dict.fromkeys(step.attempt for step in refusal.value.steps)
    assert list(attempts) == [AS_WRITTEN, "offsets", "once"]
    assert [step.name for step in refusal.value.steps if step.refused] == ["check exact", "check exact"]
    assert refusal.value.steps[-1].said == "changes nothing"


def test_no_pass_changes_what_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, types, inputs and domains of a circuit are the same after each pass."""
    entries, changed = [], []

    def watched(entry):
        def guarded(form, context):
            streams = getattr(form, "streams", ())
            before = [(s.name, s.type, s.inputs, s.operation, s.origin) for s in streams]
            known = dict(context.domains._known)
            made = entry.run(form, context)
            after = [(s.name, s.type, s.inputs, s.operation, s.origin) for s in streams]
            now = context.domains._known
            if before != after or any(now[stream] is not domain for stream, domain in known.items()):
                changed.append(entry.name)
            return made

        return type(entry)(entry.name, entry.stage, guarded, entry.does)

    entries = [watched(entry) for entry in PASSES]
    monkeypatch.setattr(run_module, "PASSES", tuple(entries))
    for stream in (is_a.cumsum() == 3, memory.write(token, is_a).read(token.shift(1)), is_a.shift(9) & is_b):
        for target in ("mamba", "mamba2"):
            compile(over_abc("watched", stream), target)
    assert changed == []


def test_the_command_prints_the_passes(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    assert run("show", "keep-nth", "--passes") == 0
    said = capsys.readouterr().out
    assert said.startswith(AS_WRITTEN) and all(entry.name in said for entry in PASSES)
    file = tmp_path / "own.py"
    file.write_text(
        "from compiler import *\nletters = Alphabet.of('a', 'b')\nx = Tokens(letters)\n"
        "total = (2**20 * x.is_in('a')).cumsum()\n"
        "circuit = Circuit('sum', total ** 2, InputLanguage.everything(letters, 1 << 16))\n"
    )
    assert run("show", f"{file}:circuit", "--passes") == 2
    said = capsys.readouterr().out
    assert "refused: " in said and "offsets" in said and "quanta" in said
