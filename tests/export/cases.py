"""The checkpoints that go through every format, with what each client must say of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import compiler
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.construction import Construction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.words import EditDistance
from constructions.polynomials.count_in_row import CountInRow
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction
from tests.fresh import fresh
from verify.tasks.chain import ChainTask
from verify.tasks.task import IGNORED

CLIENTS = Path(__file__).parent / "clients"
ROWS, LONGEST = 4, 60


def constructions(arch: str) -> dict[str, Construction]:
    """Small ones of every family, by name."""
    return {
        f"mqar-{arch}": MQAR(kappa=4, vocab=9, arch=arch),
        f"induction-heads-{arch}": InductionHeads(vocab=6, length=LONGEST, arch=arch),
        f"keep-nth-{arch}": KeepNth(n=3, vocab=5, arch=arch),
        f"count-in-row-{arch}": CountInRow(largest=8, length=LONGEST, arch=arch),
        f"copy-{arch}": Copy(form="string", n=4, vocab=3, arch=arch),
        f"edit-distance-{arch}": EditDistance(length=2, distinct_letters=2, arch=arch),
    }


SMALL = constructions("mamba") | constructions("mamba2")
GROUPED = {"mqar-mamba2-groups": MQAR(kappa=4, vocab=9, arch="mamba2", n_groups=2)}
LARGE = {"mqar-16-512": MQAR(kappa=16, vocab=512)}
GATED = {  # with blocks that are functions of one position, for gated MLPs
    "recall-mamba": AssociativeRecall(3, 2, 3),
    "recall-mamba2": AssociativeRecall(3, 2, 3, arch="mamba2"),
    "selection-mamba": TokenSelection("angle", 3, 2, 4),
    "unique-induction-mamba2": UniqueInduction(4, 6, arch="mamba2"),
    "short-copy-mamba2": Copy(n=3, vocab=2, arch="mamba2"),
    "selective-copy-mamba2": SelectiveCopy(n=2, vocab=2, length=4, arch="mamba2"),
}


@dataclass
class Case:
    """A checkpoint, sequences of its task with the right answers, its scores for them, and chains to be written.

    ids, labels: (batch, length); scores: (batch, length, vocabulary) of our own modules; written: chain by prompt.
    """

    name: str
    directory: Path
    ids: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    tokens: list[str]
    written: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The first sequence as text."""
        return " ".join(self.tokens[i] for i in self.ids[0])


def made(name: str, construction: Construction, directory: Path) -> Case:
    """Compile and save a construction, and run it on a few sequences."""
    built = build(construction)
    artifact.save(built, {}, directory)
    task = construction.tasks()[0]
    batch = next(iter(task.random(ROWS, seed=7, batch_size=ROWS)))
    ids, labels = batch.tokens[:, :LONGEST], batch.labels[:, :LONGEST]
    stack = compiler.load(directory)
    with torch.no_grad():
        scores = stack(torch.from_numpy(ids)).numpy()
    written = {}
    if isinstance(task, ChainTask):
        says = lambda some: " ".join(stack.tokens[i] for i in some)
        written = {says(prompt): says(chain) for prompt, chain in task.cases(3, seed=3)}
    return Case(name, directory, ids, labels, scores, stack.tokens, written)


@dataclass
class Answer:
    """What a client said of one file: logits by mode, text written by prompt, the ids of the text and their text."""

    logits: dict[str, np.ndarray]
    written: dict[str, str]
    tokens: list[int] | None
    text: str | None

    def wrong(self, case: Case) -> list[str]:
        """A sentence for each difference from the case, bit by bit; [] for none."""
        found = []
        for mode, logits in self.logits.items():
            rows, length = logits.shape[:2]  # slow clients run the beginning alone
            expected, labels = case.scores[:rows, :length], case.labels[:rows, :length]
            if not np.array_equal(logits, expected):
                found.append(f"{case.name}, {mode}: off by {np.abs(logits - expected).max():g}")
            if (logits.argmax(-1) != labels)[labels != IGNORED].any():
                found.append(f"{case.name}, {mode}: an answer is wrong")
        found += [
            f"{case.name}: wrote {self.written.get(p)!r} after {p!r}"
            for p in case.written
            if self.written and self.written.get(p) != case.written[p]
        ]
        if self.tokens is not None and self.tokens != case.ids[0].tolist():
            found.append(f"{case.name}: the text has the ids {self.tokens}")
        if self.text is not None and self.text.strip() != case.text:
            found.append(f"{case.name}: the ids have the text {self.text!r}")
        return found


def ask(
    client: str, cases: Iterable[tuple[Case, Path]], place: Path, environment: Mapping[str, str] | None = None
) -> tuple[str, dict[str, Answer]]:
    """(name and version of the client, its answers by case); the client runs in a process of its own."""
    requests, answers = [], {}
    for case, path in cases:
        request: dict[str, Any] = {
            "path": str(path),
            "ids": str(place / f"{case.name}.npy"),
            "out": str(place / f"{case.name}.npz"),
            "text": case.text,
            "prompts": list(case.written),
            "most": max((len(chain.split()) for chain in case.written.values()), default=0) + 2,
        }
        np.save(request["ids"], case.ids)
        requests.append((case, request))
    asked = place / "requests.json"
    asked.write_text(json.dumps([request for _, request in requests]))
    command = (str(CLIENTS / f"{client}.py"), str(asked))
    if environment:
        own = os.environ | dict(environment)
        run = subprocess.run([sys.executable, *command], env=own, capture_output=True, text=True)
    else:
        run = fresh(*command)
    if run.returncode:
        raise RuntimeError(f"{client} ended with {run.returncode}: {run.stderr[-2000:]}")
    for case, request in requests:
        with np.load(request["out"]) as found:
            content = dict(found)
        written = dict(zip(request["prompts"], map(str, content.pop("written", ())), strict=False))
        tokens, text = content.pop("tokens", None), content.pop("text", None)
        answers[case.name] = Answer(
            content, written, None if tokens is None else tokens.tolist(), None if text is None else str(text)
        )
    return run.stdout.strip().splitlines()[-1], answers
