"""A compiled circuit as a checkpoint in memory: the model, the names in its weights, the circuit as data, the
promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from compiler.artifact.answers import Answers, Task, check_claim, record, task_function
from compiler.artifact.config import cuda_limits
from compiler.artifact.numbers_config import NumberInput, numbers_example
from compiler.artifact.numeric import NumericModel, numeric_model
from compiler.artifact.package import (
    LanguageModel,
    bare_sizes,
    language_model,
    packaged_sizes,
    size_fields,
    with_a_block,
)
from compiler.artifact.prompts import first_prompt
from compiler.compiled import Compiled
from compiler.exactness.error_bound import exact_in
from compiler.ir.coordinate import Coordinate
from compiler.language.data import language_to_data, to_data
from compiler.language.operations import Source
from compiler.targets import family_of
from compiler.tracing.causal_graph import causal_graph

REACHES = (2.0**-6, 1.0, 16.0, 256.0)  # sizes of real inputs for which error bounds are told
_EXAMPLES = (*range(4, 13), 3, 2, 1)  # lengths that an example may have, the first that the language has
_WALKS = 16


@dataclass(frozen=True, eq=False)
class Artifact:
    """What `save` writes and what a saved checkpoint is compared with.

    claims: entries of the manifest beyond those of every circuit (a construction's theorem, bounds, proof, runs).
    answers: of a circuit whose author says what it should answer.
    asked: (an input on which a task asks something, the right answer), for the card; None where no task is known.
    """

    compiled: Compiled
    model: LanguageModel | NumericModel
    claims: Mapping[str, Any] = field(default_factory=dict)
    answers: Answers | None = None
    asked: tuple[str, str] | None = None

    @classmethod
    def of(cls, compiled: Compiled, task: Task | str | Path | None = None) -> Artifact:
        """Package a compiled circuit; CompileError where there is no model of it that could be saved.

        task: what it should answer, by default the circuit's own; CheckpointError where it answers otherwise.
        """
        asked, stated, answers = compiled.source.task if task is None else task, {}, None
        if asked is not None:
            function = task_function(asked)
            answers, claim = record(compiled, function), getattr(function, "claim", None)
            stated = {} if claim is None else {"task": dict(claim) | {"end": compiled.source.end}}
            if stated:
                check_claim(stated["task"], answers, compiled)
        compiled = savable(compiled)
        return cls(compiled, packaged(compiled), stated, answers)

    @cached_property
    def circuit(self) -> dict[str, Any]:
        """The content of circuit.json."""
        return to_data(self.compiled.source)

    @cached_property
    def graph(self) -> dict[str, Any]:
        """The content of causal_graph.json."""
        return causal_graph(self.compiled)

    @property
    def promise(self) -> dict[str, Any]:
        """For which sequences the model gives the circuit's scores, and how exactly."""
        source = self.compiled.source
        exact = all(exact_in(self.compiled.domains, s) for s in source.streams)
        level = (
            {"level": "bit-exact"} if exact else {"level": "bounded-error", "error_bound": self.compiled.error_bound}
        )
        said = {"stop": source.end, "dtype": self.compiled.dtype} | level
        if isinstance(self.model, NumericModel):
            return said | _over_numbers(self.compiled, self.model)
        return language_to_data(source.token_language) | said

    @property
    def example(self) -> tuple[str, str | None]:
        """(a short input, the right answer or None) for the card: where no task is known, some input of the promise."""
        if self.asked is not None:
            return self.asked
        if isinstance(self.model, NumericModel):
            return numbers_example(self.model.config["inputs"], self.compiled.source.max_length), None
        return self._answered() or (self._some_walk(), None)

    def _answered(self) -> tuple[str, str] | None:
        """Of what the circuit's author was asked, a short sequence up to its last answer, of most letters."""
        found = []
        for given in () if self.answers is None else self.answers.sequences:
            last = [(i, answer) for i, answer in enumerate(given.answers) if answer is not None][-1:]
            for at, answer in last if last and last[0][0] < max(_EXAMPLES) else ():
                found.append((len(set(given.tokens[: at + 1])), " ".join(given.tokens[: at + 1]), answer))
        return max(found)[1:] if found else None

    def _some_walk(self) -> str:
        """Of some short walks of the language the one that holds most letters; whole prompts where it knows them."""
        language = self.compiled.source.token_language
        for length in (n for n in _EXAMPLES if n <= language.max_length):
            whole = [prompt for walk in language.walks(length, _WALKS) if (prompt := first_prompt(language, walk))]
            if whole:
                return language.alphabet.decode(max(whole, key=lambda walk: len(set(walk))))
        return ""

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The content of construction.json before it is sealed."""
        return {
            "circuit": self.compiled.source.name,
            "arch": self.compiled.context.target.name,
            "dtype": self.compiled.dtype,
            "promise": self.promise,
            "sizes": sizes(self.compiled, self.model),
            "lanes": list(self.compiled.lanes.names),
            "blocks": block_names(self.compiled, self.model),
            "meanings": meanings(self.compiled, self.model),
            "cuda_limits": cuda_limits(self.model.config),
            "versions": {"compiler": compiler_version()},
        } | (dict(self.claims) | self._asked | self._answers)

    @property
    def _answers(self) -> dict[str, Any]:
        said = self.answers
        if said is None:
            return {}
        counted = {"sequences": len(said.sequences), "questions": said.questions}
        return {"answers": {"function": said.function, "says": said.says} | counted}

    @property
    def _asked(self) -> dict[str, Any]:
        """What the circuit was compiled with, where that is not the default, and where its prompts end: circuit.json
        says neither.
        """
        limit, groups = self.compiled.max_d_state, self.compiled.context.target.n_groups
        language = self.compiled.source.language
        told = {"max_d_state": limit} if limit is not None else {}
        told |= {"n_groups": groups} if groups != 1 else {}
        return told | ({"asked": language.asked} if language is not None and language.asked else {})


def savable(compiled: Compiled) -> Compiled:
    """The same circuit as it is saved: a language model has a layer, even an idle one. CompileError where none is."""
    return compiled if compiled.source.alphabet is None else with_a_block(compiled)


def packaged(compiled: Compiled, most: int | None = None) -> LanguageModel | NumericModel:
    """The model that is saved of a compiled circuit: a language model, or one over numbers.

    most: parameters that it may have; CompileError, before any is made, where it has more.
    """
    if compiled.source.alphabet is None:
        return numeric_model(compiled, most)
    return language_model(compiled, most)


def _over_numbers(compiled: Compiled, model: NumericModel) -> dict[str, Any]:
    """What is promised, and of which numbers: an error bound for inputs of several sizes, where any are real."""
    inputs = [NumberInput(**record) for record in model.config["inputs"]]
    return {
        "language": None,
        "inputs": model.config["inputs"],
        "length": compiled.source.max_length,
        "description": "; ".join(map(str, inputs)),
        "error_bounds": [{"inputs": reach, "error": bound} for reach, bound in error_bounds(compiled)],
    }


def error_bounds(compiled: Compiled) -> list[tuple[float, float]]:
    """(largest real input, largest error) for sizes from 1 to what is declared, 0 where no input is real; [] where
    nothing is real or no bound is known.
    """
    if not compiled.error_bound:
        return []
    inputs = [s for s in compiled.core.streams if s.operation.source is Source.NUMBERS]
    reals = [compiled.domains.of(s) for s in inputs if not compiled.domains.of(s).step]
    declared = max((float(domain.bound) for domain in reals), default=0.0)
    least = max((float(max((*domain.low, *-domain.high))) for domain in reals), default=0.0)  # some input is no smaller
    sizes = sorted({size for size in REACHES if least <= size < declared} | {declared})
    return [(size, bound) for size in sizes if (bound := compiled.error_bound_within(size)) is not None]


def block_names(compiled: Compiled, model: LanguageModel | NumericModel) -> list[dict[str, list[str]]]:
    """For each block the names of all channels in use, those that only feed ports included, and of the state
    columns.
    """
    return [
        {"channels": [c.name for c in channels], "columns": list(block.columns.names)}
        for channels, block in zip(_channels(compiled, model), compiled.blocks, strict=True)
    ]


def meanings(compiled: Compiled, model: LanguageModel | NumericModel) -> dict[str, Any]:
    """What every named lane, channel and column holds, in words: stream, token or bit, and scale."""
    blocks = [
        {"channels": [c.said for c in channels], "columns": [c.said for c in block.columns.coordinates]}
        for channels, block in zip(_channels(compiled, model), compiled.blocks, strict=True)
    ]
    return {"lanes": [c.said for c in compiled.lanes.coordinates], "blocks": blocks}


def _channels(compiled: Compiled, model: LanguageModel | NumericModel) -> list[list[Coordinate]]:
    """The channels of each block that have a name, in order."""
    numbers = isinstance(model, NumericModel)
    name = "blocks.{}.out_proj.weight".format if numbers else family_of(model.config["model_type"]).output_name
    axes = [model.layout.axes[name(i)][1] for i in range(len(compiled.blocks))]
    return [[axis.places[i] for i, name in enumerate(axis.names) if name] for axis in axes]


def sizes(compiled: Compiled, model: LanguageModel | NumericModel | None) -> dict[str, Any]:
    """Sizes of the bare stack as it runs, what each of its blocks uses of them, and of the packaged language model."""
    blocks = [size_fields(size) for size in bare_sizes(compiled)]
    modules = [size_fields(size) for size in packaged_sizes(compiled)]
    return {
        **{name: max((block[name] for block in modules), default=0) for name in ("d_model", "d_inner", "d_state")},
        "layers": len(blocks),
        "blocks": blocks,
        **_packaged_sizes(model),
    }


def compiler_version() -> str:
    """The version of this package, "unknown" where it runs without having been installed."""
    try:
        return version("mamba-constructions")
    except PackageNotFoundError:
        return "unknown"


def _packaged_sizes(model: LanguageModel | NumericModel | None) -> dict[str, Any]:
    if model is None:
        return {"parameters": None, "packaged": None}
    if isinstance(model, NumericModel):
        return {"parameters": sum(t.numel() for t in model.tensors.values()), "packaged": None}
    return {
        "parameters": sum(t.numel() for t in model.tensors.values()),
        "packaged": family_of(model.config["model_type"]).told_sizes(model.config),
    }
