"""The standard output while code of others runs: a report in JSON must be all that stands there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

from compiler.language.markdown import printable

_own: int | None = None  # the standard output of this process, where it was lent for good
_HIGH = 200  # a descriptor: where there are few of them, there are 256


@contextmanager
def stdout_lent(aside: bool, for_good: bool = False) -> Iterator[None]:
    """Code of others may close what it prints to, the stream of Python and its descriptor: the report is written still,
    by `told`.

    aside: what it prints goes to stderr, also what C code and its child processes print, which know no sys.stdout.
    for_good: in a process of this command alone also what it prints later, when the process ends or from another
    thread.
    """
    global _own
    sys.stdout.flush()
    stream, kept = sys.stdout, _high(1)
    for_good = for_good and aside and stream is sys.__stdout__ and kept is not None
    if for_good:
        _own = kept
    if aside and kept is not None:
        with suppress(OSError):  # there is no stderr
            os.dup2(2, 1)
    lent = cast(TextIO, Lent(sys.stderr if aside else stream))
    try:
        with redirect_stdout(lent):
            yield
    finally:
        if for_good:
            sys.stdout = lent
        elif kept is not None:
            with suppress(OSError):  # a kernel has closed it: what it left is what there is
                os.dup2(kept, 1)
                os.close(kept)
            if stream.closed:
                sys.stdout = open(1, "w", encoding=stream.encoding, closefd=False)  # noqa: SIM115 (it stays)


def told(text: str) -> None:
    """Print a text on the standard output, also where that was lent for good, as to code of others in this process."""
    if _own is None:
        print(printable(text))
    else:
        _written(_own, text)


def leave_stdout() -> None:
    """What the standard output still holds comes to nothing: the flush where the process ends would fail once more."""
    with suppress(OSError, ValueError):  # of a program of others it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end_stdout() -> None:
    """What is printed from now on, as by what code of others does when the process ends, goes to stderr: no word of it
    stands behind the report.
    """
    own = sys.__stdout__
    if own is None or (sys.stdout is not own and not own.closed):  # lent for good, or that of a program of others
        return
    sys.stdout.flush()
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = sys.stderr


def _high(descriptor: int) -> int | None:
    """A copy beyond those that code in use closes, as by os.closerange(3, 64), where the system has as many; None of a
    descriptor that is closed.
    """
    try:
        import fcntl

        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except (ImportError, OSError):
        with suppress(OSError):
            return os.dup(descriptor)
    return None


def _written(descriptor: int, text: str) -> None:
    """Print a text there, and nowhere else."""
    with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
        file.write(printable(text) + "\n")


class Lent:
    """A stream that is not closed by who has it."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        self._stream.flush()
