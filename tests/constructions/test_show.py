"""`construct show`: every stage of a construction, a checkpoint and a circuit of one's own; weights by name."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from compiler.ir import printer
from constructions.command.show import compiled_of, explained
from constructions.registry import CONSTRUCTIONS, families
from constructions.selectivity.mqar import MQAR
from tests.circuits import CASES
from tests.constructions.test_construct import run

OWN = """
from compiler import Alphabet, Circuit, InputLanguage, Tokens
letters = Alphabet.of("a", "b")
seen = Tokens(letters).is_in(["a"], name="is_a").cumsum().named("how_many")
CIRCUIT = Circuit("own", seen, InputLanguage.everything(letters, 100))
"""


@pytest.mark.parametrize("stage", printer.stages())
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_stage_of_every_circuit_has_text(case, stage: str):
    text = printer.show(case.compiled(case.targets[0]), stage)
    assert text.endswith("\n") and text.strip() and "object at 0x" not in text


@pytest.mark.parametrize("name", families())
def test_a_name_is_built_or_refused_in_a_sentence(name: str):
    """Refused are those that their name does not tell, such as an automaton without its table."""
    needed = [each for each in inspect.signature(families()[name]).parameters.values() if each.default is each.empty]
    if needed:
        with pytest.raises(ValueError, match=f"{name} is built of a {needed[0].name} that its name does not tell"):
            compiled_of(name, "mamba", "float32")
    else:
        assert compiled_of(name, "mamba", "float32").blocks


def test_a_circuit_of_ones_own(tmp_path: Path):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    compiled = compiled_of(f"{path}:CIRCUIT", "mamba", "float32")
    assert "how_many = cumsum(" in printer.show(compiled, "source") and "own.py:4" in printer.show(compiled, "source")
    assert "block 1\n  how_many = cumsum(is_a)" in printer.show(compiled, "schedule")
    blocks = printer.show(compiled, "blocks")
    assert "chan  how_many: x̂ is_a, Δ = softplus(128), keep, z = 32·one → 0.03125·how_many" in blocks
    assert explained(compiled, "backbone.layers.0.mixer.D[0]").startswith(
        "backbone.layers.0.mixer.D[0]: channel how_many"
    )


@pytest.mark.parametrize("arch", ["mamba", "mamba2", "s4d"])
def test_a_weight_of_a_convolution_is_of_one_position(arch: str):
    """Its second axis is the one channel that it reads, and no tap."""
    compiled = MQAR(kappa=2, vocab=2, arch=arch, length=8).compiled()
    for tap, back in enumerate(("3 positions back", "2 positions back", "1 position back", "the present position")):
        said = explained(compiled, f"backbone.layers.0.mixer.conv1d.weight[0, 0, {tap}]")
        assert re.findall(r"\d positions? back|the present position", said) == [back] and "tap tap" not in said, said


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_constructions_by_name_come_from_their_own_file(name: str):
    compiled = compiled_of(name, "mamba", "float32")
    lines = printer.show(compiled, "core").splitlines()[1:-1]
    group = Path(inspect.getfile(CONSTRUCTIONS[name])).parent
    files = [f"{file.name}:" for file in group.glob("*.py")]
    assert all(any(file in line for file in [*files, "= one()"]) for line in lines), lines


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("nope", "no checkpoint directory, no FILE.py:NAME and no construction; there are mqar"),
        ("missing.py:X", "there is no file missing.py"),
    ],
)
def test_what_is_nothing_is_named(what: str, says: str):
    with pytest.raises(ValueError, match=says):
        compiled_of(what, "mamba", "float32")


def test_weights_and_stages_that_are_not_there():
    compiled = compiled_of("count-in-row", "mamba", "float32")
    with pytest.raises(ValueError, match=r"must be a tensor and an index"):
        explained(compiled, "lm_head.weight")
    with pytest.raises(ValueError, match="no tensor 'D'"):
        explained(compiled, "D[0]")
    with pytest.raises(ValueError, match="'bricks' is unknown; it must be one of source, core, schedule, blocks"):
        printer.show(compiled, "bricks")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("mqar", "--dtype", "float64"), "--dtype float64: mqar has its own"),
        (("mqar", "--target", "nothing", "--stage", "core"), "--target nothing: mqar has its own"),
        (("keep-nth", "--passes", "--weight", "lm_head.weight[0, 0]"), "--weight and --passes: only one of them"),
        (("keep-nth", "--passes", "--stage", "core"), "--stage and --passes: only one of them"),
        (("own.py:CIRCUIT", "--dtype", "float64"), "dtype 'float64' is unknown"),
    ],
)
def test_no_option_is_taken_and_left_out(given, told: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    assert run("show", *given) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert run("show", "own.py:CIRCUIT", "--target", "mamba2", "--stage", "schedule") == 0
    assert "mamba2" in capsys.readouterr().out
