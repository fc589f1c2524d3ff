"""The real mamba_ssm modules on any machine: CUDA tensors reach their own kernels, CPU tensors reach ours.

mamba_ssm calls each fused kernel through an autograd Function (or, in `step()`, through one plain function). Those few
names are replaced, once, where they are looked up, by a dispatcher on the device of the first tensor.
"""

import contextlib
import functools
import importlib
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import nn

from compiler.runtime import cpu_layers, fake_triton, own_modules
from compiler.runtime.selective_scan import selective_scan
from compiler.runtime.shapes_only import ShapesOnly
from compiler.runtime.ssd import ssd_scan

INSTALL = "construct install-mamba"

_lock = threading.Lock()


class MambaClasses(NamedTuple):
    """Classes of the installed mamba_ssm, unmodified."""

    Mamba: type
    Mamba2: type
    MambaLMHeadModel: type
    MambaConfig: type
    InferenceParams: type


def has_mamba_ssm() -> bool:
    """Whether mamba_ssm is installed, without importing it."""
    return not fake_triton.is_missing("mamba_ssm")


def block_classes() -> dict[str, type]:
    """{"mamba", "mamba2"}: the real classes of mamba_ssm where it is installed, else ours with the same arithmetic."""
    found = mamba_classes() if has_mamba_ssm() else own_modules
    return {"mamba": found.Mamba, "mamba2": found.Mamba2}


def real_block(kind: str, d_model: int, index: int, arguments: Mapping[str, Any]) -> nn.Module:
    """A real block of this kind without values (parameters on the meta device); ValueError for another kind."""
    classes = block_classes()  # imports mamba_ssm, which takes a second: only when a block is built
    if kind not in classes:
        raise ValueError(f"unknown block kind {kind!r}: expected one of {list(classes)}.")
    with ShapesOnly():
        return classes[kind](d_model, layer_idx=index, device="meta", **arguments)


def is_real_block(module: nn.Module, kind: str) -> bool:
    """Whether a module is of this class, of mamba_ssm's where some module of it can exist, or of ours."""
    classes = [own_modules] + ([mamba_classes()] if "mamba_ssm" in sys.modules else [])
    return any(isinstance(module, {"mamba": found.Mamba, "mamba2": found.Mamba2}[kind]) for found in classes)


def mamba_classes():
    """Returns the real `MambaClasses`, ready for CPU and CUDA tensors.

    Imports mamba_ssm on the first call. Raises ImportError if it is not installed.
    """
    with _lock:
        return _load()


@functools.cache
def _load():
    if not has_mamba_ssm():
        raise ImportError(
            f"mamba_ssm is not installed, and this needs its own classes: run `{INSTALL}` (no GPU needed)."
        )
    _import_before_fakes()
    with fake_triton.importable_kernels(), _generation_when_called():
        mamba_ssm = importlib.import_module("mamba_ssm")
        generation = importlib.import_module("mamba_ssm.utils.generation")
        config = importlib.import_module("mamba_ssm.models.config_mamba")
    _dispatch_by_device()
    return MambaClasses(
        mamba_ssm.Mamba,
        mamba_ssm.Mamba2,
        mamba_ssm.MambaLMHeadModel,
        config.MambaConfig,
        generation.InferenceParams,
    )


def _import_before_fakes():
    """Imports what mamba_ssm needs and what would otherwise ask the stand-in whether triton is installed."""
    import huggingface_hub  # noqa: F401
    import torch.distributed
    import torch.utils._triton
    from transformers.utils.hub import cached_file  # noqa: F401

    torch.utils._triton.has_triton_package()  # caches its answer


class _WhenCalled(types.ModuleType):
    """A module whose names are functions that import the real module when they are called, and call its own."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: getattr(importlib.import_module(self.__name__), name)(
            *arguments, **options
        )


@contextlib.contextmanager
def _generation_when_called(name: str = "transformers.generation") -> Iterator[None]:
    """Within the context this module is imported without its code, unless it was imported before.

    mamba_ssm takes from it what `generate` returns. It imports every cache, PyTorch's compiler and sympy: seconds.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = _WhenCalled(name)
    try:
        yield
    finally:
        del sys.modules[name]


class ByDevice:
    """Stands in for an autograd Function: `apply` runs the original on CUDA tensors and `on_cpu` on CPU tensors."""

    def __init__(self, original, on_cpu):
        self.original = original
        self.on_cpu = on_cpu

    def apply(self, first, *arguments):
        return self.original.apply(first, *arguments) if first.is_cuda else self.on_cpu(first, *arguments)


def _function_by_device(original, on_cpu):
    """The same for a plain function whose first argument, positional or not, is a tensor."""

    @functools.wraps(original)
    def call(*arguments, **options):
        first = next(iter((*arguments, *options.values())))
        return (original if first.is_cuda else on_cpu)(*arguments, **options)

    return call


def _chunk_scan(
    x, dt, A, B, C, chunk_size, D, z, dt_bias, initial_states, seq_idx, cu_seqlens, dt_softplus, dt_limit, *returns
):
    """`ssd_scan` with the positional arguments of MambaChunkScanCombinedFn, packed sequences refused."""
    return_final_states, return_varlen_states = returns
    if return_varlen_states:
        raise ValueError("cu_seqlens is not supported on CPU: run each packed sequence on its own.")
    return ssd_scan(
        x, dt, A, B, C, chunk_size, D, z, dt_bias, initial_states, seq_idx, dt_softplus, dt_limit, return_final_states
    )


_AUTOGRAD_FUNCTIONS = {
    ("mamba_ssm.ops.selective_scan_interface", "SelectiveScanFn"): selective_scan,
    ("mamba_ssm.ops.selective_scan_interface", "MambaInnerFn"): cpu_layers.mamba_inner,
    ("mamba_ssm.ops.triton.ssd_combined", "MambaChunkScanCombinedFn"): _chunk_scan,
    ("mamba_ssm.ops.triton.ssd_combined", "MambaSplitConv1dScanCombinedFn"): cpu_layers.split_conv1d_scan,
    ("mamba_ssm.ops.triton.layernorm_gated", "LayerNormFn"): cpu_layers.gated_norm,
    ("mamba_ssm.ops.triton.layer_norm", "LayerNormFn"): cpu_layers.add_norm,
}

# Plain functions, with every module that holds its own reference to one.
_FUNCTIONS = {
    ("mamba_ssm.ops.triton.selective_state_update", "selective_state_update"): cpu_layers.selective_state_update,
    ("mamba_ssm.modules.mamba_simple", "selective_state_update"): cpu_layers.selective_state_update,
    ("mamba_ssm.modules.mamba2", "selective_state_update"): cpu_layers.selective_state_update,
    ("mamba_ssm.modules.mamba_simple", "causal_conv1d_fn"): cpu_layers.causal_conv1d,
    ("mamba_ssm.modules.mamba2", "causal_conv1d_fn"): cpu_layers.causal_conv1d,
    ("mamba_ssm.modules.mamba_simple", "causal_conv1d_update"): cpu_layers.causal_conv1d_update,
    ("mamba_ssm.modules.mamba2", "causal_conv1d_update"): cpu_layers.causal_conv1d_update,
}


def _dispatch_by_device():
    """Puts the dispatchers in place; a name that is None stays None (causal_conv1d is optional in mamba_ssm)."""
    for replace, table in ((ByDevice, _AUTOGRAD_FUNCTIONS), (_function_by_device, _FUNCTIONS)):
        for (module_name, name), on_cpu in table.items():
            module = importlib.import_module(module_name)
            original = getattr(module, name)
            if original is not None:
                setattr(module, name, replace(original, on_cpu))
