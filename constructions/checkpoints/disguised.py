"""Disguise a checkpoint, and hold a disguised one to its circuit, with its key or without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from compiler.artifact.artifact import Artifact
from compiler.artifact.compare import entry_differences, foreign_files, tensor_differences, text_differences
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CONFIG, MANIFEST, WEIGHTS, check_shapes
from compiler.artifact.json_files import read_json, same_json, shown
from compiler.artifact.load import load
from compiler.artifact.manifest import FORMAT_VERSION, file_hash, manifest_content
from compiler.artifact.save import checkpoint_texts
from compiler.disguise.directory import (
    KEPT,
    TEXTS,
    Made,
    as_recorded,
    noise_of,
    read_disguised,
    record_of,
    said_of_noise,
    write,
    write_plain,
    write_weights,
)
from compiler.disguise.draw import COLUMNS, LANES, Disguise, draw
from compiler.disguise.errors import DisguiseError
from compiler.disguise.facts import facts_of
from compiler.disguise.key import Key
from compiler.disguise.noise import noise
from compiler.disguise.steps import Tensors, applied
from compiler.targets.family import HEAD
from constructions.checkpoints import artifact
from constructions.checkpoints.artifact import claims, report
from constructions.checkpoints.built import Built
from constructions.checkpoints.guarantee import (
    Proof,
    promise_of,
    proof_of,
    verdict_of,
    weights_proved,
    without_tests,
)
from constructions.checkpoints.noisy import batches_of, lead_with_noise, measured_noise, noise_anew, with_tensors
from constructions.checkpoints.saved import Finding, rebuilt, recorded, same
from verify.checker.check import Verdict, check

ATTEMPTS = {1: ((),), 2: ((), (COLUMNS,), (LANES,)), 3: ((), (COLUMNS,), (LANES,), (COLUMNS, LANES))}
"""What is left out of a level, in this order, until the checker proves what it proves of the plain weights."""


@dataclass(frozen=True)
class Disguised:
    """What was written. proof: of the disguised weights, None where it was not asked for; left_out: parts of the level
    and why; logits: how many were compared with the plain model's, bit by bit, on how many sequences. noise: what
    was measured of the weights with noise; the rest is said of those without.
    """

    disguise: Disguise
    key: Key
    proof: Verdict | None
    left_out: dict[str, str]
    logits: int
    sequences: int
    noise: dict[str, Any] | None = None


def disguise_checkpoint(
    directory: Path,
    out: Path,
    level: int,
    seed: int,
    certify: bool = True,
    samples: int = 100,
    epsilon: float = 0,
    where: str = "all",
    key_file: Path | None = None,
    overwrite: bool = True,
) -> Disguised:
    """Write the checkpoint in another basis to `out`, and return its key. epsilon: noise on every weight behind that;
    where: "head" for noise on the head's weights only. key_file: where the key goes, before the directory. overwrite:
    whether what another run made there meanwhile is replaced.

    DisguiseError where no disguise is exact: of circuits over numbers, of bounded errors, and where nothing that the
    level adds is proved; CheckpointError for a checkpoint that is not what its circuit compiles to.
    """
    load(directory)
    built, _ = same(directory)
    if built.over_numbers or built.model is None:
        raise DisguiseError(f"{directory} is no language model, and only language models can be disguised.")
    found, proof, left_out = _proved(built, level, seed, certify)
    logits, sequences = _compared(built, found, samples)
    measured = None
    if epsilon:
        if built.compiled.dtype != "float32":
            raise DisguiseError(
                f"--noise {epsilon:g}: noise is for float32, and {directory} is {built.compiled.dtype}."
            )
        step = noise(found.tensors, epsilon, seed, where)
        exact, noisy = found.tensors, applied([step], found.tensors)
        found = replace(found, steps=[*found.steps, step], tensors=noisy)
        measured = {"epsilon": epsilon, "where": where, "samples": samples}
        measured |= measured_noise(built, with_tensors(built, noisy), samples)
        if where == "head" and proof is not None:
            measured |= lead_with_noise(built.model.config, exact, noisy, promise_of(built), proof)
    steps, tensors = found.steps, found.tensors
    made = Made(proof is not None, proof is not None and proof.weights is None, sequences)
    content = manifest_content(directory)
    key = write(directory, content, level, steps, tensors, out, measured, key_file, overwrite, made)
    return Disguised(found, key, proof, left_out, logits, sequences, measured)


def _proved(built: Built, level: int, seed: int, certify: bool) -> tuple[Disguise, Verdict | None, dict[str, str]]:
    """The first draw of which the checker proves what it proves of the plain weights."""
    plain, why = None, ""
    for parts in ATTEMPTS.get(level, ((),)):
        found = draw(facts_of(built.compiled, built.model), level, seed, parts)
        if not any(found.added.values()) and level > 1:
            why = why or "no lane, column or channel of it has room"
            continue
        if not certify:
            return found, None, {}
        verdict = verdict_of(with_tensors(built, found.tensors))
        plain = verdict_of(built) if verdict.weights and plain is None else plain
        lost = [w for part, w in verdict.parts().items() if w and plain is not None and plain.parts()[part] is None]
        if not lost:
            return found, verdict, dict.fromkeys(parts, why)
        why = lost[0]
    others = "another --seed" if level == 1 else f"another --seed or --level {level - 1}"
    raise DisguiseError(f"level {level} adds nothing that is proved to be exact here: {why}; use {others}.")


def _compared(built: Built, found: Disguise, samples: int) -> tuple[int, int]:
    """How many logits, on how many sequences of its tasks, are the same bits; DisguiseError where one is not."""
    plain, other = built.stack(), with_tensors(built, found.tensors).stack()
    logits = sequences = 0
    for batch in batches_of(built, samples):
        tokens = torch.as_tensor(batch.tokens)
        one, two = plain(tokens).float(), other(tokens).float()
        if not torch.equal(one.view(torch.int32), two.view(torch.int32)):
            raise DisguiseError("a logit of the disguised model differs from the plain one's, so nothing was written.")
        logits, sequences = logits + one.numel(), sequences + len(tokens)
    return logits, sequences


def verify_disguised(
    directory: Path,
    mode: str = "auto",
    samples: int = 1000,
    transformers: bool = False,
    progress: Callable[[str, int], Callable[[int], None]] = artifact.NO_PROGRESS,
    data: Path | None = None,
    key: Key | None = None,
) -> Finding:
    """Run a disguised checkpoint against its circuit; with its key, compare every weight with what the circuit compiles
    to, behind the steps taken back. A step may do anything, so that promises no more than is proved of the weights that
    stand, or tried. The other arguments are those of `saved.verify_checkpoint`.
    """
    manifest, tensors = read_disguised(directory)
    built = rebuilt(directory, manifest, MANIFEST)
    if built.over_numbers or built.model is None:
        raise DisguiseError(f"{directory} describes no language model, and only these can be disguised.")
    compiled = Artifact(built.compiled, built.model)
    texts = checkpoint_texts(built.model.config, built.model.tokens, built.compiled.source.end, compiled.circuit)
    complaints = text_differences(directory, texts) + foreign_files(directory, {MANIFEST, WEIGHTS, *TEXTS})
    content = read_json(directory / MANIFEST)
    complaints += _entry_differences(content, built)
    if manifest.task is not None and not same_json(manifest.task, built.construction.asks()):
        complaints.append(f"{MANIFEST} states another task than that of {built.construction.title()}")
    if key is not None:
        complaints += key_differences(directory, key, tensors, built)
    if forms := _form_differences(tensors, built):
        return Finding(built, None, [f"the disguised checkpoint: {c}" for c in [*complaints, *forms]], None, {})
    known, said = content["disguise"].get("noise"), ""
    if known is not None:
        said = as_recorded(known)
        if key is None:
            needed = DisguiseError(f"{directory} has noise. {said}. --key FILE compares that, and the rest.")
            needed.exit_code = 2  # nothing is wrong with the files
            raise needed
        if transformers:
            raise ValueError(
                "--runtime transformers: it reads the weights with their noise, and nothing is exact of these."
            )
        if not complaints:
            found, differing = noise_anew(built, key, tensors, known)
            complaints, said = [*complaints, *differing], f"As they stand: {said_of_noise(found)}"
            tensors = applied(key.steps[:-1], key.plain(tensors))  # the noise is the last step
    run = with_tensors(built, tensors)
    stack = run.stack()
    model = artifact.hugging_face(directory, built.compiled.dtype) if transformers else stack
    tasks = None if data is None else [recorded(data, built)]
    results = artifact.verify(built, model, mode, samples, built.construction.seed + 1, progress, tasks=tasks)
    proof = proof_of(run)
    if not weights_proved(proof):
        complaints += _lost(proof, proof_of(built)) if record_of(content).certified else []
        if not complaints and not any(result.sequences for result in results.values()):
            raise _unlooked_at(directory, proof)
    complaints = [f"the disguised checkpoint: {c}" for c in complaints]
    return Finding(run, stack, complaints, None, results, proof, noise=said, disguised=True)


def _form_differences(tensors: Tensors, built: Built) -> list[str]:
    """Where weights have other names or shapes than the model's: what is wrong of the first that is, or []."""
    try:
        check_shapes(built.model.config, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
    except CheckpointError as reason:
        return [str(reason)]
    return []


def _lost(proof: Proof, plain: Proof) -> list[str]:
    """What the checker proves of the plain weights and not of these: of those that were written it did, so these were
    changed since. [] where nothing is.
    """
    parts, of_plain = (each[0]["parts"] for each in (proof, plain))
    lost = ", ".join(name for name, proved in of_plain.items() if proved and not parts[name])
    said = f"not proved of its weights: {lost}; all of this is proved of those that its circuit compiles to, and no"
    why = "disguise is written of which less is proved (but with --no-certify, and then its record tells so)"
    return [f"{said} {why}"] if lost else []


def _unlooked_at(directory: Path, proof: Proof) -> DisguiseError:
    """Of weights that are neither proved nor run: there is nothing that was verified."""
    said = without_tests(proof[1])
    reason = DisguiseError(f"nothing was run of {directory}, and of its weights: {said}. Leave out --verify none.")
    reason.exit_code = 2  # nothing is wrong with the files
    return reason


def _entry_differences(content: Mapping[str, Any], built: Built) -> list[str]:
    """Where a disguise's manifest says something else than that of its circuit would, but for the task, which is the
    author's word."""
    told = claims(report(built, {}, None)) if built.construction.registered else {}
    if told:
        told["theorem"] = built.construction.recorded_statement(content.get("theorem"))
    whole = Artifact(built.compiled, built.model, told).manifest | {"format_version": FORMAT_VERSION}
    here, expected = ({n: each[n] for n in KEPT if n in each and n != "task"} for each in (content, whole))
    return entry_differences(MANIFEST, here, expected)


@dataclass(frozen=True)
class Undisguised:
    """verdict: on the plain checkpoint that a key gives back. standing: on the disguised directory as it stands, but
    for the noise in its weights; it rests on no key. noise: what is proved of the weights with noise in the head
    (`lead_with_noise`); None where there is none.
    """

    verdict: Verdict
    standing: Verdict
    noise: dict[str, Any] | None

    @property
    def accepted(self) -> bool:
        """Whether the answers of the disguised weights are proved: a step of a key may do anything, so the plain
        checkpoint alone says nothing of them.
        """
        return self.verdict.accepted and self.standing.accepted and (self.noise is None or "lead" in self.noise)


def prove_plain(directory: Path, key: Key) -> Undisguised:
    """The checker's verdicts with a key; DisguiseError where it gives another checkpoint.

    The disguised weights must be what the key makes of the plain ones, bit for bit.
    """
    _, tensors = read_disguised(directory)
    try:
        plain = key.plain(tensors)
    except DisguiseError as reason:
        raise DisguiseError(f"this is not the key of the weights in {directory}: {reason}") from reason
    again = applied(key.steps, plain)
    changed = next((name for name in sorted(tensors) if again[name].tobytes() != tensors[name].tobytes()), None)
    if changed is not None:
        raise DisguiseError(f"the key does not give {changed} of {directory} back, so nothing is proved of it.")
    with TemporaryDirectory() as place:
        out = Path(place) / "plain"
        try:
            write_plain(directory, key, plain, out)
            kept = manifest_content(out)
        except CheckpointError as reason:
            raise DisguiseError(
                f"with the key taken back {directory} is not the plain checkpoint: the key is that of other weights, "
                "or a file was changed."
            ) from reason
        for sentence in _record_differences(directory, key, kept):
            raise DisguiseError(f"{sentence}.")
        verdict = check(out)
    if noise_of(directory) is None:
        return Undisguised(verdict, check(directory), None)
    exact = applied(key.steps[:-1], plain)  # the noise is the last step
    standing = _with_weights(directory, exact)
    if any(exact[name].tobytes() != tensors[name].tobytes() for name in tensors if name != HEAD):
        return Undisguised(verdict, standing, {"unproved": "other weights than the head's have noise"})
    config, promise = read_json(directory / CONFIG), read_json(directory / MANIFEST)["promise"]
    return Undisguised(verdict, standing, lead_with_noise(config, exact, tensors, promise, standing))


def _with_weights(directory: Path, tensors: Tensors) -> Verdict:
    """The checker's verdict on a directory that held these weights."""
    with TemporaryDirectory() as place:
        for path in directory.iterdir():
            if path.name != WEIGHTS:
                (Path(place) / path.name).symlink_to(path.absolute())
        write_weights(tensors, Path(place))
        return check(place)


def key_differences(directory: Path, key: Key, tensors: Tensors, built: Built) -> list[str]:
    """Where weights, with the key's steps taken back, are not what the circuit compiles to: [] where every bit is."""
    try:
        plain = key.plain(tensors)
    except DisguiseError as reason:
        return [f"this is not the key of its weights: {str(reason).rstrip('.')}"]
    found = {name: torch.from_numpy(tensor) for name, tensor in plain.items()}
    differing = tensor_differences(WEIGHTS, found, built.model.tensors)
    differing = [f"with the key taken back, {sentence}" for sentence in differing]
    again = applied(key.steps, {name: tensor.numpy() for name, tensor in built.model.tensors.items()})
    differing += [
        f"the key gives other weights {n}" for n in sorted(again) if again[n].tobytes() != tensors[n].tobytes()
    ]
    return differing or _kept_differences(directory, key, plain)


def _kept_differences(directory: Path, key: Key, plain: Tensors) -> list[str]:
    """Where the files that a key keeps are not those of the checkpoint that was disguised: they are none of ours, do
    not fit to each other, or do not fit to the disguise.
    """
    with TemporaryDirectory() as place:
        try:
            write_plain(directory, key, plain, Path(place) / "plain")
            kept = manifest_content(Path(place) / "plain")
        except CheckpointError as reason:
            return [str(reason).rstrip(".")]
    return _record_differences(directory, key, kept)


def _record_differences(directory: Path, key: Key, kept: Mapping[str, Any]) -> list[str]:
    """Where a key and the construction.json that it keeps say something else than a disguise, which has the same."""
    here = read_json(directory / MANIFEST)
    level = here["disguise"]["level"]
    differing = [] if level == key.level else [f"its level is {shown(level)}, and the key's is {key.level}"]
    if file_hash(directory / WEIGHTS) != key.weights:
        differing.append("its weights are not those of the key")
    return differing + [
        f"the {MANIFEST} that the key keeps has another {name} than the one that stands here"
        for name in KEPT
        if (name in kept) != (name in here) or not same_json(kept.get(name), here.get(name))
    ]
