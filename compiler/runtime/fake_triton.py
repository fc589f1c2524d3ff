"""A stand-in for `triton` that lasts only while mamba_ssm is being imported.

mamba_ssm decorates its GPU kernels at import time, so the names must exist even on a machine that will never launch a
kernel. Here every decorator gives back an `UnlaunchableKernel`; nothing else of triton is imitated.
"""

import contextlib
import importlib.util
import sys
import types


class UnlaunchableKernel:
    """What remains of a decorated kernel: its name, and the `configs` that mamba_ssm prunes at import."""

    def __init__(self, function, configs=()):
        self.function = function
        self.configs = list(configs)

    def __getitem__(self, grid):
        name = getattr(self.function, "__name__", "kernel")
        raise RuntimeError(f"Triton kernel {name} cannot be launched: triton is not installed on this machine.")


class Config:
    """A `triton.Config`: the kernel's constants in `kwargs`, launch options as attributes."""

    def __init__(self, kwargs, num_stages=1, num_warps=4, **options):
        self.kwargs = kwargs
        vars(self).update(options, num_stages=num_stages, num_warps=num_warps)


class _Language(types.ModuleType):
    """`triton.language`: any attribute is an opaque type, enough for annotations such as `tl.constexpr`."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _jit(function=None, **_options):
    return UnlaunchableKernel if function is None else UnlaunchableKernel(function)


def _autotune(configs, key=None, **_options):
    return lambda kernel: UnlaunchableKernel(kernel, configs)


def _heuristics(_values):
    return lambda kernel: kernel


def _modules():
    """Returns {module name: module} for everything of triton that mamba_ssm imports."""
    triton, language, testing = (
        types.ModuleType("triton"),
        _Language("triton.language"),
        types.ModuleType("triton.testing"),
    )
    vars(testing)["do_bench"] = None
    vars(triton).update(
        __path__=[],
        __version__="3.5.0",
        Config=Config,
        jit=_jit,
        autotune=_autotune,
        heuristics=_heuristics,
        cdiv=lambda a, b: -(-a // b),
        next_power_of_2=lambda n: 1 << (n - 1).bit_length(),
        set_allocator=lambda allocator: None,
        language=language,
        testing=testing,
    )
    return {"triton": triton, "triton.language": language, "triton.testing": testing}


def is_missing(name):
    """Returns whether top-level module `name` is neither imported nor importable."""
    return name not in sys.modules and importlib.util.find_spec(name) is None


@contextlib.contextmanager
def importable_kernels():
    """Within the context, `import triton` and `import selective_scan_cuda` succeed; real ones are left alone.

    The stand-ins leave sys.modules at the end, so that nobody else mistakes them for the real thing.
    """
    stand_ins: dict[str, types.ModuleType] = {}
    if is_missing("triton"):
        stand_ins |= _modules()
    if is_missing("selective_scan_cuda"):
        stand_ins["selective_scan_cuda"] = types.ModuleType("selective_scan_cuda")
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)
