"""docs/extending.md does what it says: its code, run outside the package, compiles, runs, verifies, saves and
explains.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch

from compiler import targets
from compiler.analysis.domains import Domains
from compiler.artifact import formats
from compiler.artifact.formats import format_names
from compiler.artifact.package import bare, language_model
from compiler.compiled import run_blocks
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.export.errors import ExportError
from compiler.ir import printer
from compiler.passes.represent import RULES as REWRITINGS
from compiler.targets import target_names
from tests.constructions.test_construct import run as run_command
from tests.fresh import fresh
from tests.verify.checker.checkpoints import write
from tests.verify.checker.faults import inject
from verify.checker.check import check
from verify.checker.formats import FORMATS
from verify.checker.meaning.conditions import Conditions, Unproved
from verify.checker.meaning.rules import RULES as PROOF_RULES
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import World, of_letters

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The module, as long as these tests run: others list the targets and formats, and know nothing of it."""
    path = tmp_path_factory.mktemp("outside") / "toy.py"
    path.write_text("\n\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.S)), "utf-8")
    spec = importlib.util.spec_from_file_location("toy", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["toy"] = module
    with patch.dict(targets._TARGETS), patch.dict(formats._FORMATS), patch.dict(REWRITINGS), patch.dict(PROOF_RULES):
        spec.loader.exec_module(module)
        yield module


def _tokens(length: int = 16) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 3, (20, length))


def _by_hand(tokens: np.ndarray) -> list[list[int]]:
    """The circuit in plain Python."""
    answers = []
    for row in tokens.tolist():
        counts = [2 * sum(token == 0 for token in row[: max(0, t - 5)]) for t in range(len(row))]
        answers.append([1 if n > 2 else 2 if n == 2 else 3 for n in counts])
    return answers


def test_the_toys_are_registered(toy):
    assert "mamba-wide" in target_names() and "names" in format_names()


def test_interpreter_blocks_and_modules_agree_with_plain_python(toy):
    tokens = _tokens()
    expected = np.array(_by_hand(tokens))
    assert (toy.compiled.interpret(tokens)[..., 0] == expected).all()
    last = run_blocks(toy.compiled, tokens)[-1]
    assert np.array_equal(last, toy.compiled.lane_values(tokens))
    stack = bare(toy.compiled)
    with torch.no_grad():
        assert (stack(torch.from_numpy(tokens))[..., 0].numpy() == expected).all()
    assert stack.blocks[0].d_conv == 8


def test_the_target_reaches_as_far_as_it_says(toy):
    narrow, wide = (len(toy.compile(toy.circuit, target).blocks) for target in ("mamba", "mamba-wide"))
    assert wide < narrow


def test_saving_and_explaining(toy, tmp_path):
    toy.compiled.save(tmp_path / "toy.json", format="names")
    lines = json.loads((tmp_path / "toy.json").read_text("utf-8"))["names"]
    head = language_model(toy.compiled).tensors["lm_head.weight"]
    assert len(lines) == int((head != 0).sum()) and all(line.startswith("lm_head.weight[") for line in lines.values())
    with pytest.raises(ValueError, match="format 'stone' is unknown; it must be one of hugging-face"):
        toy.compiled.save(tmp_path / "x", format="stone")


def test_the_format_of_the_page_replaces_its_own_files_only(toy, tmp_path):
    mine, earlier = tmp_path / "mine.json", tmp_path / "earlier.json"
    mine.write_text("mine")
    with pytest.raises(ExportError, match="is no export of this format"):
        toy.compiled.save(mine, format="names", overwrite=True)
    toy.compiled.save(earlier, format="names")
    with pytest.raises(ExportError, match="holds an export already"):
        toy.compiled.save(earlier, format="names")
    toy.compiled.save(earlier, format="names", overwrite=True)
    assert mine.read_text() == "mine"


def test_a_target_whose_module_has_none_is_told_what_it_lacks():
    said = "compiler.targets.tensors, the module of target 'empty', has no TARGET"
    with patch.dict(targets._TARGETS, empty="compiler.targets.tensors"), pytest.raises(TypeError, match=said):
        targets.target_of("empty")


def test_the_rules_of_the_page_take_flags_only(toy):
    """Of 2 and 0 its two ramps are not what `evaluate` says: the rewriting refuses, and nothing is proved."""
    x = toy.Tokens(toy.bits).number({"0": 0, "1": 2})
    rewriter = SimpleNamespace(domains=Domains(toy.flips.language, 9))
    with pytest.raises(NotImplementedError, match="it must be shown to be 0 or 1"):
        REWRITINGS[toy.ParityOfTwo](rewriter, toy.ParityOfTwo(), x)
    everything = Edge("any", "any", np.ones(2, dtype=bool), False, True)
    world = World(Language(2, "any", (everything,), 9), FORMATS["float32"])
    with pytest.raises(Unproved, match="what changes is not proved to be 0 or 1"):
        PROOF_RULES["ParityOfTwo"](Conditions(world), {}, [of_letters(np.array([0.0, 2.0]))])


def test_the_commands_of_the_page_run(toy, tmp_path):
    """In a process that knows nothing of the toys but their file."""
    toy.compiled.save(tmp_path / "toy")
    toy.compiled.save(tmp_path / "in-memory.json", format="names")
    (tmp_path / "toy.py").write_bytes(Path(toy.__file__).read_bytes())
    (commands,) = re.findall(r"^```\n(construct .*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    for command in commands.splitlines():
        run = fresh("-m", "constructions", *command.split()[1:], cwd=tmp_path)
        assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "toy.json").read_bytes() == (tmp_path / "in-memory.json").read_bytes()


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "there is no file own.py"),
        ("1 / 0", "own.py, line 1: ZeroDivisionError"),
        ("", "format 'names' is unknown"),
        ("from compiler.artifact.formats import register\nregister('names', lambda *_: 1 / 0)", "line 2: ZeroDivision"),
    ],
)
def test_a_format_of_ones_own_that_fails_is_a_sentence(toy, file, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    toy.compiled.save("toy")
    if file is not None:
        Path("own.py").write_text(file)
    with patch.dict(formats._FORMATS):
        formats._FORMATS.pop("names")
        assert run_command("export", "toy", "--format", "own.py:names", "--out", "toy.json") == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split()) and "Traceback" not in told


def test_its_weights_explain_themselves(toy):
    layout = bare(toy.compiled).layout
    found = layout.explain("blocks.0.out_proj.weight", (toy.compiled.lanes.names.index("total"), 0))
    assert found.gadget == "DoubledSumGadget" and found.operation == "doubledsum" and found.source.startswith("toy.py:")
    assert "doubledsum of" in found.meaning and "total" in printer.show(toy.compiled, "blocks")


def test_what_it_declares_is_checked(toy):
    tokens = toy.Tokens(toy.letters)
    half = toy.Stream(toy.DoubledSum(), (tokens.is_in(["a"]) / 2,))
    with pytest.raises(CompileError, match="integers are needed"):
        toy.compile(toy.Circuit("half", half, toy.circuit.language), "mamba-wide")


def test_the_checker_says_that_it_has_no_rule(toy, tmp_path):
    toy.compiled.save(tmp_path / "toy")
    meaning = check(tmp_path / "toy").meaning
    where, sentence = meaning.split(": ")
    assert where.startswith("total (toy.py:") and sentence == "computed, but no proof rule for DoubledSum"
    assert f"`{sentence}`" in PAGE.read_text("utf-8")


def test_a_checkpoint_of_the_toys_verifies_from_its_files(toy, tmp_path):
    from constructions.checkpoints.saved import verify_checkpoint

    toy.compiled.save(tmp_path / "toy")
    found = verify_checkpoint(tmp_path / "toy", mode="random", samples=20)
    assert found.good, found.complaints


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_an_operation_made_of_others_is_right_and_proved(toy, target, tmp_path):
    compiled = compile(toy.flips, target)
    words = np.array(list(product((0, 1), repeat=6)))
    scores = bare(compiled)(torch.from_numpy(words)).detach().numpy()
    told = [[int(word[t] != (word[t - 1] if t else 0)) for t in range(6)] for word in words.tolist()]
    assert scores[..., 0].tolist() == told
    directory = write(tmp_path / "c", toy.flips, target)
    assert check(directory).weights is None
    tally, missed = inject(directory, 4, random.Random(0))
    assert tally["rejected"] == 4 and not missed


def test_without_its_rule_in_the_checker_nothing_is_proved_of_it(toy, tmp_path):
    directory = write(tmp_path / "c", toy.flips, "mamba")
    with patch.dict(PROOF_RULES):
        del PROOF_RULES["ParityOfTwo"]
        assert "computed, but no proof rule for ParityOfTwo" in check(directory).meaning
