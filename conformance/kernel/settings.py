"""Settings of the process that a kernel changes are its own: the kit computes with those that it began with.

A kernel may leave autocast on, or a default device, a default dtype, a mode or a handler of signals. It finds them
again in its next call, as it would elsewhere, and no operand and no result of ours is made under them. A child process
that comes back from a kernel ends there: one process alone judges and reports.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils import _python_dispatch as dispatch

from conformance.sentences import sentence

_AUTOCAST = ("cpu", "cuda")
_NOT_OURS = {getattr(signal, name, None) for name in ("SIGKILL", "SIGSTOP", "SIGINT")}  # of SIGINT: `interrupt`
_SIGNALS = sorted(signal.valid_signals() - _NOT_OURS)
_MAY_COME = {getattr(signal, name, None) for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")}


@dataclass(frozen=True)
class Settings:
    """dtype: the default one. autocast: whether it is on, and its dtype, of each kind of device. functions: modes of
    functions, a default device among them; dispatched: those of dispatch; the innermost last. handlers: of signals.
    umask: what no new file allows.
    """

    dtype: torch.dtype
    autocast: tuple[tuple[bool, torch.dtype], ...]
    functions: tuple[Any, ...]
    dispatched: tuple[Any, ...]
    handlers: tuple[Any, ...]
    umask: int


@dataclass
class Left:
    """What a kernel has left behind; None before it was called."""

    settings: Settings | None = None


def settings() -> Settings:
    """Those of now."""
    return Settings(
        torch.get_default_dtype(),
        tuple((torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in _AUTOCAST),
        tuple(_get_current_function_mode_stack()),
        tuple(dispatch._get_current_dispatch_mode_stack()),
        tuple(signal.getsignal(number) for number in _SIGNALS),
        _umask(),
    )


def _umask() -> int:
    """It is read by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def put(wanted: Settings, now: Settings) -> None:
    """Have these in the place of those of now."""
    if wanted.functions != now.functions:
        for _ in now.functions:
            _pop_mode()
    if wanted.dispatched != now.dispatched:
        for _ in now.dispatched:
            dispatch._pop_mode()
        for mode in wanted.dispatched:
            dispatch._push_mode(mode)
    if wanted.dtype != now.dtype:
        torch.set_default_dtype(wanted.dtype)
    for kind, (on, dtype), other in zip(_AUTOCAST, wanted.autocast, now.autocast, strict=True):
        if (on, dtype) != other:
            torch.set_autocast_enabled(kind, on)
            torch.set_autocast_dtype(kind, dtype)
    if wanted.functions != now.functions:
        for mode in wanted.functions:
            _push_mode(mode)
    if wanted.umask != now.umask:
        os.umask(wanted.umask)
    _handle(wanted, now)


def _handle(wanted: Settings, now: Settings) -> None:
    """A signal that a kernel has asked for, and that would end the process, comes to nothing outside of it."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, handler, other in zip(_SIGNALS, wanted.handlers, now.handlers, strict=True):
        if handler != other and handler is not None:
            comes = number in _MAY_COME and handler == signal.SIG_DFL
            signal.signal(number, signal.SIG_IGN if comes else handler)


@contextmanager
def of_the_kernel(left: Left) -> Iterator[None]:
    """The settings that a kernel left behind, in the body; behind it those of before."""
    process, ours, path = os.getpid(), settings(), [*sys.path]
    if left.settings not in (None, ours):
        put(left.settings, ours)
    try:
        yield
    except BaseException as error:
        _end_child(process, error)
        raise
    else:
        _end_child(process)
    finally:
        left.settings = settings()
        if left.settings != ours:
            put(ours, left.settings)
        if not {*path} <= {*sys.path}:  # what we import later is found; what a kernel has added stays
            sys.path[:] = [*path, *(each for each in sys.path if each not in path)]


def _end_child(process: int, error: BaseException | None = None) -> None:
    """End this process if it is a child of the one that called: nobody else may judge what that one finds."""
    if os.getpid() == process:
        return
    code = error.code if isinstance(error, SystemExit) else None if error is None else sentence(error)
    if isinstance(code, str):
        os.write(2, f"a child process of the kernel has ended: {code}\n".encode(errors="replace"))
    os._exit(code if isinstance(code, int) else int(code is not None))
