"""One case in a process of its own, within limits that the system holds it to."""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

LONGEST = 10.0  # seconds of processor time
MOST_MEMORY = 2 << 30  # bytes, at its largest
IDLE = 60  # seconds on the clock without any processor time, after which a child is stopped: it waits for something
MIB = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a process ended: the JSON values that it gave, its exit code (−n for signal n), its memory at its largest."""

    given: list[Any]
    code: int
    memory: int

    @property
    def fault(self) -> str | None:
        """Which limit ended it, or how else it broke; None where it ended by itself."""
        if self.code == -signal.SIGXCPU:
            return f"it took more than {LONGEST:.0f} s of processor time"
        if self.code == -signal.SIGALRM:
            return f"it was stopped: it waited for {IDLE} s"
        if self.code < 0:
            return f"it was ended by {signal.Signals(-self.code).name}"
        return f"it ended with exit code {self.code}" if self.code else None


def forked(work: Callable[[], Iterator[Any]]) -> Ended:
    """Run this in a child and collect what it yields, each a JSON value; a child that is killed gave what it gave.

    The child has its parent's modules and memory, so it starts in a few milliseconds. `limited` holds it to the limits.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, theirs)
    os.close(theirs)
    lines = _told(child, ours).splitlines()
    _, status, used = os.wait4(child, 0)
    return Ended([json.loads(line) for line in lines], os.waitstatus_to_exitcode(status), used.ru_maxrss << 10)


def _told(child: int, ours: int) -> bytes:
    """All that a child writes; one that takes no processor time any more is stopped, however busy the machine is."""
    found, spent = b"", -1
    with open(ours, "rb", buffering=0) as file:
        while True:
            if select.select([file], [], [], IDLE)[0]:
                part = file.read(1 << 16)
                if not part:
                    return found
                found += part
                continue
            before, spent = spent, _ticks(child)
            if spent == before:
                os.kill(child, signal.SIGALRM)


def _ticks(child: int) -> int:
    """Processor time of a child so far, in ticks; the name in its line may hold spaces."""
    with open(f"/proc/{child}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _work(work: Callable[[], Iterator[Any]], theirs: int) -> None:
    """All that a child does; it never returns."""
    code = 1
    try:
        gc.freeze()  # a collection here would copy all that the parent has
        torch.set_num_threads(1)
        for value in work():
            os.write(theirs, json.dumps(value).encode() + b"\n")
        code = 0
    finally:
        os._exit(code)


def limited() -> None:
    """From here on this process may take LONGEST of processor time and MOST_MEMORY of addresses."""
    seconds = int(time.process_time() + LONGEST) + 1  # the system counts whole ones
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MOST_MEMORY, resource.RLIM_INFINITY))
