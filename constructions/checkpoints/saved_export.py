"""`construct verify DIR` of an export with gated MLPs: its files against its circuit, then mamba_ssm's own model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compiler.artifact import CheckpointError
from compiler.artifact.artifact import Artifact
from compiler.artifact.compare import entry_differences, foreign_files, tensor_differences, text_differences
from compiler.artifact.files import CARD
from compiler.artifact.formats import format_names
from compiler.artifact.json_files import read_json, shown
from compiler.artifact.manifest import file_hash
from compiler.artifact.model import Stack
from compiler.artifact.plain_files import check_plain
from compiler.artifact.schema import parse
from compiler.export.directory import RECORD
from compiler.export.mamba_ssm import WEIGHTS
from compiler.export.mamba_ssm_mlp import KIND, GatedLanguageModel, contents, gated_language_model
from compiler.export.record import FORMAT, FORMAT_VERSION, ExportRecord
from compiler.runtime import mamba_classes
from constructions.checkpoints import artifact
from constructions.checkpoints.artifact import claims, report
from constructions.checkpoints.built import Built
from constructions.checkpoints.guarantee import NOT_ASKED, Proof, proof_of
from constructions.checkpoints.saved import Finding, claimed_answers, rebuilt, recorded, unread
from verify.check import Verification, check
from verify.samples import Cost, chosen_batches

STEPPED = 64  # sequences of each task that also run token by token
OF_ITS_WRITING = ("checkpoint", "files")  # entries of a record that name the files, which are compared themselves


def is_export(directory: Path) -> bool:
    """Whether an export of any format stands there."""
    return (directory / RECORD).is_file()


def verify_export(
    directory: Path,
    mode: str = "auto",
    samples: int = 1000,
    transformers: bool = False,
    progress: Callable[[str, int], Callable[[int], None]] = artifact.NO_PROGRESS,
    data: Path | None = None,
) -> Finding:
    """Compare every file with what the circuit exports as, then run `MambaLMHeadModel` on the construction's tasks.

    The arguments are those of `saved.verify_checkpoint`. Raises ValueError for an export of another format, and
    CheckpointError where the record cannot be read or describes nothing that can be built.
    """
    record = _record(directory)
    if transformers:
        raise ValueError("--runtime transformers: it has no Mamba with gated MLPs; leave it out.")
    classes = mamba_classes()
    try:
        check_plain(directory / WEIGHTS, "export")  # by whose size it is decided how much may be built
    except CheckpointError as reason:
        gone = f"{str(reason).rstrip('.')}, so nothing of it was run."
        return Finding(None, None, [gone], gone, {})
    try:
        built = rebuilt(directory, record, RECORD, WEIGHTS)
    except CheckpointError:
        if (gone := _damage(directory, record) or unread(_tensors, directory)) is None:
            raise
        return Finding(None, None, [gone], gone, {})
    gated = gated_language_model(built.compiled)
    tasks = None if data is None else [recorded(data, built)]
    damage = _damage(directory, record)
    proof = proof_of(built) if record.answers == "all" else NOT_ASKED  # the record repeats the checkpoint's word
    complaints = [damage] if damage else []
    try:
        differing = _differences(directory, built, gated, _tensors(directory), proof)
        complaints += [f"the export is not what its circuit exports as: {sentence}" for sentence in differing]
        model = _model(classes, directory)
    except CheckpointError as reason:
        return Finding(built, None, [*complaints, str(reason)], damage, {}, export=told(gated))
    whole = lambda tokens: model(tokens).logits
    results = artifact.verify(built, whole, mode, samples, built.construction.seed + 1, progress, tasks=tasks)
    if mode != "none" and data is None:
        results |= _stepped(classes, model, built, gated, samples)
    return Finding(built, _stack(model, gated), complaints, damage, results, export=told(gated))


def told(gated: GatedLanguageModel) -> dict[str, Any]:
    """What a report says of the layers, and how many numbers the file of weights holds."""
    return {
        "parameters": sum(tensor.numel() for tensor in gated.tensors.values()),
        "layers": len(gated.layers),
        "gated_mlps": sum(mlp is not None for _, mlp in gated.layers),
        "d_intermediate": gated.config["d_intermediate"],
    }


def _record(directory: Path) -> ExportRecord:
    content = read_json(directory / RECORD)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{directory / RECORD} is not the record of an export.")
    if (kind := content.get("kind")) != KIND:
        error = ValueError if kind in format_names() else CheckpointError  # the file may be as it was written
        raise error(
            f"{directory} is an export for {shown(kind)}, and of exports only {KIND} is verified; "
            "verify the checkpoint that it was made from."
        )
    if content.get("format_version") != FORMAT_VERSION:
        version = shown(content.get("format_version"))
        raise CheckpointError(f"{directory / RECORD} has format version {version}, expected {FORMAT_VERSION}.")
    record = parse(ExportRecord, content, RECORD)
    if record.dtype != record.promise.dtype:
        raise CheckpointError(
            f"{RECORD}: dtype is {shown(record.dtype)}, and promise.dtype is {shown(record.promise.dtype)}."
        )
    return record


def _damage(directory: Path, record: ExportRecord) -> str | None:
    """The first file that is not the one that was written, but for the README.md, which the user may edit."""
    for name, expected in sorted(record.files.items()):
        path = directory / name
        if name == CARD:
            continue
        try:
            check_plain(path, "export")
        except CheckpointError as gone:
            return str(gone)
        if file_hash(path) != expected:
            return f"{path} is damaged: its SHA-256 is another than {RECORD} has."
    return None


def _tensors(directory: Path) -> dict[str, torch.Tensor]:
    """Those of the file, read without running what a pickle may hold; CheckpointError where it is none of ours."""
    path = directory / WEIGHTS
    try:
        with warnings.catch_warnings():  # torch tells of the format of a foreign file, and of its own source beside it
            warnings.simplefilter("ignore")
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as reason:  # torch raises whatever its reader meets in a file
        raise CheckpointError(f"{path} is no file of tensors, so nothing of it was run.") from reason
    if not isinstance(found, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in found.values()):
        raise CheckpointError(f"{path} holds no tensors by their names, so nothing of it was run.")
    return found


def _differences(
    directory: Path, built: Built, gated: GatedLanguageModel, tensors: dict[str, torch.Tensor], proof: Proof
) -> list[str]:
    """A sentence for each thing in which the files are not what the circuit exports as.

    proof: of its answers, where the record claims that all are right.
    """
    ours = claims(report(built, {}, None, None, proof)) if built.construction.registered else {}
    here = {name: value for name, value in read_json(directory / RECORD).items() if name not in OF_ITS_WRITING}
    if ours:
        proved = ours["guarantee"]["answers"]
        ours["guarantee"] |= {"answers": claimed_answers(here.get("answers"), proved, proved)}
        ours["theorem"] = built.construction.recorded_statement(here.get("theorem"))
    content, texts = contents(Artifact(built.compiled, built.model, ours), gated)
    expected = {name: value for name, value in content.items() if name not in OF_ITS_WRITING}
    found = text_differences(directory, texts) + entry_differences(RECORD, here, expected)
    unsealed = {WEIGHTS, CARD, *texts} - read_json(directory / RECORD)["files"].keys()
    found += [f"{RECORD} has no hash of {name}" for name in sorted(unsealed)]
    found += foreign_files(directory, {RECORD, WEIGHTS, *texts})
    return found + tensor_differences(WEIGHTS, tensors, gated.tensors)


def _model(classes: Any, directory: Path) -> Any:
    """The model as mamba_ssm itself loads it; CheckpointError where it does not."""
    try:
        return classes.MambaLMHeadModel.from_pretrained(str(directory), device="cpu", dtype=torch.float32).eval()
    except Exception as reason:  # whatever torch and mamba_ssm meet in files that are not ours
        said = (str(reason).splitlines() or [type(reason).__name__])[0].rstrip(".:")
        raise CheckpointError(f"mamba_ssm does not load {directory}: {said}.") from reason


def _stack(model: Any, gated: GatedLanguageModel) -> Stack:
    """The very modules one after another, to find the first lane that differs: mixer, MLP, mixer, …"""
    blocks, norms = [], []
    for layer, (_, mlp) in zip(model.backbone.layers, gated.layers, strict=True):
        blocks += [layer.mixer] if mlp is None else [layer.mixer, layer.mlp]
        norms += [layer.norm] if mlp is None else [layer.norm, layer.norm2]
    last = model.backbone.norm_f
    return Stack(model.backbone.embedding, blocks, model.lm_head, residual=True, norms=norms, final_norm=last)


def _stepped(
    classes: Any, model: Any, built: Built, gated: GatedLanguageModel, samples: int
) -> dict[str, Verification]:
    """Random sequences of each task again, token by token with the state carried on."""

    def scores(ids: np.ndarray) -> np.ndarray:
        state = classes.InferenceParams(max_seqlen=ids.shape[1], max_batch_size=len(ids))
        found = []
        with torch.no_grad():
            for at in range(ids.shape[1]):
                state.seqlen_offset = at
                found.append(model(torch.from_numpy(ids[:, at : at + 1]), inference_params=state).logits)
        return torch.cat(found, 1).numpy()

    expected = lambda ids: gated.plain.over_vocabulary(built.compiled.interpret(ids))
    cost, few = Cost(built.compiled.source.token_alphabet.size), min(samples, STEPPED)
    results = {}
    for task in built.construction.tasks():
        batches = chosen_batches(task, "random", few, built.construction.seed + 2, cost, adversarial=False).batches
        found = check(scores, expected, batches, asked=built.construction.asked_at)
        results[f"{task.describe()}, token by token"] = found
    return results
