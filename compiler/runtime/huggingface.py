"""Hugging Face's own PyTorch code for Mamba, as an independent check of the real modules."""

import contextlib
import importlib
import importlib.metadata
import inspect
import sys
from types import ModuleType
from typing import NamedTuple

_ACCELERATORS = ("mamba_ssm", "causal_conv1d", "mambapy")
_MODELLING = {
    "transformers.models.mamba.modeling_mamba": "mamba_selective_scan",
    "transformers.models.mamba2.modeling_mamba2": "mamba2_chunk_scan",
}


class ModellingModules(NamedTuple):
    """transformers' modelling modules."""

    mamba: ModuleType
    mamba2: ModuleType


def torch_only_transformers():
    """Returns `ModellingModules`, every function that may be routed elsewhere bound to its PyTorch definition.

    They stay so for the rest of the process.

    transformers binds mamba_ssm's functions whenever mamba_ssm can be imported, on a CPU too; it would then be
    checked against itself. So those packages are hidden while the two modules are imported, and the PyTorch
    definitions then take the place of the wrappers that choose, also in modules that were imported earlier.
    Raises RuntimeError if this version of transformers binds its functions in some other way.
    """
    modules = without_accelerators()
    for module, scan in zip(modules, _MODELLING.values(), strict=True):
        unbind(module)
        _check_torch_only(module, scan)
    return ModellingModules(*modules)


def routed_transformers():
    """Returns transformers' modelling modules with mamba_ssm's functions in them, as a GPU runs them.

    Raises RuntimeError where this process has them as PyTorch's definitions, or transformers binds none.
    """
    modules = ModellingModules(*(importlib.import_module(name) for name in _MODELLING))
    for module in modules:
        if not any(_routes_elsewhere(function) for function in vars(module).values() if inspect.isfunction(function)):
            raise RuntimeError(
                f"{module.__name__} has no function of mamba_ssm here: it is not installed, or the PyTorch definitions "
                "were asked for earlier in this process."
            )
    return modules


def _routes_elsewhere(function):
    """Returns whether transformers calls another package's function where this one is called."""
    return bool(inspect.getclosurevars(function).nonlocals.get("is_new_implementation"))


def without_accelerators() -> list[ModuleType]:
    """transformers' modelling modules, imported as where no package of kernels is installed."""
    with hidden_accelerators():
        return [importlib.import_module(name) for name in _MODELLING]


def has_definitions() -> bool:
    """Whether this release of transformers has its scans as functions of their own, which earlier ones had not."""
    return all(hasattr(*pair) for pair in zip(without_accelerators(), _MODELLING.values(), strict=True))


def hidden_accelerators():
    """A context within which the import of packages of kernels fails."""
    return _hidden(_ACCELERATORS)


@contextlib.contextmanager
def _hidden(names):
    """Makes `import name` fail within the context, then restores what was imported."""
    earlier = {name: sys.modules[name] for name in names if name in sys.modules}
    sys.modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(earlier)


def unbind(module):
    """Replaces each function of `module` that may be routed to another package by its PyTorch definition."""
    for name, function in list(vars(module).items()):
        if inspect.isfunction(function) and _is_routed(function):
            setattr(module, name, inspect.unwrap(function))


def _is_routed(function):
    """Returns whether `function` is transformers' wrapper that chooses between packages and its own definition."""
    return "torch_function" in inspect.getclosurevars(function).nonlocals


def _check_torch_only(module, scan):
    """Raises RuntimeError unless `module` defines function `scan` itself."""
    if getattr(getattr(module, scan, None), "__module__", None) != module.__name__:
        version = importlib.metadata.version("transformers")
        raise RuntimeError(
            f"transformers {version} has no {module.__name__}.{scan} of its own, which the independent check needs; "
            "transformers 5.23.0 has it."
        )
