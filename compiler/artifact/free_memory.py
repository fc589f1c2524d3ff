"""How much memory a process may still take, so that what needs more is refused before any of it is made."""

from __future__ import annotations

from pathlib import Path

_UNLIMITED = 1 << 60
BYTES_OF_PARAMETER = 8  # of memory to build, check and save it, as measured: 1.7 times its four, and a margin


def too_large(parameters: int, free: int | None, said: str = "has") -> str | None:
    """Why a language model of so many parameters is not built where so many bytes are free; None where it is.

    said: how sure the number is, such as "would have at least".
    """
    needed = BYTES_OF_PARAMETER * parameters
    if free is None or needed <= free:
        return None
    return (
        f"the language model {said} {parameters:,} parameters, building it takes about {needed / 1e9:.1f} GB of "
        f"memory, and {free / 1e9:.1f} GB are free; choose smaller sizes, or a machine with more memory"
    )


def free_bytes() -> int | None:
    """The least of what the machine has left, what its control group allows and the limit on this process's addresses.

    None where the system tells none of them.
    """
    found = [left for left in (_machine(), _group(), _addresses()) if left is not None]
    return min(found, default=None)


def _machine() -> int | None:
    return _entry(Path("/proc/meminfo"), "MemAvailable:")


def _group(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Pages of files count as used there, and the system drops them where memory is wanted."""
    try:
        most, used = (int((root / name).read_text()) for name in ("memory.max", "memory.current"))
        told = dict(line.split() for line in (root / "memory.stat").read_text().splitlines())
        files = sum(int(told[kind]) for kind in ("active_file", "inactive_file"))
    except (OSError, ValueError, KeyError):  # there is none, or it says "max"
        return None
    return max(0, most - max(0, used - files))


def _addresses() -> int | None:
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _entry(Path("/proc/self/status"), "VmSize:")
    return None if used is None or not 0 <= most < _UNLIMITED else max(0, most - used)


def _entry(path: Path, name: str) -> int | None:
    """An entry in kB of one of Linux's tables, in bytes."""
    try:
        line = next(line for line in path.read_text("utf-8").splitlines() if line.startswith(name))
    except (OSError, StopIteration):
        return None
    return int(line.split()[1]) * 1024
