"""The accelerated paths: scan.cpp and inner.cpp, compiled for this CPU on first use and kept in the user's cache.

Without a C++ compiler, or without a writable cache folder, there are no such paths and the PyTorch ones run.
"""

import ctypes
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile

import torch

_FOLDER = pathlib.Path(__file__).parent
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")
_LANES = 16  # as in scan.cpp


def is_native():
    """Returns whether the accelerated scan is available; the first call may compile it, which takes about a second."""
    return _library("scan") is not None


def native_scan(u, delta, A, B, C, initial=None):
    """Returns y (b, d, l) and the last state (b, d, n), all float32; needs `is_native()`.

    u, delta (b, d, l), A (d, n), B and C (b, g, n, l), initial (b, d, n) or None for zeros. Runs in the calling thread.
    """
    return torch.ops.mamba_constructions.selective_scan(u, delta, A, B, C, initial)


def _scan(u, delta, A, B, C, initial):
    batch, channels, length = u.shape
    groups, n = B.shape[1], A.shape[1]
    inputs = [tensor.contiguous() for tensor in (u, delta, A, B, C)]
    last = u.new_zeros(batch, channels, n) if initial is None else initial.contiguous().clone()
    y, scratch = torch.empty_like(inputs[0]), u.new_empty(2, n, _LANES)
    pointers = [tensor.data_ptr() for tensor in (*inputs, y, last, scratch)]
    _library("scan").selective_scan(*pointers, batch, channels, groups, n, length)
    return y, last


def exact_inner(xz, conv, conv_bias, x_proj, dt_proj, dt_bias, A, D, out_proj, out_bias):
    """Returns a Mamba block after its in_proj, (b, l, d_model), bit for bit as PyTorch does where it rounds nothing.

    None where something is rounded (silu, softplus or exp of what is not saturated), where a number is so large that a
    product with 0 might be none, for other dtypes and devices, for gradients, and without a compiler.
    xz (b, 2 d, l), conv (d, taps), x_proj (rank + 2 n, d), dt_proj (d, rank), A (d, n), out_proj (d_model, d), float32;
    biases of the convolution and of out_proj may be None.
    """
    weights = [conv, conv_bias, x_proj, dt_proj, dt_bias, A, D, out_proj, out_bias]
    needed = [tensor for tensor in (xz, *weights) if tensor is not None]
    if not all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in needed):
        return None
    if (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in needed)) or _library("inner") is None:
        return None
    batch, double, length = xz.shape
    xz = xz if xz.stride(2) == 1 or length == 1 else xz.contiguous()
    weights = [None if tensor is None else tensor.contiguous() for tensor in weights]
    out = xz.new_zeros(batch, length, len(out_proj))
    pointers = [None if tensor is None else tensor.data_ptr() for tensor in (xz, *weights, out)]
    sizes = (double // 2, A.shape[1], dt_proj.shape[1], len(out_proj), conv.shape[1], length)
    done = _library("inner").exact_inner(*pointers, xz.stride(0), xz.stride(1), batch, *sizes)
    return out if done else None


def _shapes(u, delta, A, B, C, initial):
    return u.new_empty(u.shape), u.new_empty(u.shape[0], u.shape[1], A.shape[1])


# One operator to PyTorch: torch.compile would take the addresses above for constants, and write where nothing is any
# more. Defined by hand, for `torch.library.custom_op` imports the compiler and sympy at its first call.
_OPERATORS = torch.library.Library("mamba_constructions", "DEF")
_OPERATORS.define(
    "selective_scan(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? initial) -> (Tensor, Tensor)"
)
_OPERATORS.impl("selective_scan", _scan, "CPU")
_OPERATORS.impl("selective_scan", _shapes, "Meta")


# function, how many pointers and how many integers it takes, and what it returns, by the name of its source
_FUNCTIONS = {
    "scan": ("selective_scan", 8, 5, None),
    "inner": ("exact_inner", 11, 9, ctypes.c_int),
}


@functools.cache
def _library(name):
    """Returns the loaded library of a source, or None where it cannot be made."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    source = _FOLDER / f"{name}.cpp"
    try:
        path = _cache() / f"{name}-{_fingerprint(compiler, source)}.so"
        if not path.exists():
            _compile(compiler, source, path)
        library = ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None
    called, pointers, integers, returned = _FUNCTIONS[name]
    function = getattr(library, called)
    function.argtypes = [ctypes.c_void_p] * pointers + [ctypes.c_long] * integers
    function.restype = returned
    return library


def _compile(compiler, source, path):
    """Compiles a source to `path` under a temporary name first, so that no other process sees half a file."""
    if compiler is None:
        raise FileNotFoundError("no C++ compiler")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = pathlib.Path(folder) / path.name
        command = [compiler, *_FLAGS, str(source), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        os.replace(made, path)


def _cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "mamba-constructions"


def _fingerprint(compiler, source):
    """Returns a hash of all that decides the machine code: source, flags, compiler, and the features of this CPU."""
    parts = (source.read_text(), " ".join(_FLAGS), str(compiler), platform.machine(), _cpu_features())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _cpu_features():
    """Returns the kernel's list of CPU features, or the processor's name on systems without one."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
