"""The methods that have names, and those of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compiler.own_file import module_of
from constructions.scoring.evaluate import Score, score
from constructions.scoring.methods import attention, baselines, patching, relevance, subspaces
from constructions.scoring.problem import Found, Given, Problem
from verify.arguments import run_own

Method = Callable[[Given], Found]

METHODS: dict[str, Method] = {
    "random": baselines.random,
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


def found_by(name: str, problem: Problem) -> Found:
    """What a method of this name, or of FILE.py:function, finds; ValueError, one sentence, where there is none."""
    if name == ORACLE:
        return baselines.oracle(problem)
    if name in METHODS:
        return METHODS[name](problem.given)
    found = run_own(f"--method {name}", _from_file(name), problem.given, file=name.rpartition(":")[0])
    if not isinstance(found, Found):
        raise ValueError(f"--method {name} returned {type(found).__name__}, expected a Found.")
    return found


def score_of(name: str, problem: Problem) -> Score:
    """How good what a method finds is; ValueError, one sentence, where it gives what cannot be scored."""
    found = found_by(name, problem)
    if name == ORACLE or name in METHODS:
        return score(problem, found)
    return run_own(f"--method {name}: what it returned cannot be scored", score, problem, found)


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
