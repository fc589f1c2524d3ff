"""A twin as a directory: a plain model of transformers, the tokenizer of its circuit, and twin.json with its lanes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import ANSWERS, CIRCUIT, MANIFEST
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import file_hash
from compiler.artifact.place import check_place, staging
from compiler.artifact.plain_files import check_plain
from compiler.artifact.save import write_text
from compiler.artifact.tokenizer import TOKENIZER_FILES
from constructions.scoring.twin import Faithfulness, Twin

TWIN = "twin.json"
FORMAT, VERSION = "trained-twin", 1
_OF_THE_CIRCUIT = (CIRCUIT, *TOKENIZER_FILES)


def is_twin(directory: Path) -> bool:
    return (directory / TWIN).is_file()


def check_out(out: Path, overwrite: bool) -> None:
    """CheckpointError where a twin must not be written."""
    check_place(out)
    if out.exists() and not is_twin(out):
        raise CheckpointError(f"{out} exists and is no twin, so it is left alone.")
    if out.exists() and not overwrite:
        raise CheckpointError(f"{out} holds a twin already: --force replaces it.")


def write_twin(twin: Twin, source: Path, out: Path) -> None:
    """Write the directory, whole or not at all. source: the checkpoint of its circuit, whose manifest is kept as
    twin of."""
    with staging(out) as place:
        twin.model.save_pretrained(place)
        answers = [ANSWERS] if (source / ANSWERS).is_file() else []  # of a circuit with a task of its own
        for name in (*_OF_THE_CIRCUIT, *answers):
            shutil.copyfile(source / name, place / name)
        record = {"format": FORMAT, "version": VERSION, **twin.record(), "of": read_json(source / MANIFEST)}
        record["files"] = {path.name: file_hash(path) for path in sorted(place.iterdir())}
        write_text(place / TWIN, json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_twin(directory: Path) -> tuple[Twin, dict[str, Any]]:
    """(the twin with its model, the manifest of its circuit); CheckpointError where a file is missing or was
    changed."""
    from transformers import AutoModelForCausalLM

    record = read_json(directory / TWIN)
    if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("version") != VERSION:
        raise CheckpointError(f"{directory / TWIN} is no record of a twin of ours.")
    for name, expected in record["files"].items():
        check_plain(directory / name)
        if file_hash(directory / name) != expected:
            raise CheckpointError(f"{directory / name} is damaged: it is not the file that was written.")
    model = AutoModelForCausalLM.from_pretrained(directory, dtype="float32").eval()
    measured = None if record["measured"] is None else Faithfulness(**record["measured"])
    return Twin(model, record["lanes"], record["rest"], record["seed"], record["steps"], measured), record["of"]
