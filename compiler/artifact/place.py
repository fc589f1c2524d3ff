"""A directory (or a file) that appears, or is replaced, whole or not at all, whatever kills the process that writes it.

A new directory is written beside its target and then renamed. An earlier target is exchanged with it in one step
where the system can (Linux: renameat2); elsewhere it is renamed away first, and `recover` brings it back if the
process dies in between. A link to a directory is followed: what it leads to is replaced. What dead processes leave is
swept by the next save to the same place: each working directory is locked for as long as its process lives.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path

from compiler.artifact.errors import CheckpointError, first_line
from compiler.artifact.plain_files import beside, naming

try:
    import fcntl
except ImportError:  # no POSIX locks: nothing is swept there
    fcntl = None  # type: ignore[assignment]

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of <fcntl.h> and <linux/fs.h>
PARTIAL, RETIRED = "partial", "retired"


def check_place(target: Path) -> None:
    """Raise CheckpointError where no save to this target can succeed: tried by making a directory, which is removed.

    Of directories that are missing above the target none is made; the nearest that is there must take a new one.
    """
    if target.is_symlink() and not target.exists():
        raise CheckpointError(f"{target} is a link that leads nowhere; remove it, or name another place.")
    if target.is_dir():
        target = _followed(target)
    first = Path(os.path.abspath(target))
    while not first.parent.is_dir():
        if os.path.lexists(first.parent):
            raise CheckpointError(
                f"{target} cannot be made, for {first.parent} is a file, and a directory is needed there."
            )
        first = first.parent
    place = beside(first, PARTIAL)
    try:
        place.mkdir()
        place.rmdir()
        if len(os.fsencode(beside(target, PARTIAL).name)) > _longest_name(first.parent):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))  # below directories that are missing
    except (OSError, ValueError) as reason:
        why = (getattr(reason, "strerror", None) or str(reason)).lower()
        raise CheckpointError(f"{target} cannot be made, for {first.parent} takes no new files: {why}.") from reason


def _followed(target: Path) -> Path:
    """Where a link leads, for no link can be exchanged with what takes its place; else the target."""
    return Path(os.path.realpath(target)) if target.is_symlink() else target


def _longest_name(directory: Path) -> float:
    """Bytes of a name there; infinite where the system does not say."""
    with suppress(AttributeError, OSError, ValueError):
        return os.pathconf(directory, "PC_NAME_MAX")
    return inf


@contextmanager
def staging(target: Path, new: bool = False) -> Iterator[Path]:
    """A new directory beside the target that takes its place if the body succeeds and vanishes if it fails.

    What stood at the target is gone afterwards. Any failure leaves the disk as it was. new: nothing may stand there;
    CheckpointError where another run made it meanwhile.
    """
    target = _followed(target)
    with _workspace(target) as place, naming(target, place):
        yield place
        for path in (*place.iterdir(), place):
            if not path.is_symlink():  # what a kept link leads to is nobody's of ours, and may be a pipe
                _flush(path)
        if new and os.path.lexists(target):
            raise CheckpointError(f"{target} was made by another run meanwhile, and is left alone.")
        _move_in(place, target)


@contextmanager
def staging_file(target: Path) -> Iterator[Path]:
    """The same for one file: a path to write to, whose file takes the target's place if the body succeeds."""
    with _workspace(target) as place:
        file = place / target.name
        yield file
        _flush(file)
        file.replace(target)
        place.rmdir()


@contextmanager
def _workspace(target: Path) -> Iterator[Path]:
    """A locked working directory beside the target, and the directories above it; a failure removes what it made."""
    new_parents = [parent for parent in target.parents if not parent.exists()]
    lock = None
    place = beside(target, PARTIAL)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        recover(target)
        _sweep(target)
        place, lock = _locked(target)
        yield place
        _flush(target.parent)
    except BaseException as failed:
        shutil.rmtree(place, ignore_errors=True)
        for parent in new_parents:
            with suppress(OSError):
                parent.rmdir()  # succeeds for an empty directory only
        # Of a full disk the library makes no OSError; it is not imported here, for that takes long.
        if isinstance(failed, Exception) and type(failed).__name__ == "SafetensorError":
            raise CheckpointError(f"{target} could not be written: {first_line(failed)}.") from failed
        raise
    finally:
        if lock is not None:
            os.close(lock)


def recover(target: Path) -> None:
    """Bring back a target that a killed process had renamed away; nothing where the target stands."""
    if os.path.lexists(target):
        return
    for retired in _litter(target, RETIRED):
        if not _alive(retired):
            with suppress(OSError):
                retired.rename(target)
            return


def _sweep(target: Path) -> None:
    """Remove what dead processes left of saves to this target."""
    for role in (PARTIAL, RETIRED):
        for place in _litter(target, role):
            if not _alive(place):
                shutil.rmtree(place, ignore_errors=True)


def _litter(target: Path, role: str) -> list[Path]:
    try:
        names = os.listdir(target.parent)
    except OSError:
        return []
    return sorted(
        target.with_name(name) for name in names if name.startswith(f".{target.name}.") and name.endswith(f".{role}")
    )


def _locked(target: Path) -> tuple[Path, int | None]:
    """A new working directory, and the descriptor that locks it (None where there are no locks)."""
    while True:
        place = beside(target, PARTIAL)
        place.mkdir()
        with suppress(FileNotFoundError):  # another process may sweep it before it is locked
            lock = locked(place)
            if place.exists():
                return place, lock
            if lock is not None:
                os.close(lock)


def locked(place: Path) -> int | None:
    """The descriptor that locks a directory until it is closed or the process ends; None where there are no locks."""
    if fcntl is None:
        return None
    lock = os.open(place, os.O_RDONLY)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _alive(place: Path) -> bool:
    """Whether the process that works in this directory lives; yes where that cannot be known."""
    if fcntl is None:
        return True
    try:
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)  # a pipe of that name may never begin
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(lock)


def _move_in(place: Path, target: Path) -> None:
    """The new directory takes the target's place; what stood there is removed."""
    if not target.exists():
        place.rename(target)
        return
    if _exchange(place, target):
        shutil.rmtree(place, ignore_errors=True)
        return
    retired, lock = beside(target, RETIRED), locked(target)
    target.rename(retired)
    try:
        place.rename(target)
    except BaseException:
        retired.rename(target)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    shutil.rmtree(retired, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two directories in one step; False where the system or the file system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def _flush(path: Path) -> None:
    """fsync a file or directory, so that the rename cannot reach the disk before what it renames."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
