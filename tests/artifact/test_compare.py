"""Every file of a checkpoint is compared with what its circuit compiles to: a new seal hides nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, count, readout_integer
from compiler.artifact.artifact import Artifact
from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import canonical_json, read_json
from compiler.artifact.manifest import manifest_content, sealed
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.checkpoints.saved import verify_checkpoint
from constructions.registry import CONSTRUCTIONS
from constructions.selectivity.mqar import MQAR
from verify.checker.files import read_json as checker_json
from verify.checker.formats import Rejected
from verify.kernel.files import read_json as kernel_json
from verify.kernel.floats import Unproved

LETTERS = Alphabet.of("a", "b", ".", *(str(n) for n in range(9)))


def count_since() -> Circuit:
    x = Tokens(LETTERS)
    since = count(x.is_in("a"), reset=x.is_in("b"))
    answer = readout_integer(since, LETTERS, {str(n): n for n in range(9)})
    language = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b"))], 8, "strings of a and b")
    return Circuit("count-since", answer, language, end=".")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A construction's checkpoint, one with a proof, and that of a circuit of one's own."""
    root = tmp_path_factory.mktemp("made")
    built = build(MQAR(kappa=3, vocab=6))
    artifact.save(built, {}, root / "mqar", None, proof_of(built))
    compile(count_since()).save(root / "own")
    return {"mqar": root / "mqar", "own": root / "own"}


@pytest.fixture(params=["mqar", "own"])
def checkpoint(request: pytest.FixtureRequest, made: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[request.param], tmp_path / request.param))


def reseal(directory: Path, **changes) -> None:
    manifest = manifest_content(directory) | changes
    (directory / "construction.json").write_text(canonical_json(sealed(manifest, directory)))


def edited(name: str, *keys: str, **changes) -> Callable[[Path], None]:
    """Replaces entries of the object under these keys of a JSON file; None removes one."""

    def change(directory: Path) -> None:
        content = json.loads((directory / name).read_text())
        inner = content
        for key in keys:
            inner = inner[key]
        inner.update(changes)
        for key in [key for key, value in changes.items() if value is None]:
            if key != "normalizer":
                del inner[key]
        (directory / name).write_text(json.dumps(content))

    return change


def lower_case(directory: Path) -> None:
    edited("tokenizer.json", normalizer={"type": "Replace", "pattern": {"String": "b"}, "content": "a"})(directory)


def added_token(directory: Path) -> None:
    content = json.loads((directory / "tokenizer.json").read_text())
    content["added_tokens"].append(content["added_tokens"][0] | {"id": 0, "content": "zz"})
    (directory / "tokenizer.json").write_text(json.dumps(content))


def swapped_ids(directory: Path) -> None:
    """The last two words before the special tokens change places, and the order of the file stays."""
    content = json.loads((directory / "tokenizer.json").read_text())
    vocab = content["model"]["vocab"]
    vocab["<unk>"], vocab["<pad>"] = vocab["<pad>"], vocab["<unk>"]
    (directory / "tokenizer.json").write_text(json.dumps(content))


def minus_zero(directory: Path) -> None:
    """A change of one bit that `==` does not see."""
    tensors = load_file(directory / "model.safetensors")
    flat = tensors["lm_head.weight"].view(-1)
    flat[int((flat == 0).nonzero()[0])] = -0.0
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def foreign_metadata(directory: Path) -> None:
    save_file(load_file(directory / "model.safetensors"), directory / "model.safetensors", metadata={"format": "np"})


def twice(directory: Path) -> None:
    """The first tensor's entry stands twice in the header, and says the same both times."""
    path = directory / "model.safetensors"
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    name = next(name for name in header if name != "__metadata__")
    text = json.dumps(header)[:-1] + f", {json.dumps(name)}: {json.dumps(header[name])}}}"
    path.write_bytes(len(text).to_bytes(8, "little") + text.encode() + content[8 + size :])


def adapter(directory: Path) -> None:
    (directory / "adapter_config.json").write_text("{}")


CHANGES = {
    "normalizer": (lower_case, "tokenizer.json has another normalizer"),
    "added token": (added_token, "tokenizer.json has another added_tokens"),
    "truncation": (edited("tokenizer.json", truncation={"max_length": 2}), "tokenizer.json has another truncation"),
    "swapped ids": (swapped_ids, "tokenizer.json has another model.vocab.<pad>: "),
    "suppressed": (
        edited("generation_config.json", suppress_tokens=[0]),
        "generation_config.json has an entry 'suppress_tokens'",
    ),
    "sampling": (edited("generation_config.json", do_sample=True), "generation_config.json has another do_sample"),
    "end": (edited("generation_config.json", eos_token_id=1), "generation_config.json has another eos_token_id"),
    "end in the config": (edited("config.json", eos_token_id=1), "config.json has another eos_token_id"),
    "padding side": (edited("tokenizer_config.json", padding_side="right"), "another padding_side"),
    "dropped entry": (
        edited("tokenizer_config.json", pad_token=None),
        "tokenizer_config.json has no entry 'pad_token'",
    ),
    "extra entry": (edited("config.json", quantization_config={}), "config.json has an entry 'quantization_config'"),
    "one as true": (edited("config.json", use_cache=1), "config.json has another use_cache"),
    "minus zero": (minus_zero, "its weights lm_head.weight differ"),
    "metadata": (foreign_metadata, "model.safetensors has other metadata"),
    "a tensor twice": (twice, "its header is refused: the key"),
    "adapter": (adapter, "it holds adapter_config.json"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES.keys())
def test_a_resealed_change_is_found(change: Callable, message: str, checkpoint: Path) -> None:
    change(checkpoint)
    reseal(checkpoint)
    found = verify_checkpoint(checkpoint, "random", 2)
    assert not found.good
    assert any(message in sentence for sentence in found.complaints), found.complaints


@pytest.mark.parametrize("key", ["lanes", "blocks", "sizes", "promise", "arch", "circuit", "dtype"])
def test_a_resealed_claim_is_found(key: str, checkpoint: Path) -> None:
    manifest = manifest_content(checkpoint)
    changed = {
        "lanes": ["x", *manifest["lanes"][1:]],
        "blocks": [block | {"channels": ["x", *block["channels"][1:]]} for block in manifest["blocks"]],
        "sizes": manifest["sizes"] | {"parameters": 1},
        "promise": manifest["promise"] | {"length": 10**6},
        "arch": "s4d" if "mqar" in checkpoint.name else "mamba2",
        "circuit": "another",
        "dtype": "bfloat16",
    }[key]
    reseal(checkpoint, **{key: changed})
    found = verify_checkpoint(checkpoint, "none")
    assert not found.good and any(key in sentence for sentence in found.complaints), found.complaints


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("proof", "every answer is right"),
        ("answers", "random"),
        ("certificate", None),
        ("domain", "all"),
        ("level", "proved"),
        ("expected_failure", 0.5),
    ],
)
def test_a_resealed_guarantee_is_found(entry: str, value: object, made: dict[str, Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(made["mqar"], tmp_path / "changed"))
    reseal(directory, guarantee=manifest_content(directory)["guarantee"] | {entry: value})
    found = verify_checkpoint(directory, "none")
    assert any(f"another guarantee.{entry}" in sentence for sentence in found.complaints), found.complaints


def test_names_of_a_construction_are_those_that_it_has(made: dict[str, Path], tmp_path: Path) -> None:
    """Names in a causal graph decide what a trace is called: swapped ones would tell of another stream."""
    directory = Path(shutil.copytree(made["mqar"], tmp_path / "swapped"))
    graph = json.loads((directory / "causal_graph.json").read_text())
    one, two = (next(n for n in graph["nodes"] if n["name"] == name) for name in ("key", "value"))
    for entry in ("name", "names", "variable"):
        one[entry], two[entry] = two[entry], one[entry]
    (directory / "causal_graph.json").write_text(json.dumps(graph))
    reseal(directory)
    found = verify_checkpoint(directory, "none")
    assert any(sentence.startswith("the checkpoint is not") and "causal_graph.json" in sentence and "nodes" in sentence
               for sentence in found.complaints), found.complaints  # fmt: skip


def test_what_was_saved_is_accepted(checkpoint: Path) -> None:
    (checkpoint / "README.md").write_text("# mine")
    (checkpoint / "state.png").write_bytes(b"picture")
    assert verify_checkpoint(checkpoint, "random", 5).good


def test_the_lines_of_the_program_do_not_matter(checkpoint: Path) -> None:
    content = json.loads((checkpoint / "circuit.json").read_text())
    for stream in content["streams"]:
        stream["source"] = ["moved.py", 1]
    (checkpoint / "circuit.json").write_text(json.dumps(content))
    reseal(checkpoint)
    assert verify_checkpoint(checkpoint, "none").complaints == []


def test_another_circuit_of_ones_own_is_found_by_its_weights(made: dict[str, Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(made["own"], tmp_path / "own"))
    text = (directory / "circuit.json").read_text()
    shutil.rmtree(directory)
    x = Tokens(LETTERS)
    answer = readout_integer(count(x.is_in("b"), reset=x.is_in("a")), LETTERS, {str(n): n for n in range(9)})
    compile(Circuit("count-since", answer, count_since().language, end=".")).save(directory)
    (directory / "circuit.json").write_text(text)
    reseal(directory)
    found = verify_checkpoint(directory, "random", 5)
    assert not found.good and not next(iter(found.results.values())).bit_exact


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d"])
def test_a_circuit_of_ones_own_lives_its_whole_life(target: str, tmp_path: Path) -> None:
    """The checkpoint's circuit, read back, compiles to the same bytes."""
    x = Tokens(LETTERS)
    seen = x.one_hot().cumsum()
    circuit = Circuit("how-often", seen, InputLanguage.everything(LETTERS, 12))
    compile(circuit, target).save(tmp_path / "one")
    found = verify_checkpoint(tmp_path / "one", "random", 20)
    assert found.good and found.built.compiled.source.end is None
    found.built.compiled.save(tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    with torch.no_grad():
        scores = found.stack(torch.tensor([[0, 1, 0]]))
    assert scores[0, -1, : LETTERS.size].tolist() == [2, 1] + [0] * 10


def test_a_file_that_is_not_there_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"^\S*config.json is missing from the checkpoint\.$"):
        read_json(tmp_path / "config.json")


def test_a_zero_with_a_sign_is_read_by_no_reader(tmp_path: Path) -> None:
    """Python reads -0 as 0, and others as a decimal: checker and kernel refuse it as well."""
    file = tmp_path / "config.json"
    file.write_text('{"x": -0}')
    for read, error in ((read_json, CheckpointError), (checker_json, Rejected), (kernel_json, Unproved)):
        with pytest.raises(error, match="-0 is no whole number"):
            read(file)
    file.write_text('{"x": [-0.0, 0, -10]}')
    assert read_json(file) == checker_json(file) == kernel_json(file) == {"x": [0, 0, -10]}


def test_the_example_of_a_card_is_no_walk_that_ends_at_once() -> None:
    """Most walks of recall begin with the query, at which they end; the example stores something first."""
    example = Artifact.of(compile(CONSTRUCTIONS["recall"]().circuit())).example[0].split()
    assert len(example) == 4
    assert [token[0] for token in example[:2]] == ["k", "v"]
