"""Whether somebody has pressed Ctrl-C: a kernel may raise KeyboardInterrupt as well, and ends nothing by that."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_arrived = threading.Event()


def _noted(number: int, frame: FrameType | None) -> None:
    _arrived.set()
    signal.default_int_handler(number, frame)


def interrupted() -> bool:
    """Whether the signal came; True where it would not be seen, for who presses Ctrl-C must be heard."""
    return _arrived.is_set() or signal.getsignal(signal.SIGINT) is not _noted


@contextmanager
def watched() -> Iterator[None]:
    """The signal is seen in the body, if Python's own handler stands; elsewhere KeyboardInterrupt ends all."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _arrived.clear()
    signal.signal(signal.SIGINT, _noted)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _noted:
            signal.signal(signal.SIGINT, signal.default_int_handler)
