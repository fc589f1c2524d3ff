"""A disguised checkpoint as a directory: what transformers loads, the circuit and the promise, and no names.

Its construction.json has a format of its own, so what reads names in the weights refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from compiler.artifact.errors import CheckpointError, of_damage
from compiler.artifact.files import ANSWERS, CARD, CIRCUIT, CONFIG, GENERATION, GRAPH, MANIFEST, SEALED_FILES, WEIGHTS
from compiler.artifact.json_files import canonical_json, read_json, shown
from compiler.artifact.manifest import (
    DISGUISED,
    FORMAT,
    FORMAT_VERSION,
    Manifest,
    check_files,
    file_hash,
    is_disguised,
    manifest_damage,
    read_manifest,
    text_hash,
)
from compiler.artifact.others import keep_others, own_files
from compiler.artifact.place import check_place, recover, staging
from compiler.artifact.plain_files import check_plain, placed_first, text_of
from compiler.artifact.save import keep_what_is_not_ours, write_tensors, write_text
from compiler.artifact.schema import parse
from compiler.artifact.tokenizer import TOKENIZER_FILES
from compiler.artifact.weights_file import read_tensors
from compiler.digits import at_least, at_most
from compiler.disguise.draw import LEVELS
from compiler.disguise.errors import DisguiseError
from compiler.disguise.key import Key
from compiler.disguise.noise import WHERE
from compiler.disguise.steps import Step, Tensors
from compiler.language.arguments import counted
from compiler.language.markdown import prose

BESIDE = (MANIFEST, CARD, ANSWERS, GRAPH)  # of the plain checkpoint, which the key keeps
TEXTS = (CONFIG, GENERATION, CIRCUIT, *TOKENIZER_FILES)  # as they were
KEPT: tuple[str, ...] = ("circuit", "arch", "dtype", "promise", "format_version", "max_d_state", "n_groups", "asked")
KEPT += ("construction", "theorem", "params", "task")
_NAMELESS: dict[str, Any] = {"lanes": [], "blocks": [], "cuda_limits": [], "versions": {}, "card": ""}
_SIZES = {"d_model": 0, "d_inner": 0, "d_state": 0, "layers": 0, "blocks": [], "parameters": None, "packaged": None}


def check_disguised(directory: Path) -> None:
    """DisguiseError where there is no disguised checkpoint that a key could be of."""
    if not directory.exists():
        raise DisguiseError(f"{directory} does not exist.")
    _check_kind(directory, "leave the key out")


def _check_kind(directory: Path, otherwise: str) -> None:
    """DisguiseError unless a manifest of a disguised checkpoint stands there. otherwise: what to do with another."""
    with of_damage():
        if damage := manifest_damage(directory):
            raise DisguiseError(damage)
    if not is_disguised(directory):
        raise DisguiseError(f"{directory} is no disguised checkpoint; {otherwise}.")


def check_out(out: Path, overwrite: bool) -> None:
    """DisguiseError where a disguised checkpoint must not be written."""
    check_place(out)
    recover(out)
    if out.exists() and not is_disguised(out):
        raise DisguiseError(f"{out} exists and is no disguised checkpoint, so it is left alone.")
    if out.exists() and not overwrite:
        raise DisguiseError(f"{out} holds a disguised checkpoint already: --force replaces it.")


@dataclass(frozen=True)
class Made:
    """How a disguise came to be. certified: as in `DisguiseRecord`; proved: whether its weights are proved to give the
    circuit's scores; sequences: on how many its logits were compared with the plain model's, bit for bit.
    """

    certified: bool = True
    proved: bool = False
    sequences: int = 0


def write(
    source: Path,
    manifest: Mapping[str, Any],
    level: int,
    steps: list[Step],
    tensors: Tensors,
    out: Path,
    noise: Mapping[str, Any] | None = None,
    key_file: Path | None = None,
    overwrite: bool = True,
    made: Made = Made(),
) -> Key:
    """Write the directory, whole or not at all; the key that takes it back is returned, and stands nowhere in it. Files
    in an earlier one that are the user's own stay.

    manifest: the content of construction.json of the checkpoint at `source`; noise: what is known of noise. key_file:
    where the key goes before the directory appears, so that no weights ever stand without theirs. overwrite: whether
    what another run made meanwhile is replaced; else CheckpointError. made: what was proved of the weights.
    """
    plain = {name: text_of(source / name) for name in BESIDE if (source / name).exists()}
    with ExitStack() as stack, staging(out, new=not overwrite) as place:
        for name in TEXTS:
            write_text(place / name, text_of(source / name))
        write_weights(tensors, place)
        write_text(place / CARD, _card(manifest, level, noise, made))
        write_text(place / MANIFEST, canonical_json(_sealed(manifest, level, place, noise, made)))
        keep_others(out, place, _own_files(out))
        key = Key(level, file_hash(place / WEIGHTS), steps, plain)
        if key_file is not None:
            needed = lambda: _has_weights(out, key)
            stack.enter_context(placed_first(key_file, key.text(), needed, new=not overwrite))
    return key


def _own_files(out: Path) -> set[str]:
    """The files of an earlier disguised checkpoint, but a README.md that was edited since."""
    if not is_disguised(out):
        return set()
    card = {CARD: read_json(out / MANIFEST).get("card", "")}
    return {MANIFEST, *SEALED_FILES} | own_files(out, card)


def _has_weights(directory: Path, key: Key) -> bool:
    """Whether the weights there are the key's."""
    return (directory / WEIGHTS).is_file() and file_hash(directory / WEIGHTS) == key.weights


def write_weights(tensors: Tensors, place: Path) -> None:
    """model.safetensors of a directory."""
    found = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    write_tensors(found, place / WEIGHTS, {"format": "pt"})


def write_plain(directory: Path, key: Key, tensors: Tensors, out: Path) -> None:
    """Write the checkpoint that was disguised, every file as it was; CheckpointError where one would not be.

    Of an earlier checkpoint there the user's own files stay, as where one is saved.
    """
    with staging(out) as place:
        kept = keep_what_is_not_ours(out, place)
        for name in TEXTS:
            write_text(place / name, text_of(directory / name))
        for name, text in key.files.items():
            if name not in BESIDE:
                raise DisguiseError(f"the key has a file {name!r:.60}, which no checkpoint of ours has.")
            if not (kept and name == CARD):
                write_text(place / name, text)
        write_weights(tensors, place)
        try:
            check_files(place, read_manifest(place))
        except CheckpointError as reason:  # which names files of a place that is gone by then
            raise not_plain(directory, key, reason, place) from reason


def not_plain(directory: Path, key: Key, reason: CheckpointError, place: Path) -> DisguiseError:
    """What is wrong with what a key gives back, without the place where that stood for a while: with a file of the
    directory, where the key is that of its weights.
    """
    told = str(reason).replace(f"{place}/", "").replace(str(place), "it")
    found = DisguiseError(f"with the key taken back {directory} is not the plain checkpoint: {told}")
    if file_hash(directory / WEIGHTS) == key.weights:
        found.exit_code = 1
    return found


@dataclass(frozen=True)
class NoiseRecord:
    """What was measured of a model with noise before it was written, on so many samples of a task; `lead` or
    `unproved`: what the checker said.
    """

    epsilon: float
    answers: int
    right: int
    sequences: int
    every_sequence: bool
    largest_change: float
    where: Literal["all", "head"] = "all"
    lead: float | None = None
    unproved: str | None = None
    samples: int | None = None


@dataclass(frozen=True)
class DisguiseRecord:
    """What a disguised manifest says of its disguise. certified: whether the checker had to prove of the disguised
    weights what it proves of the plain ones before anything was written (not with `--no-certify`).
    """

    level: int
    certified: bool = True
    noise: NoiseRecord | None = None


def read_disguised(directory: Path) -> tuple[Manifest, Tensors]:
    """The manifest, as one without names, and the weights; DisguiseError where the directory is no disguised checkpoint
    (a plain one is none), and where a file is missing or was changed.
    """
    _check_kind(directory, "`construct disguise` makes one of a plain one")
    with of_damage():
        return _checked(directory, read_json(directory / MANIFEST))


def _checked(directory: Path, content: dict[str, Any]) -> tuple[Manifest, Tensors]:
    """`read_disguised`, of a manifest that says it is one."""
    claimed = content.pop("sha256", None)
    if claimed != text_hash(canonical_json(content)):
        raise DisguiseError(f"{directory / MANIFEST} was altered: its own hash does not fit it.")
    files = content.get("files")
    if not isinstance(files, dict) or files.keys() != set(SEALED_FILES):
        raise DisguiseError(f"{directory / MANIFEST} must have the hashes of {', '.join(SEALED_FILES)}, and no others.")
    for name, expected in files.items():
        check_plain(directory / name)
        if file_hash(directory / name) != expected:
            raise DisguiseError(f"{directory / name} is damaged: it is not the file that was written.")
    told = record_of(content)
    if told.level not in LEVELS:
        known = ", ".join(map(str, LEVELS))
        raise DisguiseError(f"{MANIFEST}: disguise.level is {shown(told.level)}, and the levels are {known}.")
    entries = {name: content[name] for name in KEPT if name in content}
    nameless = entries | _NAMELESS | {"format": FORMAT, "sha256": "", "files": {}, "sizes": _SIZES}
    tensors = read_tensors(directory / WEIGHTS)
    for name, tensor in sorted(tensors.items()):
        if (stored := str(tensor.dtype).removeprefix("torch.")) != "float32":
            raise DisguiseError(f"{directory / WEIGHTS} has {name} stored as {stored}, and weights stand in float32.")
    return parse(Manifest, nameless, MANIFEST), {name: tensor.numpy() for name, tensor in tensors.items()}


def record_of(content: Mapping[str, Any]) -> DisguiseRecord:
    """What the manifest with this content says of its disguise; CheckpointError where that is no record."""
    return parse(DisguiseRecord, content.get("disguise"), f"{MANIFEST}: disguise")


def noise_of(directory: Path) -> dict[str, Any] | None:
    """What the manifest of a disguised directory says of its noise; None where it has none."""
    return read_json(directory / MANIFEST)["disguise"].get("noise")


def said_of_noise(noise: Mapping[str, Any]) -> str:
    """What is known of a model with noise, in words."""
    share = "every sequence" if noise["every_sequence"] else counted(noise["sequences"], "sequence")
    lead, unproved = noise.get("lead"), noise.get("unproved")
    if lead is not None:
        proved = f"proved for every input of its promise: the right letter leads by {at_least(lead)} or more"
    else:
        why = "" if unproved is None else f" ({unproved})"
        proved = f"nothing of it is proved for other inputs{why}"
    where = WHERE[noise.get("where", "all")]
    return (
        f"noise of up to {at_most(noise['epsilon'])} in {where}; on {share} of its tasks "
        f"{noise['right']:,} of {noise['answers']:,} answers are right, the logit of a letter is off by "
        f"{at_most(noise['largest_change'])} or less; {proved}"
    )


def as_recorded(noise: Mapping[str, Any]) -> str:
    """The same of a record that was compared with nothing."""
    return f"Its maker recorded, and nothing here has compared: {said_of_noise(noise)}"


def _sealed(
    manifest: Mapping[str, Any], level: int, place: Path, noise: Mapping[str, Any] | None, made: Made
) -> dict[str, Any]:
    """What stands in construction.json: the promise without a name of any weight."""
    content = {name: manifest[name] for name in KEPT if name in manifest}
    content |= {"format": DISGUISED, "format_version": FORMAT_VERSION, "disguise": {"level": level}}
    if not made.certified:
        content["disguise"]["certified"] = False
    if noise is not None:
        content["disguise"]["noise"] = dict(noise)
    content["card"] = file_hash(place / CARD)
    content["files"] = {name: file_hash(place / name) for name in SEALED_FILES}
    return content | {"sha256": text_hash(canonical_json(content))}


def _card(manifest: Mapping[str, Any], level: int, noise: Mapping[str, Any] | None, made: Made = Made()) -> str:
    """README.md: what was done, and not how it is undone."""
    done = "\n".join(f"- {LEVELS[k]}" for k in range(1, level + 1))
    exact = "For every input of its promise it gives the logits of the plain model bit for bit."
    looked_at = (
        "`construct verify DIRECTORY` runs it against its circuit, `construct prove DIRECTORY` proves what can be "
        "proved of these\nweights. With `--key FILE` both hold it to the plain checkpoint, too."
    )
    if not made.proved:
        exact = (
            f"On {counted(made.sequences, 'sequence')} of its tasks it gave the logits of the plain model bit for bit; "
            "that it does on every input of its promise is not proved of these weights."
        )
    if noise is not None:
        exact = f"Its weights have noise, so its logits are not exact: {said_of_noise(noise)}."
        looked_at = (
            "`construct verify DIRECTORY --key FILE` measures that anew, and runs the weights without their noise; "
            "`construct prove\nDIRECTORY --key FILE` proves what can be proved."
        )
    return f"""---
library_name: transformers
tags:
- mamba
- compiled-circuit
---

# {prose(manifest["circuit"])}, disguised

A circuit in another basis. {exact}
The promise: {prose(manifest["promise"]["description"])}. Level {level}:

{done}

{looked_at}
"""
