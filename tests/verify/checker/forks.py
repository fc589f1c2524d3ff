"""The checker on many changes of one checkpoint, without proving again what stands before each change.

The proof goes block by block. It is run once, on the unchanged tensors; where it is about to read a tensor that a
change has, the process forks, and the child goes on with the changed tensors as if it had read them from the
beginning. So each change gets the verdict that it would have got alone, from the same code in the same state.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from verify.checker.arithmetic import model as arithmetic
from verify.checker.files import Checkpoint, in_memory
from verify.checker.formats import Rejected

Arrays = dict[str, np.ndarray]
Judge = Callable[[Checkpoint], Any]


class Died(RuntimeError):
    """A child ended without a verdict."""


class Over(Exception):
    """Every change has its verdict: what the rest of the proof says of the unchanged checkpoint, nobody asks."""


def judged(config: dict, tensors: Arrays, promise: dict, changes: Sequence[Arrays], judge: Judge) -> list[Any]:
    """What `judge` says of the checkpoint with each change (tensors by name), `Rejected` where it cannot be read.

    judge: calls `prove_arithmetic` once; what it returns is pickled.
    """
    found: dict[int, Any] = {}
    readable: dict[int, dict] = {}
    for number, change in enumerate(changes):
        try:
            checkpoint = in_memory(config, tensors | change, promise)
        except Rejected as reason:
            found[number] = reason
            continue
        place = min(map(_place, change))
        if place < 0:
            found[number] = judge(checkpoint)
        else:
            readable.setdefault(place, {})[number] = {name: checkpoint.tensors[name] for name in change}
    if readable:
        found |= _walked(in_memory(config, tensors, promise), readable, judge)
    return [found[number] for number in range(len(changes))]


def _place(name: str) -> float:
    """Before which norm a tensor must be known: that of its block; of the head the last; -1: before any."""
    block = re.match(r"backbone\.layers\.(\d+)\.", name)
    return int(block.group(1)) if block else -1 if name.startswith("backbone.embeddings") else np.inf


@dataclass
class _Forking:
    """Stands for `normed` while the unchanged checkpoint is proved; in a child `pipe` is where its verdict goes."""

    checkpoint: Checkpoint
    waiting: dict[float, dict[int, dict]]
    found: dict[int, Any] = field(default_factory=dict)
    seen: int = 0
    pipe: int | None = None

    def __call__(self, world, lanes, weight, epsilon, what):
        place: float = self.seen if self.seen < self.checkpoint.config["num_hidden_layers"] else np.inf
        self.seen += 1
        for number, change in self.waiting.pop(place, {}).items():
            child, pipe = _forked()
            if not child:
                self.pipe, self.waiting = pipe, {}
                self.checkpoint.tensors.update(change)
                name = "backbone.norm_f.weight" if place == np.inf else f"backbone.layers.{place}.norm.weight"
                weight = self.checkpoint.tensors[name].dense_row(0)
                break
            self.found[number] = _received(pipe, child)
        if not self.waiting and self.pipe is None:
            raise Over
        return _NORMED(world, lanes, weight, epsilon, what)


_NORMED = arithmetic.normed


def _walked(checkpoint: Checkpoint, waiting: dict, judge: Judge) -> dict[int, Any]:
    forking = _Forking(checkpoint, waiting)
    try:
        with mock.patch.object(arithmetic, "normed", forking), suppress(Over):
            verdict = judge(checkpoint)
            if forking.pipe is not None:
                _send(forking.pipe, verdict)
    finally:
        if forking.pipe is not None:
            _leave()
    if forking.waiting:
        raise Died(f"the proof of the unchanged checkpoint ended before it read {forking.waiting}")
    return forking.found


def alone(run: Callable[[], Any]) -> Any:
    """What a function returns, run in a child, so that nothing that it does stays."""
    child, pipe = _forked()
    if child:
        return _received(pipe, child)
    try:
        _send(pipe, run())
    finally:
        _leave()


def _forked() -> tuple[int, int]:
    """(process id of the child, end to read), and in the child (0, end to write)."""
    reading, writing = os.pipe()
    child = os.fork()
    os.close(writing if child else reading)
    return child, reading if child else writing


def _send(pipe: int, verdict: Any) -> None:
    with os.fdopen(pipe, "wb") as file:
        pickle.dump(verdict, file)


def _leave() -> None:
    """End a child, whatever it was about to raise, before anything of its parent runs in it."""
    if sys.exc_info()[0]:
        traceback.print_exc()
    os._exit(0)


def _received(pipe: int, child: int) -> Any:
    with os.fdopen(pipe, "rb") as file:
        content = file.read()
    os.waitpid(child, 0)
    if not content:
        raise Died("a child of the checker ended without a verdict")
    return pickle.loads(content)
