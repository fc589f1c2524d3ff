"""A twin as a directory: a plain model of transformers, the tokenizer of its circuit, and twin.json with its lanes."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from compiler.artifact.errors import CheckpointError, of_damage
from compiler.artifact.files import ANSWERS, CIRCUIT, CONFIG, GRAPH, MANIFEST, WEIGHTS
from compiler.artifact.json_files import read_json, same_json, shown
from compiler.artifact.manifest import Manifest, file_hash
from compiler.artifact.others import keep_others, own_files, recorded_files
from compiler.artifact.place import check_place, staging
from compiler.artifact.plain_files import check_plain
from compiler.artifact.save import write_text
from compiler.artifact.schema import parse
from compiler.artifact.tokenizer import TOKENIZER_FILES
from compiler.graft.errors import GraftError
from constructions.scoring.truth import Truth
from constructions.scoring.twin import BLOCKS, WIDTH, Faithfulness, Twin, config_of, lanes_of, measured, seen_by

TWIN = "twin.json"
FORMAT, VERSION = "trained-twin", 1
_OF_THE_CIRCUIT = (CIRCUIT, *TOKENIZER_FILES)
_WHERE_THERE_ARE = (ANSWERS, GRAPH)  # of a task of its own; what its author called its streams, in no older checkpoint
_KEPT = (*_OF_THE_CIRCUIT, *_WHERE_THERE_ARE)
_NOTES = {"_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version"}  # by transformers
_SHARE = 0.005  # of answers that another machine's rounding may change
_NEEDED = {CONFIG, WEIGHTS, *_OF_THE_CIRCUIT}


@dataclass(frozen=True)
class TwinRecord:
    """What twin.json says. of: the manifest of the circuit's checkpoint; files: hashes of the files beside."""

    format: Literal["trained-twin"]
    version: int
    lanes: dict[str, list[int]]
    rest: list[int]
    seed: int
    steps: int
    measured: Faithfulness | None
    of: Manifest
    files: dict[str, str]


def is_twin(directory: Path) -> bool:
    return (directory / TWIN).is_file()


def check_out(out: Path, overwrite: bool) -> None:
    """CheckpointError where a twin must not be written."""
    check_place(out)
    if out.exists() and _earlier(out) is None:
        raise CheckpointError(f"{out} exists and is no twin, so it is left alone.")
    if out.exists() and not overwrite:
        raise CheckpointError(f"{out} holds a twin already: --force replaces it.")


def _earlier(out: Path) -> dict[str, str] | None:
    """The files of a twin and their hashes, as its twin.json has them; None where there is no twin of ours."""
    return recorded_files(out / TWIN, lambda content: content.get("format") == FORMAT)


def write_twin(twin: Twin, source: Path, out: Path) -> None:
    """Write the directory, whole or not at all; files in an earlier twin that are the user's own stay.

    source: the checkpoint of its circuit, whose manifest is kept as twin of.
    """
    with staging(out) as place:
        twin.model.save_pretrained(place)
        others = [name for name in _WHERE_THERE_ARE if (source / name).is_file()]
        for name in (*_OF_THE_CIRCUIT, *others):
            shutil.copyfile(source / name, place / name)
        record = {"format": FORMAT, "version": VERSION, **twin.record(), "of": read_json(source / MANIFEST)}
        record["files"] = {path.name: file_hash(path) for path in sorted(place.iterdir())}
        keep_others(out, place, {TWIN} | own_files(out, _earlier(out) or {}))
        write_text(place / TWIN, json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_twin(directory: Path) -> tuple[Twin, Manifest]:
    """(the twin with its model, the manifest of its circuit); CheckpointError where a file is missing or was
    changed, and for lanes that the model does not have. Which lanes are whose, `check_lanes` says.
    """
    with of_damage():
        return _read(directory)


def _read(directory: Path) -> tuple[Twin, Manifest]:
    """`read_twin`, of whose errors each is about a file that stands there, or must."""
    from compiler.graft.hosts import check_runs
    from compiler.runtime.saved_model import saved_model

    content = read_json(directory / TWIN)
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
        raise CheckpointError(f"{directory / TWIN} is no record of a twin of ours.")
    record = parse(TwinRecord, content, TWIN)
    if record.steps < 0:
        raise CheckpointError(f"{directory / TWIN}: steps is {shown(record.steps)}, and it is a count.")
    odd = [name for name in record.files if Path(name).name != name]
    if odd or not record.files.keys() >= _NEEDED:
        raise CheckpointError(f"{directory / TWIN} must have the hashes of {', '.join(sorted(_NEEDED))}.")
    for name, expected in record.files.items():
        check_plain(directory / name)
        if file_hash(directory / name) != expected:
            raise CheckpointError(f"{directory / name} is damaged: it is not the file that was written.")
        of_circuit = record.of.files.get(name)
        if name in _KEPT and (of_circuit is None or of_circuit.sha256 != expected):
            raise CheckpointError(f"{directory / name} is not that of the circuit whose twin this is.")
    config = read_json(directory / CONFIG)
    asked = {"model_type": "mamba", "hidden_size": WIDTH, "num_hidden_layers": BLOCKS}
    if not isinstance(config, dict) or any(not same_json(config.get(key), value) for key, value in asked.items()):
        raise CheckpointError(f"{directory / CONFIG} is not that of a twin: {BLOCKS} blocks of Mamba of width {WIDTH}.")
    model = saved_model(directory, "float32").eval()
    try:
        check_runs(model)
    except GraftError as reason:
        raise CheckpointError(str(reason)) from reason
    return Twin(model, record.lanes, record.rest, record.seed, record.steps, record.measured), record.of


def check_lanes(twin: Twin, truth: Truth) -> None:
    """CheckpointError unless this is the model of a twin of this circuit, these are the lanes that are drawn for the
    circuit and seed, and what was measured of the twin is what is found again.
    """
    with of_damage():
        _check_lanes(twin, truth)


def _check_lanes(twin: Twin, truth: Truth) -> None:
    asked, found = config_of(truth).to_dict(), twin.model.config.to_dict()
    for key in sorted(asked.keys() - _NOTES):
        if not same_json(found.get(key), asked[key]):
            raise CheckpointError(f"{CONFIG}: {key} is {shown(found.get(key))}, and a twin has {shown(asked[key])}.")
    if twin.seed < 0 or twin.lanes != lanes_of(truth, twin.seed) or twin.rest:
        raise CheckpointError(f"{TWIN}: its lanes are not those that a twin of seed {twin.seed} is trained on.")
    if twin.faithfulness is None and twin.steps:
        raise CheckpointError(f"{TWIN}: measured is null, and what was trained by {twin.steps} steps was measured.")
    if twin.faithfulness is not None:
        found, told = asdict(measured(truth, twin, seen_by(truth, twin.seed))), asdict(twin.faithfulness)
        other = [name for name in told if not _near(told[name], found[name])]
        if other:
            raise CheckpointError(
                f"{TWIN}: measured.{other[0]} is {shown(told[other[0]], 80)}, and measured anew it is otherwise."
            )


def _near(told: Any, found: Any) -> bool:
    """Shares as another machine may find them too; nothing of edges, where a twin was trained before there were."""
    if isinstance(told, dict):
        return not told or (told.keys() == found.keys() and all(_near(told[k], found[k]) for k in told))
    return abs(told - found) <= _SHARE
