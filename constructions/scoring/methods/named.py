"""The methods that have names, and those of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compiler.own_file import module_of
from constructions.scoring.evaluate import Score, score
from constructions.scoring.isolation import run_apart, settings_kept
from constructions.scoring.methods import attention, baselines, patching, relevance, subspaces
from constructions.scoring.problem import Found, Given, Problem
from verify.arguments import run_own

Method = Callable[[Given], Found]

METHODS: dict[str, Method] = {
    "random": baselines.random,
    "whole-stream": baselines.whole_stream,
    "activation-patching": patching.activation_patching,
    "attribution-patching": patching.attribution_patching,
    "integrated-gradients": patching.integrated_gradients,
    "mamba-lrp": relevance.mamba_lrp,
    "hidden-attention": attention.hidden_attention,
    "principal-components": subspaces.principal_components,
    "linear-probes": subspaces.linear_probes,
    "das": subspaces.alignment_search,
    "sparse-autoencoder": subspaces.sparse_autoencoder,
}
ORACLE = "oracle"  # reads the truth: a test of the scorer, and no method


@dataclass(frozen=True)
class Named:
    """A method as the command line names it: `METHODS`, the oracle, or FILE.py:function."""

    name: str
    run: Callable[[Problem], Found]
    own: bool = False

    @classmethod
    def of(cls, name: str) -> Named:
        """ValueError, one sentence, where there is no such method."""
        if name == ORACLE:
            return cls(name, baselines.oracle)
        if name in METHODS:
            return cls(name, lambda problem: run_apart(name, METHODS[name], problem.given))
        with settings_kept(0):
            method, file = _from_file(name), name.rpartition(":")[0]
        own = lambda given: run_own(f"--method {name}", method, given, file=file)
        return cls(name, lambda problem: run_apart(name, own, problem.given), own=True)

    def found(self, problem: Problem) -> Found:
        """What it finds; ValueError, one sentence, where that is no Found."""
        found = self.run(problem)
        if not isinstance(found, Found):
            raise ValueError(f"--method {self.name} returned {type(found).__name__}, expected a Found.")
        return found

    def score(self, problem: Problem) -> Score:
        """How good what it finds is; ValueError, one sentence, where it gives what cannot be scored."""
        found = self.found(problem)
        if not self.own:
            return score(problem, found)
        what = f"--method {self.name}: what it returned cannot be scored"
        return run_own(what, score, problem, found, file=self.name.rpartition(":")[0])  # no line of ours


def found_by(name: str, problem: Problem) -> Found:
    """What the method of this name finds."""
    return Named.of(name).found(problem)


def _from_file(name: str) -> Method:
    file, _, function = name.rpartition(":")
    path = Path(file)
    if not file.endswith(".py") or not path.is_file():
        raise ValueError(
            f"--method {name} is neither FILE.py:function of a file that exists nor one of "
            f"{', '.join([ORACLE, *METHODS])}."
        )
    module = run_own(f"--method {name}", module_of, path, file=file)
    if not callable(getattr(module, function, None)):
        raise ValueError(f"--method {name}: {path} has no function {function!r}.")
    return getattr(module, function)
