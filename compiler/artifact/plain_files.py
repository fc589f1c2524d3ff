"""Files that anybody wrote: only what begins and ends is opened, and never more is read than a limit in bytes.

What is written goes into a fresh file first, which nobody can have put there, be it as a link to another.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from compiler.artifact.errors import CheckpointError

LARGEST_FILE = 1 << 25  # bytes of one text; the circuit of 4,096 keys in a vocabulary of 128,256 has 2^24


def opened(path: Path, most: int) -> BinaryIO:
    """A plain file of at most so many bytes, or what a link to one leads to, opened to be read without a buffer.

    OSError, whose `strerror` says what is wrong, for anything else: a pipe may never begin, and a device never end.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, f"it is {kind_of(found.st_mode)}, and a plain file is needed", str(path))
    if found.st_size > most:
        raise too_large(path, most)
    return path.open("rb", buffering=0)


def text_of(path: Path, most: int | None = None) -> str:
    """The text of a file. most: bytes [default: `LARGEST_FILE`].

    OSError as `opened` raises it, and for a file that goes on beyond its size; ValueError for what is no UTF-8.
    """
    most = LARGEST_FILE if most is None else most
    with opened(path, most) as file:
        content = bytearray()
        while part := file.read(most + 1 - len(content)):  # the files of /proc have size 0
            content += part
    if len(content) > most:
        raise too_large(path, most)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as reason:
        raise ValueError(f"{path} is no text in UTF-8, at byte {reason.start}") from reason


def check_plain(path: Path, of: str = "checkpoint") -> None:
    """CheckpointError where a file of a checkpoint is missing, or no plain file and no link to one."""
    if path.is_file():
        return
    if path.exists():
        raise CheckpointError(f"{path} is {kind_of(path.stat().st_mode)}, and a plain file is needed.")
    raise CheckpointError(f"{path} is missing from the {of}.")


def check_replaced(path: Path, what: str) -> None:
    """ValueError, which begins with `what`, where something that is no plain file stands where one is to be written: a
    pipe may have no reader, and a device would be replaced by a file.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{what} is {kind_of(path.stat().st_mode)}, and a plain file is needed.")


def write_whole(path: Path, text: str, new: bool = False) -> None:
    """All of the file or nothing; ValueError where something else than a plain file stands there. new: as there."""
    check_replaced(path, str(path))
    with fresh_file(path, new) as place:
        place.write_text(text, "utf-8", newline="\n")


@contextmanager
def fresh_file(path: Path, new: bool = False) -> Iterator[Path]:
    """A new and empty file beside this path, which takes its place if the body succeeds and vanishes if it fails.

    An error of writing names the path. new: nothing may stand there; FileExistsError where another run made it.
    """
    place = beside(path, "partial")
    with naming(path, place):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # EXCL: follows no link, opens no pipe
        try:
            yield place
            if new:
                _place_new(place, path)
            else:
                place.replace(path)
        except BaseException:
            place.unlink(missing_ok=True)
            raise


def _place_new(place: Path, path: Path) -> None:
    """The file takes this path where nothing stands; FileExistsError elsewhere."""
    try:
        os.link(place, path)  # which replaces nothing
        place.unlink()
    except (PermissionError, NotImplementedError):  # of a file system without links
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        place.replace(path)


@contextmanager
def naming(path: Path, place: Path) -> Iterator[None]:
    """An OSError of the body that names no file, as that of a full disk, or one at the place where a path is written
    first, names the path.
    """
    try:
        yield
    except OSError as reason:
        named = Path(os.fsdecode(reason.filename)) if isinstance(reason.filename, str | bytes) else None
        if reason.errno is None or (named and named != place and place not in named.parents):
            raise
        raise OSError(reason.errno, reason.strerror, str(path)) from reason


@contextmanager
def placed_first(path: Path, text: str, is_needed: Callable[[], bool], new: bool = False) -> Iterator[None]:
    """The whole file, in place before the body begins; what stood there is back if the body fails. new: nothing may
    stand there; CheckpointError where another run made it meanwhile.

    is_needed: whether what the body wrote stands, although it failed: then the file stays as well. A process that is
    killed in the body leaves the earlier file beside it, under a name that ends in .retired.
    """
    retired = beside(path, "retired")
    earlier = path.exists()
    if new:
        try:
            write_whole(path, text, new)
        except FileExistsError as reason:
            raise CheckpointError(f"{path} was made by another run meanwhile, and is left alone.") from reason
        earlier = False
    try:
        if earlier:
            shutil.copy(path, retired)
        if not new:
            write_whole(path, text)
        yield
    except BaseException:
        if earlier and retired.exists() and not is_needed():
            retired.replace(path)
        elif not earlier and not is_needed():
            path.unlink(missing_ok=True)
        raise
    finally:
        retired.unlink(missing_ok=True)


def beside(path: Path, role: str) -> Path:
    """A new hidden name in the same directory."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{role}")


def kind_of(mode: int) -> str:
    """What a file of this mode (of `os.stat`) is, such as "a directory"."""
    return next((told for is_kind, told in _KINDS if is_kind(mode)), "a file of another kind")


def too_large(path: Path, most: int) -> OSError:
    """What is raised for a file beyond the limit."""
    return OSError(errno.EFBIG, f"it has more than {most:,} bytes, which are the most", str(path))


_KINDS = (
    (stat.S_ISREG, "a plain file"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
