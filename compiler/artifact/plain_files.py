"""Files that anybody wrote: only what begins and ends is opened, and never more is read than a limit in bytes."""

import errno
import stat
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


def kind_of(mode: int) -> str:
    """What a file of this mode (of `os.stat`) is, such as "a directory"."""
    return next((told for is_kind, told in _KINDS if is_kind(mode)), "a file of another kind")


def too_large(path: Path, most: int) -> OSError:
    """What is raised for a file beyond the limit."""
    return OSError(errno.EFBIG, f"it has more than {most:,} bytes, which are the most", str(path))


_KINDS = (
    (stat.S_ISREG, "a plain file"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
