"""Lemma 3.3 and Theorems 3.1, 3.2, D.1 and D.2 of paper D on every mixer: all small inputs, a thousand tokens, read by
transformers, damaged.

The answers come from the tasks of `verify/tasks`, which share no code with a circuit. On fnn+ssm the network runs in
exact numbers, whose scores are the circuit's, and as a torch module, whose scores need only be near
those; on real mixers the saved language model runs as modules of mamba_ssm and by transformers, and every score must be
the circuit's to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from compiler.artifact.compare import weight_differences
from compiler.artifact.model import Stack
from compiler.artifact.package import bare_sizes
from compiler.errors import CompileError
from constructions.checkpoints import artifact
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.scores import module_scores
from constructions.construction import Construction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.places import Arch
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.token_selection import network
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.page import named
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction
from verify.check import Scores, check
from verify.samples import Cost, chosen_batches, split
from verify.tasks.ngrams import NgramLookup
from verify.tasks.task import Batch, Task

ARCHS: tuple[Arch, ...] = ("fnn+ssm", "mamba", "mamba2", "s4d")
LONG_TOKENS = 1000  # of a batch: transformers keeps every step of Mamba's state at once
FAULTS = 4  # one-weight errors for each row
FAULTY_SEQUENCES = 64  # of the small inputs, that each is run on


@dataclass(frozen=True)
class Statement:
    """name: which one; small: a model all of whose inputs are run; long: one that is run on long ones."""

    name: str
    small: Construction
    long: Construction


STATEMENTS = (
    Statement("3.3, d' = 1", TokenSelection("angle", 4, 2, 4), TokenSelection("angle", 6, 3, 1000)),
    Statement("3.3, d' = 2", TokenSelection("plane", 2, 2, 4), TokenSelection("plane", 5, 2, 1000)),
    Statement("3.3, d' = 3", TokenSelection("signs", 3, 2, 3), TokenSelection("signs", 3, 2, 1000)),
    Statement("3.2", AssociativeRecall(3, 3, 3), AssociativeRecall(16, 16, 499)),
    Statement("3.2, distinct keys", AssociativeRecall(3, 3, 3, True), AssociativeRecall(499, 16, 499, True)),
    Statement("D.1", UniqueInduction(3, 6), UniqueInduction(32, 1000)),
    Statement("3.1, places", Copy(n=5, vocab=3), Copy(n=499, vocab=4)),
    Statement("3.1, n-grams", CopyNgram(2, 3, 5), CopyNgram(3, 4, 499)),
    Statement("3.1, each n-gram once", CopyNgram(2, 2, 4), CopyNgram(2, 16, 256)),
    Statement("D.2", SelectiveCopy(n=2, vocab=2, length=6), SelectiveCopy(n=16, vocab=8, length=982)),
)


@dataclass(frozen=True)
class Run:
    """What ran on which model: of the longest sequence its tokens, and how many answers of how many were right.

    exact: whether all scores were the circuit's (of the torch module of fnn+ssm: within 1e-6).
    """

    by: str
    model: str
    tokens: int
    sequences: int
    queries: int
    right: int
    exact: bool

    @property
    def good(self) -> bool:
        return self.exact and self.right == self.queries and self.queries > 0


@dataclass(frozen=True)
class InjectedFaults:
    """One-weight errors in the small model: how many, how many a run notices, and how many the comparison of files.

    A run may miss some: a step of −200 and one of 200 write the same 0 where nothing is written. differing: None where
    there is no file.
    """

    count: int
    seen: int
    differing: int | None

    @property
    def good(self) -> bool:
        return self.differing in (None, self.count) and self.seen > 0


@dataclass(frozen=True)
class Row:
    """A statement on a mixer. every: what ran on the small model; random: what on the long one, of whose sizes."""

    statement: str
    arch: str
    samples: int
    seed: int
    every: tuple[Run, ...] = ()
    random: tuple[Run, ...] = ()
    sizes: str = ""
    plants: InjectedFaults | None = None
    refused: str = ""
    cpu_seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        return self.statement, self.arch

    @property
    def good(self) -> bool:
        """Refused, or right throughout with every injected fault found."""
        if self.refused:
            return True
        runs = (*self.every, *self.random)
        return bool(runs) and all(run.good for run in runs) and self.plants is not None and self.plants.good

    @classmethod
    def of(cls, record: dict[str, Any]) -> Row:
        """From JSON; TypeError or KeyError for other entries."""
        runs = {name: tuple(Run(**run) for run in record[name]) for name in ("every", "random")}
        return cls(**(record | runs | {"plants": record["plants"] and InjectedFaults(**record["plants"])}))


def measure(statement: Statement, arch: Arch, samples: int, seed: int) -> Row:
    """Build, run and damage; a row with the reason where a model of it is refused."""
    began = time.process_time()
    row = Row(statement.name, arch, samples, seed)
    try:
        small, long = (_built(replace(c, arch=arch)) for c in (statement.small, statement.long))
        found = small.damaged(seed)
        every = tuple(small.runs("exhaustive", samples, seed))
        random = tuple(long.runs("random", samples, seed))
        row = replace(row, every=every, random=random, sizes=long.sizes, plants=found)
    except CompileError as error:
        row = replace(row, refused="; ".join(dict.fromkeys(reason for _, reason in error.reasons)))
    return replace(row, cpu_seconds=round(time.process_time() - began, 1))


def tasks_of(construction: Construction) -> Iterable[Task]:
    """The oracle of each question; copying by n-grams is asked what its rule gives, also where that is no copy."""
    if isinstance(construction, CopyNgram):
        return [NgramLookup(construction.n, construction.vocab, construction.length)]
    return construction.tasks()


# One model ---------------------------------------------------------------------------------------------


def _built(construction: Construction) -> _OnNetwork | _OnMixer:
    if construction.target == "fnn+ssm":
        return _OnNetwork(construction, network.build(construction))
    return _OnMixer(construction, build(construction))


def _batches(construction: Construction, tokens: int, mode: str, samples: int, seed: int) -> Iterator[Batch]:
    """Cases that attack, then all sequences or random ones: few at a time where they are long, and of each case two."""
    for task in tasks_of(construction):
        batches = chosen_batches(task, mode, samples, seed, Cost(tokens)).batches
        if mode == "random":
            batches = split(map(_two_of_a_case, batches), max(1, LONG_TOKENS // task.length))
        yield from batches


def _two_of_a_case(batch: Batch) -> Batch:
    """The first and the last sequence of a case, all of what is random."""
    ends = slice(None, None, max(1, len(batch) - 1)) if batch.case else slice(None)
    return Batch(batch.tokens[ends], batch.labels[ends], batch.case)


def _some(construction: Construction, tokens: int, seed: int) -> list[Batch]:
    return list(_batches(construction, tokens, "random", FAULTY_SEQUENCES, seed))


def _run(by: str, construction: Construction, scores: Scores, reference: Scores, batches: Iterator[Batch], bound=0.0):
    longest = 0

    def measured() -> Iterator[Batch]:
        nonlocal longest
        for batch in batches:
            longest = max(longest, batch.tokens.shape[1])
            yield batch

    result = check(scores, reference, measured(), bound=bound)
    return Run(by, named(construction), longest, result.sequences, result.queries, result.correct, result.within)


@dataclass(frozen=True)
class _OnNetwork:
    construction: Construction
    built: network.BuiltNetwork

    @property
    def sizes(self) -> str:
        sizes = self.built.compiled.sizes
        return f"M {sizes.M}, D {sizes.D:,}"

    def runs(self, mode: str, samples: int, seed: int) -> Iterator[Run]:
        compiled, tokens = self.built.compiled, self.built.compiled.source.token_alphabet.size
        batches = lambda: _batches(self.construction, tokens, mode, samples, seed)
        yield _run("exact numbers", self.construction, self._exact, compiled.interpret, batches())
        module = module_scores(compiled.module(form="fft"))
        yield _run("torch module", self.construction, module, self._exact, batches(), network.NEAR)

    def _exact(self, ids: np.ndarray) -> np.ndarray:
        compiled = self.built.compiled
        return compiled.run(ids, np.float64 if compiled.fits_float64 else object)

    def damaged(self, seed: int) -> InjectedFaults:
        """In the torch module, which no file holds."""
        compiled = self.built.compiled
        some = _some(self.construction, compiled.source.token_alphabet.size, seed)
        seen = 0
        for name, changed in faults(dict(compiled.module().named_parameters()), seed):
            module = compiled.module()
            module.get_parameter(name).data = changed
            seen += not check(module_scores(module), self._exact, some, bound=network.NEAR).passed
        return InjectedFaults(FAULTS, seen, None)


@dataclass(frozen=True)
class _OnMixer:
    construction: Construction
    built: Built

    @property
    def sizes(self) -> str:
        sizes = bare_sizes(self.built.compiled)
        widest, columns = (max(getattr(size, name) for size in sizes) for name in ("d_inner", "d_state"))
        return f"{len(sizes)} block{'s' * (len(sizes) != 1)}, {widest:,}·{columns:,}"

    def runs(self, mode: str, samples: int, seed: int) -> Iterator[Run]:
        built, dtype = self.built, self.built.compiled.dtype
        batches = lambda: _batches(self.construction, built.compiled.source.alphabet.size, mode, samples, seed)
        yield _run("mamba_ssm", self.construction, module_scores(built.stack()), self._reference, batches())  # type: ignore[arg-type]
        with TemporaryDirectory() as directory:
            artifact.save(built, {}, Path(directory) / "checkpoint")
            loaded = module_scores(artifact.hugging_face(Path(directory) / "checkpoint", dtype))
            yield _run("transformers", self.construction, loaded, self._reference, batches())

    def _reference(self, ids: np.ndarray) -> np.ndarray:
        return self.built.model.over_vocabulary(self.built.compiled.interpret(ids))  # type: ignore[union-attr]

    def damaged(self, seed: int) -> InjectedFaults:
        """In the tensors of the language model: run as modules of mamba_ssm, and compared as a file."""
        built, model = self.built, self.built.model
        some = _some(self.construction, built.compiled.source.alphabet.size, seed)
        seen, differing = 0, 0
        with TemporaryDirectory() as directory:
            path = Path(directory) / "model.safetensors"
            for name, changed in faults(model.tensors, seed):  # type: ignore[union-attr]
                tensors = model.tensors | {name: changed}  # type: ignore[union-attr]
                stack = Stack.from_language_model(model.config, tensors)  # type: ignore[union-attr]
                scores = module_scores(artifact.in_dtype(stack, built.compiled.dtype))
                seen += not check(scores, self._reference, some).passed
                save_file(tensors, path, {"format": "pt"})
                differing += bool(weight_differences(path, model.tensors))  # type: ignore[union-attr]
        return InjectedFaults(FAULTS, seen, differing)


def faults(tensors: Mapping[str, torch.Tensor], seed: int) -> Iterator[tuple[str, torch.Tensor]]:
    """FAULTS times a tensor, one after the other, in which a weight that is not 0 has another sign.

    Frequencies of cosines are left out, which have no sign.
    """
    rng = np.random.default_rng(seed)
    names = [name for name, tensor in tensors.items() if tensor.count_nonzero() and not name.endswith("a1")]
    for number in range(FAULTS):
        name = names[number * len(names) // FAULTS]
        changed = tensors[name].detach().clone()
        places = changed.view(-1).nonzero()[:, 0]
        changed.view(-1)[places[rng.integers(len(places))]] *= -1
        yield name, changed
