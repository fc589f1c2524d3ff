"""Kernels and runtimes that are known by name: `construct conformance --runtime NAME`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from conformance.kernel.kernel import Kernel
from conformance.models.runtime import Runtime


@dataclass(frozen=True)
class Known:
    """What a name stands for.

    version: of what runs; kernels: its functions, wrapped where their arguments have other names; models: how it opens
    checkpoints, None where it does not.
    """

    name: str
    version: str
    kernels: tuple[Kernel, ...]
    models: Runtime | None


_HOMES: Mapping[str, str] = {
    "ours": "conformance.runtimes.ours",
    "transformers": "conformance.runtimes.huggingface",
    "mamba-ssm": "conformance.runtimes.mamba_ssm",
    "mamba-ssm-cuda": "conformance.runtimes.cuda",
    "transformers-cuda": "conformance.runtimes.cuda",
    "transformers-torch-cuda": "conformance.runtimes.cuda",
    "transformers-nemotron-h": "conformance.runtimes.borrowed",
    "transformers-zamba2": "conformance.runtimes.borrowed",
    "transformers-bamba": "conformance.runtimes.borrowed",
    "transformers-granitemoehybrid": "conformance.runtimes.borrowed",
    "transformers-falcon-h1": "conformance.runtimes.borrowed",
    "transformers-zamba": "conformance.runtimes.borrowed",
    "mlx-lm": "conformance.runtimes.mlx",
    "fla": "conformance.runtimes.fla",
}
NAMES = tuple(_HOMES)


def check_name(name: str) -> None:
    """ValueError for a name of no runtime."""
    if name not in _HOMES:
        raise ValueError(f"--runtime {name!r} is not known: expected one of {', '.join(NAMES)}.")


def known(name: str) -> Known:
    """The runtime of a name; ValueError for another name or without its device, ImportError without its package."""
    check_name(name)
    try:
        home = import_module(_HOMES[name])
        load: Callable[[], Known] = home.loader(name) if hasattr(home, "loader") else home.load
        return load()
    except ImportError as error:
        raise ImportError(f"--runtime {name} cannot be loaded here: {error}.") from error
    except RuntimeError as error:  # no device, or no kernels
        raise ValueError(f"--runtime {name} cannot be run here: {error}") from error
