"""The scan's one accelerated path: scan.cpp, compiled for this CPU on first use and kept in the user's cache folder.

Without a C++ compiler, or without a writable cache, there is no such path and the PyTorch one runs.
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

_SOURCE = pathlib.Path(__file__).with_name("scan.cpp")
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")
_LANES = 16  # as in scan.cpp


def is_native():
    """Returns whether the accelerated path is available; the first call may compile it, which takes about a second."""
    return _library() is not None


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
    _library().selective_scan(*pointers, batch, channels, groups, n, length)
    return y, last


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


@functools.cache
def _library():
    """Returns the loaded library, or None where it cannot be made."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    try:
        path = _cache() / f"scan-{_fingerprint(compiler)}.so"
        if not path.exists():
            _compile(compiler, path)
        library = ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None
    library.selective_scan.argtypes = [ctypes.c_void_p] * 8 + [ctypes.c_long] * 5
    library.selective_scan.restype = None
    return library


def _compile(compiler, path):
    """Compiles the source to `path` under a temporary name first, so that no other process sees half a file."""
    if compiler is None:
        raise FileNotFoundError("no C++ compiler")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = pathlib.Path(folder) / path.name
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        os.replace(made, path)


def _cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "mamba-constructions"


def _fingerprint(compiler):
    """Returns a hash of all that decides the machine code: source, flags, compiler, and the features of this CPU."""
    parts = (_SOURCE.read_text(), " ".join(_FLAGS), str(compiler), platform.machine(), _cpu_features())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _cpu_features():
    """Returns the kernel's list of CPU features, or the processor's name on systems without one."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
