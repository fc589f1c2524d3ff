"""`construct verify DIR`: a checkpoint against what it says it is, from its files alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compiler.artifact import CheckpointError, read_manifest
from compiler.artifact.artifact import Artifact
from compiler.artifact.compare import differences
from compiler.artifact.files import MANIFEST
from compiler.artifact.json_files import shown
from compiler.artifact.load import load
from compiler.artifact.model import Stack
from compiler.artifact.schema import parse
from constructions import artifact
from constructions.artifact import EXACT, NO_PROOF, Built, build, certificate, claims, report
from constructions.registry import CONSTRUCTIONS
from constructions.saved_circuit import SavedCircuit
from verify.check import Verification


@dataclass(frozen=True, eq=False)
class Finding:
    """What came out. complaints: a sentence for each difference; stack: the model, None where it cannot be run."""

    built: Built
    stack: Stack | None
    complaints: list[str]
    damage: str | None
    results: dict[str, Verification]

    @property
    def good(self) -> bool:
        return not self.complaints and self.stack is not None and artifact.passed(self.built, self.results)


def verify_checkpoint(
    directory: Path,
    mode: str = "auto",
    samples: int = 1000,
    transformers: bool = False,
    progress: Callable[[str, int], Callable[[int], None]] = artifact.NO_PROGRESS,
) -> Finding:
    """Compare every file with what the circuit compiles to, then run the model on the construction's tasks.

    transformers: run Hugging Face's own PyTorch code on the directory rather than mamba_ssm's modules. Raises
    CheckpointError where the manifest cannot be read, or describes nothing that can be built.
    """
    built = rebuild(directory)
    if built.model is None:
        raise CheckpointError(
            f"{MANIFEST}: arch is {shown(built.compiled.context.target.name)}, of which there is no language model."
        )
    stack, damage = _load(directory)
    complaints = [damage] if damage else []
    complaints += [f"the checkpoint is not what its circuit compiles to: {s}" for s in compare(directory, built)]
    if stack is None:
        return Finding(built, None, complaints, damage, {})
    stack = artifact.in_dtype(stack, built.compiled.dtype)
    model = artifact.hugging_face(directory, built.compiled.dtype) if transformers else stack
    results = artifact.verify(built, model, mode, samples, built.construction.seed + 1, progress)
    return Finding(built, stack, complaints, damage, results)


def _load(directory: Path) -> tuple[Stack | None, str | None]:
    """(the model, what is damaged): a damaged checkpoint is run as well where it can be, to say where it goes wrong."""
    try:
        return load(directory), None
    except CheckpointError as reason:
        damage = str(reason)
    try:
        return load(directory, sealed=False), damage
    except (CheckpointError, ValueError, OSError):
        return None, damage


def rebuild(directory: str | Path) -> Built:
    """Compile again what a checkpoint says it is: the independent side of `construct verify`.

    A construction of ours is built from its parameters, any other circuit from circuit.json and the promise.
    CheckpointError where there is none, or where sizes do not fit together: before any work that grows with them.
    """
    manifest = read_manifest(directory)
    if manifest.construction is None:
        return build(SavedCircuit.read(Path(directory), manifest))
    if manifest.construction not in CONSTRUCTIONS:
        names = ", ".join(CONSTRUCTIONS)
        raise CheckpointError(
            f"the checkpoint's construction is {shown(manifest.construction)}, and it must be one of {names}."
        )
    construction = parse(CONSTRUCTIONS[manifest.construction], manifest.params, f"{MANIFEST}: params")
    tokens = manifest.promise.language.get("tokens")
    if construction.letters() != tokens:
        raise CheckpointError(
            f"{MANIFEST}: params ask for {shown(construction.letters())} tokens, and "
            f"its promise is over {shown(tokens)}."
        )
    return build(construction)


def compare(directory: str | Path, built: Built) -> list[str]:
    """Where a checkpoint is not what its own circuit compiles to: every file, every claim, a proof it tells of."""
    manifest = read_manifest(directory)
    told: dict = {}
    if manifest.construction is not None and manifest.guarantee is not None:
        asked = (manifest.guarantee.certificate, manifest.guarantee.proof) != NO_PROOF
        told = claims(report(built, {}, None, None, certificate(built, built.bare_stack()) if asked else NO_PROOF))
        if manifest.guarantee.level == EXACT:  # a claim of what was run, which is run again
            told["guarantee"]["level"] = EXACT
    return differences(directory, Artifact(built.compiled, built.model, told))
