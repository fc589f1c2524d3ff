"""What code of others may end this process with: 0 is for what was done and verified, and for nothing else."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def no_silent_end(told: Callable[[], int]) -> Iterator[None]:
    """os._exit(0) in the body ends the process with the code that `told` returns, which says so first.

    Who asks C for it, as by ctypes, is not seen.
    """
    end, own = os._exit, os.getpid()
    over = False

    def ends(status: int) -> NoReturn:
        if over:  # and there is a verdict, whose code stands
            os._exit(status)
        if status == 0 and os.getpid() == own:  # a child process ends as it likes
            status = told()
        end(status)

    os._exit = ends
    try:
        yield
    finally:
        os._exit, over = end, True


def keep_code(code: int) -> None:
    """What code of others has registered to be called when the process ends may end it with 0: it ends with this."""
    end = os._exit
    atexit.register(setattr, os, "_exit", lambda status: end(status or code))
