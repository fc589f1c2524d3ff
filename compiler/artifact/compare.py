"""Every file of a checkpoint against what its circuit compiles to.

Nothing is taken on trust: a seal says that files belong together, not that they are right. What may differ is
listed here, each with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from compiler.artifact.artifact import Artifact
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import ANSWERS, CIRCUIT, CONFIG, GENERATION, GRAPH, MANIFEST, WEIGHTS, is_harmless
from compiler.artifact.json_files import read_json, same_json, shown
from compiler.artifact.manifest import FORMAT, FORMAT_VERSION, manifest_content
from compiler.artifact.save import checkpoint_texts
from compiler.artifact.weights_file import read_whole
from compiler.language.data import DataError, origin_of

# Entries that may differ: (file, key) and why.
HARMLESS_ENTRIES = {
    (CONFIG, "transformers_version"): "a note of the version that wrote the file; nothing computes with it",
    (GENERATION, "transformers_version"): "the same",
    (GENERATION, "_from_model_config"): "a note of where transformers took the entries from",
    (MANIFEST, "files"): "the seal, which is checked against the files themselves",
    (MANIFEST, "sha256"): "the seal of the manifest, which is checked when it is read",
    (MANIFEST, "card"): "tells a card of ours from one that the user has edited; no program reads the card",
    (MANIFEST, "versions"): "a note of what wrote the checkpoint; the weights are compared with what is compiled now",
    (MANIFEST, "verification"): "a record of what was run when it was made; whoever verifies runs it again",
}


OF_ANSWERS = f"{ANSWERS} is another file than {MANIFEST} tells of"
_LINE = re.compile(r"\S+\.py:\d+(#\d+)?")  # of a program, by which a stream may be named


def differences(directory: str | Path, artifact: Artifact) -> list[str]:
    """One sentence for each thing in which a checkpoint is not what this artifact saves as; [] where it is the same."""
    directory, texts = Path(directory), _texts(artifact)
    found = text_differences(directory, texts)
    found += weight_differences(directory / WEIGHTS, artifact.model.tensors)
    content, expected = manifest_content(directory), artifact.manifest
    apart = ({"answers": each["answers"]} if "answers" in each else {} for each in (content, expected))
    found += [f"{OF_ANSWERS}: {sentence}" for sentence in entry_differences(MANIFEST, *apart)]
    named = {"format": FORMAT, "format_version": FORMAT_VERSION}
    others = [{key: value for key, value in each.items() if key != "answers"} for each in (content, expected | named)]
    found += entry_differences(MANIFEST, *others)
    answers = set() if artifact.answers is None else {ANSWERS}  # the author's word, against which the model is run
    found += _graph_differences(directory / GRAPH, artifact, named=GRAPH in content["files"])
    return found + foreign_files(directory, {MANIFEST, WEIGHTS, GRAPH, *texts, *answers})


def statement_differences(directory: Path, artifact: Artifact) -> list[str]:
    """The same of what the files say alone: the circuit, the sizes and the promise, not the weights."""
    promised = manifest_content(directory)["promise"]
    found = text_differences(directory, _texts(artifact))
    return found + entry_differences(f"{MANIFEST}: promise", promised, artifact.promise)


def _texts(artifact: Artifact) -> dict[str, str]:
    config, tokens = artifact.model.config, artifact.model.tokens
    return checkpoint_texts(config, tokens, artifact.compiled.source.end, artifact.circuit)


def text_differences(directory: Path, texts: Mapping[str, str]) -> list[str]:
    """Where JSON files, by their names, hold something else than these texts."""
    return [sentence for name, text in texts.items() for sentence in _text_differences(directory / name, text)]


def _text_differences(path: Path, text: str) -> list[str]:
    try:
        if path.is_file() and path.stat().st_size == len(text.encode()) and path.read_bytes() == text.encode():
            return []
        found, expected = read_json(path), json.loads(text)
        if path.name == CIRCUIT:
            found = _with_sources_of(found, expected)
        return entry_differences(path.name, found, expected)
    except (OSError, CheckpointError) as reason:
        return [str(reason).rstrip(".")]


def _graph_differences(path: Path, artifact: Artifact, named: bool) -> list[str]:
    """Where the causal graph is not that of the circuit. named: whether the manifest tells of it; a checkpoint that was
    saved before there were any has none.
    """
    if not path.exists() and not named:
        return []
    try:
        found = read_json(path)
        return entry_differences(path.name, _unsourced(found), _unsourced(artifact.graph))
    except (OSError, CheckpointError) as reason:
        return [str(reason).rstrip(".")]


def _unsourced(graph: Any) -> Any:
    """A causal graph without where a program stands, which means nothing.

    What the author of a circuit of one's own called its streams stands nowhere else: the circuit was read with it, and
    all other names follow.
    """
    if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
        return graph
    return graph | {"nodes": [_unsourced_node(n) if isinstance(n, dict) else n for n in graph["nodes"]]}


def _unsourced_node(node: dict[str, Any]) -> dict[str, Any]:
    node = {key: value for key, value in node.items() if key != "source" or not isinstance(value, str)}
    if isinstance(names := node.get("names"), list):
        node["names"] = [name for name in names if not (isinstance(name, str) and _LINE.fullmatch(name))]
    if isinstance(name := node.get("name"), str) and _LINE.fullmatch(name):
        node["name"] = None
    return node


def _with_sources_of(circuit: Any, expected: dict[str, Any]) -> Any:
    """A circuit as data with the lines of another in the place of its own, which move and mean nothing; but what is no
    line stays, for no program reads a circuit with that.
    """
    if not isinstance(circuit, dict) or not isinstance(circuit.get("streams"), list):
        return circuit
    streams, lines = list(circuit["streams"]), [stream["source"] for stream in expected["streams"]]
    for i, (stream, line) in enumerate(zip(streams, lines, strict=False)):
        if isinstance(stream, dict) and _is_source(stream.get("source")):
            streams[i] = stream | {"source": line}
    return circuit | {"streams": streams}


def _is_source(source: Any) -> bool:
    try:
        return isinstance(source, list) and bool(origin_of(source))
    except DataError:
        return False


def without_sources(circuit: Any) -> Any:
    """A circuit as data without the lines of the program that it was written on: they move, and mean nothing."""
    if not isinstance(circuit, dict) or not isinstance(circuit.get("streams"), list):
        return circuit
    streams = [{k: v for k, v in s.items() if k != "source"} if isinstance(s, dict) else s for s in circuit["streams"]]
    return circuit | {"streams": streams}


def entry_differences(name: str, found: Any, expected: dict[str, Any]) -> list[str]:
    """Where two JSON objects differ, by the keys of their first two levels."""
    if not isinstance(found, dict):
        return [f"{name} is {shown(found)}, not an object"]
    sentences = []
    for key in sorted(found.keys() | expected.keys()):
        if (name, key) in HARMLESS_ENTRIES or (
            key in found and key in expected and same_json(found[key], expected[key])
        ):
            continue
        sentences.append(f"{name} {_difference(key, found, expected)}")
    return sentences


def _difference(key: str, found: dict[str, Any], expected: dict[str, Any]) -> str:
    if key not in found:
        return f"has no entry {shown(key)}"
    if key not in expected:
        return f"has an entry {shown(key)}, which the circuit does not give"
    path, here, there = key, found[key], expected[key]
    while True:
        if isinstance(here, dict) and isinstance(there, dict):
            inner = min(k for k in here.keys() | there.keys() if not same_json(here.get(k, ...), there.get(k, ...)))
            path = f"{path}.{shown(inner)[1:-1]}"
            if inner not in here:
                return f"has no entry {path}"
            if inner not in there:
                return f"has an entry {path}, {shown(here[inner])}, which the circuit does not give"
            here, there = here[inner], there[inner]
        elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
            at = next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if not same_json(a, b))
            path, here, there = f"{path}[{at}]", here[at], there[at]
        else:
            break
    return f"has another {path}: {shown(here)}, not {shown(there)}"


def weight_differences(path: Path, expected: dict[str, torch.Tensor]) -> list[str]:
    """Tensors that differ in any bit, and a header that programs would read otherwise."""
    try:
        metadata, found = read_whole(path)
    except CheckpointError as reason:
        return [str(reason).rstrip(".")]
    sentences = [] if metadata == {"format": "pt"} else [f"{WEIGHTS} has other metadata: {shown(metadata)}"]
    return sentences + tensor_differences(WEIGHTS, found, expected)


def tensor_differences(file: str, found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> list[str]:
    """The tensors of a file that are missing, too many, or other than expected in any bit."""
    sentences = [f"{file} has no tensor {name}" for name in sorted(expected.keys() - found.keys())]
    sentences += [f"{file} has a tensor {name:.60} too many" for name in sorted(found.keys() - expected.keys())]
    for name in sorted(found.keys() & expected.keys()):
        if not _same_bits(found[name], expected[name]):
            sentences.append(f"its weights {name} differ")
    return sentences


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both hold the same numbers to the bit; a sparse tensor, or one without values, holds none."""
    if any(getattr(one, kind) != getattr(other, kind) for kind in ("dtype", "shape", "layout", "device")):
        return False
    return torch.equal(one.contiguous().view(torch.int32), other.contiguous().view(torch.int32))


def foreign_files(directory: Path, own: Collection[str]) -> list[str]:
    """Files that are neither of these nor known to be harmless."""
    return [
        f"it holds {entry.name}, which is not ours, and programs that load the model might read it"
        for entry in sorted(directory.iterdir())
        if entry.name not in own and not is_harmless(entry.name)
    ]
