"""The methods that have names, and those of a file."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from constructions.scoring.methods import attention, baselines, patching, relevance, subspaces
from constructions.scoring.problem import Found, Given, Problem

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
    method = METHODS[name] if name in METHODS else _from_file(name)
    found = method(problem.given)
    if not isinstance(found, Found):
        raise ValueError(f"--method {name} returned {type(found).__name__}, expected a Found.")
    return found


def _from_file(name: str) -> Method:
    file, _, function = name.rpartition(":")
    path = Path(file)
    if not file.endswith(".py") or not path.is_file():
        raise ValueError(
            f"--method {name} is neither FILE.py:function of a file that exists nor one of "
            f"{', '.join([ORACLE, *METHODS])}."
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"--method {name}: {path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as reason:
        raise ValueError(f"--method {name}: {path} stops with {type(reason).__name__}: {reason}.") from reason
    if not callable(getattr(module, function, None)):
        raise ValueError(f"--method {name}: {path} has no function {function!r}.")
    return getattr(module, function)
