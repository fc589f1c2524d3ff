"""`construct verify DIR`: a checkpoint against what it says it is, from its files alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from compiler.artifact.artifact import Artifact
from compiler.artifact.compare import OF_ANSWERS, differences
from compiler.artifact.errors import CheckpointError, EditedError, of_damage
from compiler.artifact.files import CIRCUIT, MANIFEST, WEIGHTS, file_bytes
from compiler.artifact.json_files import shown
from compiler.artifact.load import load
from compiler.artifact.manifest import Manifest, read_manifest
from compiler.artifact.model import Stack
from compiler.artifact.numbers_config import NumberInput
from compiler.artifact.numeric import NumericStack
from compiler.artifact.plain_files import check_plain
from compiler.artifact.records import UNTESTED, GuaranteeRecord, without_bound
from compiler.artifact.schema import parse
from compiler.artifact.weights_file import read_shapes
from compiler.export.record import ExportRecord
from compiler.language.data import DataError, to_data
from compiler.language.data.budget import check_budget, check_language
from constructions.checkpoints import artifact
from constructions.checkpoints.artifact import UNVERIFIED, claims, promised_level, report
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.guarantee import NOT_ASKED, Proof, proof_of
from constructions.checkpoints.saved_circuit import SavedCircuit, read_circuit
from constructions.construction import LARGEST_PARAMETER, CircuitFamily, NumericConstruction
from constructions.copy_dp.sizes import A_COLUMN
from constructions.papers import is_told_no_more
from constructions.registry import families
from constructions.selectivity.mqar import MQAR
from verify.check import Verification
from verify.obstructions import as_before
from verify.tasks.recorded import Recorded, promised
from verify.tasks.task import Task

ZOOLOGY = "zoology"
LEAST_PARAMETERS = 1 << 22  # of a model that is built again, whatever the checkpoint holds: 16 MiB
PARAMETERS_A_BYTE = 2  # of the weights beside it: eight times what they hold, for an export has others than ours
_OTHER = "the checkpoint is not what its circuit compiles to"
BYTES_A_LETTER = 8  # of weights, at least: a letter has a row of the embedding and one of the head


class DamagedWeights(CheckpointError):
    """The weights are not those that the manifest is of, and too few to build it by."""

    exit_code = 1


@dataclass(frozen=True, eq=False)
class Finding:
    """What came out. built: None where the weights are missing. complaints: a sentence for each difference; stack: the
    model, None where it cannot be run. proof: what is proved of what the circuit compiles to, and so of the checkpoint
    where nothing differs; export: what an export has in the place of the checkpoint's layers; noise: of a disguise,
    what is known of its weights with their noise; all else is said of them without it. disguised: whether the weights
    are others than those that the circuit compiles to, with lanes elsewhere than the circuit's.
    """

    built: Built | None
    stack: Stack | None
    complaints: list[str]
    damage: str | None
    results: dict[str, Verification]
    proof: Proof = NOT_ASKED
    export: dict[str, int] | None = None
    noise: str = ""
    disguised: bool = False

    @property
    def good(self) -> bool:
        return not self.complaints and self.stack is not None and artifact.passed(self.built, self.results, self.proof)


def verify_checkpoint(
    directory: Path,
    mode: str = "auto",
    samples: int = 1000,
    transformers: bool = False,
    progress: Callable[[str, int], Callable[[int], None]] = artifact.NO_PROGRESS,
    data: Path | None = None,
) -> Finding:
    """Compare every file with what the circuit compiles to, then run the model on the construction's tasks.

    transformers: run Hugging Face's own PyTorch code on the directory rather than mamba_ssm's modules; data: a file of
    sequences and labels to run instead of the construction's own (`verify/tasks/recorded.py`). Raises
    CheckpointError where the manifest cannot be read, or describes nothing that can be built.
    """
    read_manifest(directory)
    try:
        check_plain(directory / WEIGHTS)  # by whose size it is decided how much may be built
    except CheckpointError as gone:
        return Finding(None, None, [str(gone)], str(gone), {})
    try:
        built = rebuild(directory)
    except DamagedWeights as cut:
        return Finding(None, None, [str(cut)], str(cut), {})
    except CheckpointError:
        if (damaged := unread(read_shapes, directory / WEIGHTS)) is None:
            raise
        return Finding(None, None, [damaged], damaged, {})
    if built.model is None:
        raise CheckpointError(
            f"{MANIFEST}: arch is {shown(built.compiled.context.target.name)}, of which there is no language model."
        )
    if transformers and built.over_numbers:
        raise ValueError("--runtime transformers: no library but ours loads a model over numbers; leave it out.")
    stack, damage = _load(directory)
    complaints = [damage] if damage else []
    if stack is not None and (
        misfit := _misfit(stack, built)
    ):  # nothing that is proved of the circuit is of this model
        return Finding(built, None, [*complaints, f"{_OTHER}: {misfit}"], damage, {})
    proof = proof_of(built) if _asked(directory) else NOT_ASKED
    differing = compare(directory, built, proof)
    complaints += map(_complaint, differing)
    if stack is None or (built.over_numbers and not _takes(stack, built)):
        return Finding(built, None, complaints, damage, {}, proof)
    model = artifact.hugging_face(directory, built.compiled.dtype) if transformers else stack
    tasks = None if data is None else [recorded(data, built)]
    results = artifact.verify(built, model, mode, samples, built.construction.seed + 1, progress, tasks=tasks)
    return Finding(built, stack, complaints, damage, results, proof)


def _complaint(differing: str) -> str:
    """A difference that `compare` found: what an author answered is nothing that a circuit compiles to."""
    return differing if differing.startswith(OF_ANSWERS) else f"{_OTHER}: {differing}"


def unread(read: Callable[[Path], object], path: Path) -> str | None:
    """Why what reads this path refuses it; None where it does not."""
    try:
        read(path)
    except CheckpointError as reason:
        return str(reason)
    return None


def recorded(data: Path, built: Built) -> Task:
    """A user's data set, or the public benchmark's, as a task; ValueError where it does not fit the checkpoint."""
    if str(data) == ZOOLOGY and not data.exists():
        return _zoology(built.construction)
    if built.compiled.source.alphabet is None:
        raise ValueError(f"--data {data} holds token ids, and the checkpoint is a model over numbers; leave it out.")
    task = Recorded(data, built.compiled.source.alphabet.size, partial(promised, built.compiled.source.token_language))
    longest = built.compiled.source.max_length
    if task.length > longest:
        raise ValueError(f"--data {data} has {task.length} tokens a sequence, and the promise ends at {longest}.")
    return task


def _zoology(construction: CircuitFamily) -> Task:
    """Zoology's MQAR at a checkpoint's sizes: random filler, zero filler where values add up, and rebound keys where
    the last value counts.
    """
    if not isinstance(construction, MQAR):
        raise ValueError(f"--data {ZOOLOGY} is recall by many keys, and the checkpoint is {construction.title()}.")
    (task,) = replace(construction, layout="forgetting" if construction.write == "last" else "benchmark").tasks()
    if task.length > construction.max_length:
        raise ValueError(
            f"--data {ZOOLOGY} has {task.length} tokens a sequence, and the promise ends at {construction.max_length}."
        )
    return task


def _misfit(stack: Stack | NumericStack, built: Built) -> str | None:
    """Why a model of tokens cannot be asked what its circuit is asked; None where it can, or is over numbers."""
    if built.over_numbers:
        return None
    if isinstance(stack, NumericStack):
        return "its model is over numbers, and its circuit over tokens"
    scored, wanted = stack.head.out_features, built.model.config["vocab_size"]
    return None if scored == wanted else f"its weights score {scored} tokens, and its circuit has {wanted}"


def _takes(stack: Stack | NumericStack, built: Built) -> bool:
    """Whether a model over numbers has the inputs, outputs and length of its circuit, so that it can be run at all."""
    config = built.model.config
    asked = [NumberInput(**record) for record in config["inputs"]]
    same = isinstance(stack, NumericStack) and list(stack.inputs) == asked
    return same and stack.config["outputs"] == config["outputs"] and stack.length == built.compiled.source.max_length


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
    DamagedWeights where they do not because the weights are not as many bytes as were saved.
    """
    directory, manifest = Path(directory), read_manifest(directory)
    try:
        with of_damage():
            return rebuilt(directory, manifest, MANIFEST)
    except CheckpointError as reason:
        with of_damage():
            check_plain(directory / WEIGHTS)
        held, saved = file_bytes(directory / WEIGHTS), manifest.files.get(WEIGHTS)
        if saved is None or held == saved.bytes:
            raise
        raise DamagedWeights(
            f"{directory / WEIGHTS} is damaged: bytes is {held}, expected {shown(saved.bytes, 80)}."
        ) from reason


def rebuilt(directory: Path, manifest: Manifest | ExportRecord, file: str, weights_file: str = WEIGHTS) -> Built:
    """The same from a manifest, or the record of an export with circuit.json beside it, that is called `file`.

    weights_file: the file whose size says how much may be built; no other file counts.
    """
    weights = file_bytes(directory / weights_file)
    most = max(LEAST_PARAMETERS, PARAMETERS_A_BYTE * weights)
    if manifest.construction is None:
        circuit = read_circuit(directory, manifest, weights)
        with of_what_it_asks(file):
            return build(circuit, most)
    known = families()
    if manifest.construction not in known:
        names = ", ".join(known)
        raise CheckpointError(
            f"the checkpoint's construction is {shown(manifest.construction)}, and it must be one of {names}."
        )
    with of_what_it_asks(f"{file}: params"):
        construction = parse(known[manifest.construction], manifest.params, f"{file}: params")
        return _rebuilt_of(construction, directory, manifest, file, weights, most)


@contextmanager
def of_what_it_asks(place: str) -> Iterator[None]:
    """A refusal of the body as a CheckpointError that names the entries of a file which ask for what is refused."""
    try:
        yield
    except CheckpointError:
        raise
    except ValueError as reason:  # a CompileError is one, and names no file
        said = " ".join(str(reason).split()).rstrip(".")
        raise CheckpointError(f"{place} ask{'s' * (':' not in place)} for what is refused: {said}.") from reason


def _rebuilt_of(
    construction: CircuitFamily, directory: Path, manifest: Manifest | ExportRecord, file: str, weights: int, most: int
) -> Built:
    """A construction of ours, as `rebuilt` builds it."""
    _check_backed(construction, file, weights + file_bytes(directory / CIRCUIT))
    if isinstance(construction, NumericConstruction):
        _check_work(construction, file, weights)
        return build(construction, most)
    tokens = (manifest.promise.language or {}).get("tokens")
    if construction.letters() != tokens:
        raise CheckpointError(
            f"{file}: params ask for {shown(construction.letters())} tokens, and its promise is over {shown(tokens)}."
        )
    if BYTES_A_LETTER * tokens > weights:
        raise CheckpointError(
            f"{file}: params ask for {shown(tokens)} tokens, and weights of {weights} bytes have rows for no more than "
            f"{weights // BYTES_A_LETTER}."
        )
    _check_work(construction, file, weights)
    return build(construction, most)


def _check_backed(construction: CircuitFamily, file: str, held: int) -> None:
    """CheckpointError, before any work, for sizes that nobody tries, or beyond the bytes of circuit and weights."""
    for entry in fields(construction):
        value, most = getattr(construction, entry.name), entry.metadata["most"]
        if type(value) is int and most < LARGEST_PARAMETER and abs(value) > min(most, held):
            why = (
                f"the largest that is tried is {most}" if most < held else f"its circuit and weights have {held} bytes"
            )
            raise CheckpointError(f"{file}: params.{entry.name} is {shown(value)}, and {why}.")


def _check_work(construction: CircuitFamily, file: str, weights: int) -> None:
    """CheckpointError, before it is compiled, for a circuit that asks for more than its weights may."""
    construction.check_sizes()
    data = to_data(construction.circuit())
    try:
        check_budget(data, weights)
        check_language(data["promise"].get("language"))
    except DataError as reason:
        raise CheckpointError(f"{file}: params ask for too much: {reason}.") from reason


def _asked(directory: Path) -> bool:
    """Whether a checkpoint tells of a proof, or tells nothing of it."""
    guarantee = read_manifest(directory).guarantee
    return guarantee is None or (guarantee.certificate, guarantee.proof) != NOT_ASKED


def same(directory: Path, prove: bool = False) -> tuple[Built, Proof]:
    """What a checkpoint's circuit compiles to; CheckpointError where the checkpoint is anything else.

    prove: whether what the checkpoint tells of a proof is proved anew. Otherwise it is a record, and whoever repeats it
    must say so.
    """
    told, built = read_manifest(directory).guarantee, rebuild(directory)
    recorded = NOT_ASKED if told is None else (told.certificate, told.proof)
    proof = proof_of(built) if prove else recorded
    if differing := compare(directory, built, proof if _asked(directory) else NOT_ASKED):
        first = _complaint(differing[0]).rstrip(".")
        raise EditedError(f"{first}. construct verify {directory} lists the differences.")
    return built, proof


def compare(directory: str | Path, built: Built, proof: Proof) -> list[str]:
    """Where a checkpoint is not what its own circuit compiles to: every file and every claim, `proof` among them."""
    manifest = read_manifest(directory)
    told: dict = {} if manifest.task is None else {"task": manifest.task}  # the author's word, which the checker judges
    if manifest.construction is not None and manifest.guarantee is not None:
        told = claims(report(built, {}, None, None, proof))
        told["guarantee"] |= _as_run(manifest.guarantee, told["guarantee"]["answers"], promised_level(built), proof)
        told |= _bound_as_recorded(manifest, built.construction)
        if manifest.bound_source is None:  # of an earlier version
            del told["bound_source"]
        told["theorem"] = built.construction.recorded_statement(manifest.theorem)
        if not manifest.obstructions and not manifest.needed:  # of an earlier version, which told of none
            told = {name: value for name, value in told.items() if name not in ("obstructions", "needed")}
        elif "obstructions" in told:
            told["obstructions"] = _as_recorded(manifest.obstructions, built, told["obstructions"])
            if without_bound(manifest.needed) == told.get("needed"):  # likewise
                told["needed"] = manifest.needed
    answers = built.construction.answers if isinstance(built.construction, SavedCircuit) else None
    return differences(directory, Artifact(built.compiled, built.model, told, answers))


def _bound_as_recorded(manifest: Manifest, construction: CircuitFamily) -> dict[str, Any]:
    """Entries on the bound as an earlier version wrote them: of ours, or that of the theorem where columns are too few,
    or with a column for each where there are at most so many.
    """
    bound, source = construction.stated_bound()
    found = {"bound": manifest.bound, "bound_source": manifest.bound_source}
    before = [{"bound": bound, "bound_source": said} for said in (source, source.replace(A_COLUMN, "a column"))]
    return found if is_told_no_more(manifest.bound_source) or found in before else {}


def _as_recorded(found: list[str], built: Built, obstructions: list[str]) -> list[str]:
    """What a manifest may have for `obstructions`: these, or what an earlier version wrote for them."""
    if found == obstructions:
        return obstructions
    before = [str(one) for one in as_before(built.construction.obstructions(artifact.capacity(built.compiled)))]
    return found if found == before else obstructions


def _as_run(found: GuaranteeRecord, answers: str, level: str, proof: Proof) -> dict[str, str]:
    """What a guarantee may claim of what was run when it was made, which is run again: that something was, or nothing.

    answers: of no run; level: which a run can confirm.
    """
    run = found.level != UNVERIFIED
    said: dict[str, str] = {"level": level} if run else {}
    if run or found.proof == proof[1]:  # the second: of an earlier version, which said so of no tests as well
        said["proof"] = proof[1]
    said["answers"] = claimed_answers(found.answers, answers, "tested" if run else answers)
    return said


def claimed_answers(found: str | None, answers: str, otherwise: str) -> str | None:
    """Which answers a record may claim to be right. found: what it claims; answers: what is so without a run.

    Where these are not proved it claims what was run when it was made, which is run again: that something was, or
    nothing; "all" is that of an earlier version. otherwise: what is expected of one that claims anything else.
    """
    if answers not in UNTESTED:
        return answers
    return found if found in ("tested", *UNTESTED, "all") else otherwise
