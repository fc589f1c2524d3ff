"""Files that ask for too much: refused by both readers, in one sentence with the place and the limit."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compiler import compile
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import WEIGHTS
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import sealed
from compiler.language.data import DataError, from_data
from compiler.language.data.budget import EDGES, LANES, check_budget, check_language, work_of
from constructions.checkpoints import saved
from constructions.checkpoints.built import build
from constructions.registry import CONSTRUCTIONS
from tests.artifact.hostile.forked import MOST_MEMORY, forked, limited
from tests.artifact.hostile.originals import make
from tests.artifact.hostile.verdict import verdict
from tests.artifact.oversized import FAMILIES
from verify.checker import budget
from verify.checker.check import check
from verify.checker.formats import Rejected

# family: (size, words of the compiler's refusal, words of the checker's)
REFUSED = {
    "diagonal": (10**12, "stream 1 (OneHotOf) has 1000000000000 lanes", "streams[1] has 1000000000000 lanes"),
    "one_hot": (1 << 52, f"there can be {LANES}", f"the checker reads {LANES} at most"),
    "exponent": (999_999_999, "it is '1e999999999', and an integer", "streams[0]: attributes: values[0]"),
    "digits": (100_000, 'an integer or "p/q" in lowest terms is needed', "streams[0]"),
    "long_fraction": (100_000, 'an integer or "p/q" in lowest terms is needed', "streams[0]"),
    "lti": (10**6, "stream 1 (Lti): the streams up to it are work for", "positions seen back"),
    "lookup": (17_000, "stream 1 (Lookup): the streams up to it are work for", "lanes of work"),
    "many_lanes": (2 * 10**6, "beside weights of 10184 bytes there may be 16636", "lanes of work"),
    "codebook": (10**9, "codebook 0 has 1000000000 words or places", "codebooks[0] has 1000000000 words"),
    "decoded": (4_120, "products of its words with each other", "lanes of work"),
    "compared": (1_500, "stream 3 (Cumsum)", "lanes of work"),
    "memory": (4_000, "stream 3 (MemoryRead): the streams up to it are work for", "lanes of work"),
    "cumsums": (10**4, "are work for", "lanes of work"),
    "rules": (10**4, "of more than 256 the first weighs over 2^256", "more than the 53 bits that the checker carries"),
    "deep_rectifiers": (10**3, "are work for", "lanes of work"),
    "groups": (20_000, "20000 groups, and there can be 16384", "groups of letters"),
    "path": (20_000, f"20000 edges, and there can be {EDGES}", f"20000 edges, and the checker reads {EDGES}"),
    "web": (30_000, "edges, and there can be", "edges, and the checker reads"),
    "parallel": (30_000, "edges, and there can be", "edges, and the checker reads"),
    "long_relation": (10**5, "it is no Compare: relation '>>", "attributes: relation is missing, or nothing that"),
    "long_policy": (10**5, "its write policy is 'xxx", "a memory of the policy 'xxx"),
    "long_operation": (10**5, "the operation 'xxx", "computed, but no proof rule for xxx"),
    "long_start": (10**5, "no edge leaves the start state 'xxx", "no letter leads from the language's start 'xxx"),
}
ILL_TYPED = ("long_relation", "long_policy", "long_operation", "long_start")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make(tmp_path_factory.mktemp("good"))


def enlarged(original: Path, folder: Path, circuit: dict) -> Path:
    """The checkpoint with another circuit.json, the same promise in its manifest, under a good seal."""
    directory = Path(shutil.copytree(original, folder / "bad"))
    (directory / "circuit.json").write_text(json.dumps(circuit))
    manifest = json.loads((directory / "construction.json").read_text())
    manifest["promise"] |= circuit["promise"]
    (directory / "construction.json").write_text(canonical_json(sealed(manifest, directory)))
    return directory


@pytest.mark.parametrize("name", REFUSED)
def test_both_readers_refuse_what_asks_for_too_much(name: str, originals: list[Path], tmp_path: Path) -> None:
    size, words, checkers = REFUSED[name]
    small = json.loads((originals[1] / "circuit.json").read_text())
    directory = enlarged(originals[1], tmp_path, FAMILIES[name](small, size))
    found, said = verdict(directory)
    assert found == "refused" and len(said) == 1 and len(said[0]) < 600, said
    assert words in said[0]
    checked = check(directory)
    assert not checked.accepted and checkers in checked.reason and len(checked.reason) < 600, checked.reason


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"exponent", "nested", "rules", *ILL_TYPED}))
def test_the_same_families_are_read_where_they_are_small(name: str, originals: list[Path]) -> None:
    """Each family is refused for its size: the same circuit of size 4 has nothing that a reader does not know."""
    small = json.loads((originals[1] / "circuit.json").read_text())
    data = FAMILIES[name](small, 4)
    check_budget(data, 10_000)
    budget.check_circuit(data, 10_000)
    if name not in ("alphabet", "codebook"):  # which say what nobody reads
        from_data(data, 10_000)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_no_file_holds_what_is_no_number(value: str, originals: list[Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(originals[1], tmp_path / "bad"))
    path = directory / "construction.json"
    manifest = json.loads(path.read_text())
    manifest["promise"] |= {"level": "bounded-error", "error_bound": 77777}
    path.write_text(json.dumps(manifest).replace("77777", value))
    name, said = verdict(directory)
    assert name == "refused" and len(said) == 1 and "is not JSON" in said[0]
    assert "construction.json is not JSON" in check(directory).reason


def params(**changed: int) -> Callable[[dict], None]:
    def change(manifest: dict) -> None:
        manifest["params"] |= changed

    return change


def tokens(kappa: int) -> Callable[[dict], None]:
    """Many keys, and a promise over as many letters as they need."""

    def change(manifest: dict) -> None:
        manifest["params"]["kappa"] = kappa
        manifest["promise"]["language"]["tokens"] += kappa - 2

    return change


PARAMETERS = {
    "length": (params(length=60_000, max_length=60_000), "params.length is 60000, and its circuit and weights have"),
    "no length": (params(length=10**6), "params.length is 1000000, and its circuit and weights have"),
    "keys": (tokens(10_000), "params ask for 10004 tokens, and weights of 10568 bytes have rows for no more than 1321"),
}


@pytest.mark.parametrize(("change", "words"), PARAMETERS.values(), ids=PARAMETERS)
def test_a_constructions_sizes_are_backed_by_its_files(
    change: Callable[[dict], None], words: str, originals: list[Path], tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(originals[0], tmp_path / "bad"))
    manifest = json.loads((directory / "construction.json").read_text())
    change(manifest)
    (directory / "construction.json").write_text(canonical_json(sealed(manifest, directory)))
    name, said = verdict(directory)
    assert name == "refused" and len(said) == 1 and words in said[0], said


def test_weights_of_another_vocabulary_are_told_before_anything_is_proved(
    originals: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof of the circuit took ten seconds, and then numpy said that shapes cannot be broadcast together."""
    directory = Path(shutil.copytree(originals[1], tmp_path / "bad"))
    manifest = json.loads((directory / "construction.json").read_text())
    other = CONSTRUCTIONS["coin-change"](amount=4)
    manifest |= {"construction": other.name, "params": other.params()}
    manifest["promise"]["language"]["tokens"] = other.letters()
    (directory / "construction.json").write_text(canonical_json(sealed(manifest, directory)))
    monkeypatch.setattr(saved, "proof_of", lambda built: pytest.fail("what cannot be run is proved"))
    name, said = verdict(directory)
    wanted = other.letters() + 2  # padding and what is unknown
    assert name == "failed" and said[-1].endswith(f"its weights score 9 tokens, and its circuit has {wanted}"), said


def test_no_file_beside_the_weights_counts_as_weights(originals: list[Path], tmp_path: Path) -> None:
    """A circuit may ask for work in proportion to its weights, and no other file is weights."""
    small = json.loads((originals[1] / "circuit.json").read_text())
    directory = enlarged(originals[1], tmp_path, FAMILIES["many_lanes"](small, 2 * 10**6))
    (directory / "notes.bin").write_bytes(bytes(10**8))
    found, said = verdict(directory)
    assert found == "refused" and "beside weights of 10184 bytes there may be" in said[0], said


def test_weights_larger_than_the_addresses_are_refused(originals: list[Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(originals[1], tmp_path / "bad"))
    with (directory / "model.safetensors").open("r+b") as file:
        file.truncate(4 * MOST_MEMORY)

    def judged() -> Iterator[str]:
        limited()
        yield check(directory).reason or ""
        yield verdict(directory)[0]

    reason, found = forked(judged).given
    assert "model.safetensors of 8589934592 bytes cannot be read" in reason and found == "failed"


def test_a_sealed_file_of_gigabytes_is_refused_before_it_is_hashed(originals: list[Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(originals[1], tmp_path / "bad"))
    with (directory / "tokenizer.json").open("r+b") as file:
        file.truncate(1 << 36)
    begun = time.process_time()
    assert verdict(directory)[0] == "failed"
    assert time.process_time() - begun < 5


def test_weights_with_gigabytes_over_are_refused_before_they_are_hashed(
    originals: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the seal tells their size: to hash 10^10 bytes takes most of the time that a case may take."""
    directory = Path(shutil.copytree(originals[1], tmp_path / "bad"))
    with (directory / WEIGHTS).open("r+b") as file:
        file.truncate(1 << 32)
    hashed: list[str] = []
    monkeypatch.setattr("compiler.artifact.manifest.file_hash", lambda path: hashed.append(path.name) or "0" * 64)
    manifest = json.loads((directory / "construction.json").read_text())
    (directory / "construction.json").write_text(canonical_json(sealed(manifest, directory)))
    hashed.clear()
    name, said = verdict(directory)
    assert name != "accepted" and any("header does not describe the bytes behind it" in line for line in said), said
    assert WEIGHTS not in hashed


@pytest.mark.parametrize("name", ["circuit.json", "construction.json", "tokenizer.json", "config.json"])
def test_no_reader_reads_100_mb_of_json(name: str, originals: list[Path], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(originals[1], tmp_path / "bad"))
    with (directory / name).open("r+b") as file:
        file.truncate(100_000_000)
    found, said = verdict(directory)
    assert found != "accepted" and any("100000000" in sentence for sentence in said), said
    assert f"{name} has 100000000 bytes, and the checker reads {budget.JSON_BYTES} at most" in check(directory).reason


@pytest.mark.parametrize(("what", "most"), [("{}", budget.JSON_OBJECTS), ("[]", budget.JSON_LISTS)])
@pytest.mark.parametrize(("name", "key"), [("circuit.json", "groups"), ("tokenizer.json", "added_tokens")])
def test_no_reader_builds_millions_of_lists_or_objects(
    what: str, most: int, name: str, key: str, originals: list[Path], tmp_path: Path
) -> None:
    """A few bytes each, and each some time in every look at the file: 30 MB of them took over ten seconds."""
    directory = Path(shutil.copytree(originals[1], tmp_path / "bad"))
    path = directory / name
    content = json.loads(path.read_text()) | {key: "HERE"}
    path.write_text(json.dumps(content).replace('"HERE"', f"[{','.join([what] * (most + 1))}]"))
    found, said = verdict(directory)
    assert found != "accepted" and any(f"more than {most}" in sentence for sentence in said), said
    kind = "objects" if what == "{}" else "lists"
    assert re.search(rf"{name} has \d+ {kind}, and the checker reads {most} at most", check(directory).reason)


def test_natural_sizes_are_within_every_limit() -> None:
    """Recall of 4,096 keys in a vocabulary of 128,256, in weights of 60 MB; and 10,000 flags of one token."""
    matrix = lambda rows, columns: {"shape": [rows, columns], "rows": [[]]}
    wide = lambda name, width, inputs: {
        "operation": name,
        "attributes": {"Linear": {"matrices": [matrix(width, width)]}, "Shift": {"k": 1}}.get(name, {}),
        "inputs": inputs,
        "type": {"kind": "Int", "width": width},
    }
    streams = [wide("Embed", 4096, []), *(wide("Linear", 4096, [i]) for i in range(6)), wide("Relu", 4096, [6])]
    streams += [wide("Shift", 4096, [7]), wide("MemoryRead", 20, [8, 8, 8]), wide("Linear", 132_353, [9])]
    recall = {"streams": streams, "alphabet": [str(i) for i in range(132_353)], "codebooks": [], "groups": []}
    check_budget(recall, 60_000_000)
    budget.check_circuit(recall, 60_000_000)
    gates = [wide("Embed", 1, []), *(wide("And", 1, [i, i]) for i in range(9_999))]
    local = {"streams": gates, "alphabet": [], "groups": [], "codebooks": []}
    check_budget(local, 600_000)
    budget.check_circuit(local, 600_000)
    check_language({"tokens": 132_353, "edges": [{"tokens": [[0, 132_352]]}] * 5})


@pytest.mark.parametrize("lanes", [LANES, LANES + 1])
def test_the_limits_are_sharp(lanes: int) -> None:
    stream = {"operation": "Linear", "attributes": {}, "inputs": [], "type": {"kind": "Int", "width": lanes}}
    data = {"streams": [stream], "alphabet": [], "groups": [], "codebooks": []}
    if lanes <= LANES:
        check_budget(data)
        budget.check_circuit(data, 16 * lanes)
        with pytest.raises(DataError, match=f"there may be {work_of(1000)}"):
            check_budget(data, 1000)
        return
    with pytest.raises(DataError, match=f"{lanes} lanes, and there can be {LANES}"):
        check_budget(data)
    with pytest.raises(Rejected, match=f"{lanes} lanes, and the checker reads {LANES} at most"):
        budget.check_circuit(data, 16 * lanes)


def test_what_no_reader_would_take_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.language.data.budget.LEAST_WORK", -10_000)
    with pytest.raises(CheckpointError, match="too large to be read again"):
        make(tmp_path)
    assert not (tmp_path / "mqar").exists()


def test_a_language_that_no_reader_takes_is_refused_before_it_is_compiled_and_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    construction = CONSTRUCTIONS["mqar"](kappa=2, vocab=2)
    compiled = compile(construction.circuit(), "mamba")
    monkeypatch.setattr("compiler.language.data.budget.LETTERS_ON_EDGES", 3)
    with pytest.raises(CheckpointError, match="the edges up to it have . letters, and there can be 3"):
        compiled.save(tmp_path / "saved")
    monkeypatch.setattr(CONSTRUCTIONS["mqar"], "compiled", lambda *_: pytest.fail("it was compiled"))
    with pytest.raises(DataError, match="the edges up to it have . letters, and there can be 3"):
        build(construction)
    assert not (tmp_path / "saved").exists()


def test_a_construction_promises_no_larger_language_than_is_read(originals: list[Path], tmp_path: Path) -> None:
    """A construction's manifest is refused by itself: nothing reads its circuit before it is built."""
    directory = Path(shutil.copytree(originals[0], tmp_path / "bad"))
    manifest = json.loads((directory / "construction.json").read_text())
    edges = manifest["promise"]["language"]["edges"]
    manifest["promise"]["language"]["edges"] = edges[:1] * (EDGES + 1)
    (directory / "construction.json").write_text(canonical_json(sealed(manifest, directory)))
    name, said = verdict(directory)
    assert name == "refused" and len(said) == 1 and "construction.json: the input" in said[0]
