"""One circuit of the zoo: compiled, saved, proved by the checker, and asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from compiler.artifact.artifact import Artifact
from compiler.artifact.compare import without_sources
from compiler.artifact.files import MANIFEST, WEIGHTS
from compiler.artifact.load import load
from compiler.artifact.manifest import file_hash, text_hash
from compiler.language.data import to_data
from constructions.checkpoints.scores import module_scores, reference_scores
from constructions.command.prove import hashes, write_record
from constructions.zoo.difficulty import difficulty
from constructions.zoo.entry import Answered, Entry
from constructions.zoo.row import ASKED, Row
from verify.check import CheckedForm, Verification, check_forms
from verify.checker.check import UNSTATED, Verdict
from verify.checker.check import check as prove
from verify.tasks.task import IGNORED, Batch, by_length


def build(entry: Entry, directory: Path, seed: int = 0, arch: str = "") -> Row:
    """Write the checkpoint of a circuit with its proof.json, and ask the saved model. arch: as for `Entry.write`."""
    began = time.process_time()
    made = entry.write(directory, arch)
    verdict = prove(directory)
    write_record(directory, verdict.to_json() | {"files": hashes(directory, verdict.accepted)})
    found = ask(made, directory, entry.sequences(ASKED, seed))
    proof, why = _proof(verdict)
    return Row(
        name=entry.name,
        circuit=circuit_hash(entry),
        weights=file_hash(directory / WEIGHTS),
        promise=f"{made.compiled.source.token_language.description}; {verdict.domain}",
        proof=proof,
        why=why,
        exact=found.bit_exact,
        questions=found.queries,
        right=found.correct,
        seed=seed,
        arch=arch,
        manifest=file_hash(directory / MANIFEST),
        difficulty=difficulty(made.compiled),
        cpu_seconds=round(time.process_time() - began, 1),
    )


def circuit_hash(entry: Entry) -> str:
    """SHA-256 of the circuit as data, wherever its lines stand."""
    return text_hash(json.dumps(without_sources(to_data(entry.circuit())), sort_keys=True))


def _proof(verdict: Verdict) -> tuple[str, str]:
    """What is proved, and why the rest is not."""
    if verdict.weights is not None:
        return "", verdict.weights
    if verdict.task is None:
        return "answers", ""
    return "scores", "" if verdict.task == UNSTATED else verdict.task


def ask(made: Artifact, directory: Path, sequences: list[Answered]) -> Verification:
    """Run the saved model on sequences: its answers against theirs, its scores bit for bit against the circuit's."""
    form = CheckedForm(module_scores(load(directory)), made.model.over_vocabulary)
    (found,) = check_forms([form], reference_scores(made.compiled), _batches(made, sequences))
    return found


def _batches(made: Artifact, sequences: list[Answered]) -> Iterator[Batch]:
    ids = {token: i for i, token in enumerate(made.compiled.source.token_alphabet.tokens)} | {None: IGNORED}
    return by_length(([ids[t] for t in word], [ids[a] for a in answers]) for word, answers in sequences)
