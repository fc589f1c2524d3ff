"""The real modules run, with lanes of the residual stream set to other numbers on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from compiler.analysis.affine_form import ONE
from compiler.artifact.model import Stack
from compiler.lowering.lanes import Lanes
from compiler.tracing.intervention import LaneSetting


@dataclass(frozen=True, eq=False)
class Basis:
    """The stream of a disguised model: to (d_model, d_model) · lanes is what it holds, and back · that the lanes."""

    to: np.ndarray
    back: np.ndarray

    def lanes(self, stream: Tensor) -> Tensor:
        """The lanes in float64, in which the sums are exact."""
        return stream.double() @ torch.from_numpy(self.back.T.copy())

    def changed(self, stream: Tensor, lanes: Tensor) -> Tensor:
        """The stream whose lanes are these."""
        moved = (lanes - self.lanes(stream)) @ torch.from_numpy(self.to.T.copy())
        return (stream.double() + moved).to(stream.dtype)


@dataclass(frozen=True, eq=False)
class Run:
    """streams: the residual stream (batch, time, d_model) after 0, 1, … blocks; scores: (batch, time, vocab). basis: of
    the streams, where coordinate i is not lane i.
    """

    streams: tuple[Tensor, ...]
    scores: Tensor
    basis: Basis | None = None

    def lanes(self, count: int, blocks: int = -1) -> np.ndarray:
        """The first `count` coordinates after so many blocks [default: all]: (batch, time, count) float64."""
        stream = self.streams[blocks]
        return (stream if self.basis is None else self.basis.lanes(stream))[..., :count].double().numpy()


@torch.no_grad()
def run(
    stack: Stack,
    first: Tensor,
    lanes: Lanes,
    settings: Mapping[int, Sequence[LaneSetting]],
    basis: Basis | None = None,
) -> Run:
    """The stack from the residual stream before its first block; without a basis lane i stands at coordinate i."""
    stream = set_lanes(first, lanes, settings.get(0, ()), basis)
    streams = [stream]
    for number, (norm, block) in enumerate(zip(stack._norms(), stack.blocks, strict=True), start=1):
        stream = set_lanes(stack._add(stream, block(norm(stream))), lanes, settings.get(number, ()), basis)
        streams.append(stream)
    return Run(tuple(streams), stack.logits(stream), basis)


def set_lanes(stream: Tensor, lanes: Lanes, settings: Sequence[LaneSetting], basis: Basis | None = None) -> Tensor:
    """A copy with these lanes set; the stream itself where there are none. ValueError for values that no lanes hold."""
    if not settings:
        return stream
    if basis is not None:
        return basis.changed(stream, set_lanes(basis.lanes(stream), lanes, settings))
    stream = stream.clone()
    one = int(lanes.index[ONE][0])
    for setting in settings:
        at = np.argwhere(setting.where)
        if not len(at):
            continue
        batch, time = torch.from_numpy(at[:, 0]), torch.from_numpy(at[:, 1])
        held, wanted = stream[batch, time, : lanes.count].double().numpy(), setting.values[at[:, 0], at[:, 1]]
        read = np.setdiff1d(setting.matrix.indices, [one])
        numbers, wrong = _held(setting, read, held, wanted, one, stream.dtype)
        if len(wrong):
            raise ValueError(
                f"{setting.name!r} is set to {_shown(wanted[wrong[0]])}, and no numbers of "
                f"{str(stream.dtype).removeprefix('torch.')} were found that give it in the {len(read)} "
                f"lane{'s' * (len(read) != 1)} that carr{'y' if len(read) != 1 else 'ies'} it"
            )
        stream[batch[:, None], time[:, None], torch.from_numpy(read)[None]] = numbers
    return stream


def _held(
    setting: LaneSetting, read: np.ndarray, held: np.ndarray, wanted: np.ndarray, one: int, dtype: torch.dtype
) -> tuple[Tensor, np.ndarray]:
    """(numbers (rows, lanes) that give the values, the rows for which none were found).

    First with as few lanes changed as possible, then with 0 in those that are not needed: where one lane is subtracted
    from another, the first may have to be larger than the value by what the other holds, and is then no such number.
    """
    columns = np.concatenate([setting.matrix[:, read].toarray(), setting.missing.toarray()], axis=1)
    empty = held.copy()
    empty[:, read] = 0
    numbers = torch.zeros((len(held), len(read)), dtype=dtype)
    left = np.arange(len(held))
    for start in (held, empty):
        solved = _solved(setting, read, start[left], wanted[left], one)
        found = torch.from_numpy(solved[:, : len(read)]).to(dtype)
        solved[:, : len(read)] = found.double().numpy()
        given = solved @ columns.T + start[left][:, [one]] * setting.matrix[:, [one]].toarray()[:, 0]
        numbers[left] = found
        left = left[(given != wanted[left]).any(axis=1)]
    return numbers, left


def _solved(setting: LaneSetting, read: np.ndarray, held: np.ndarray, wanted: np.ndarray, one: int) -> np.ndarray:
    """The numbers of the lanes `read`, (rows, lanes), and behind them those without a lane, that give these values
    (rows, width), or come near, with as few as possible changed.

    held: what stands there, (rows, all lanes); one: the lane of the constant 1, which stays.
    """
    part = setting.matrix[:, read].toarray()
    fixed = wanted - held[:, [one]] * setting.matrix[:, [one]].toarray()[:, 0]
    lost = setting.missing.toarray()
    found = _changed(part, held[:, read], fixed)
    result = np.concatenate([found, np.zeros((len(found), lost.shape[1]))], axis=1)
    if lost.shape[1]:  # a flag that stands nowhere: 1 where that gives numbers that its lanes can hold, and 0 does not
        other = _changed(part, held[:, read], fixed - lost[:, 0])
        better = _possible(setting, read, other) & ~_possible(setting, read, found)
        result[better] = np.concatenate([other, np.ones((len(other), 1))], axis=1)[better]
    return result


def _possible(setting: LaneSetting, read: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Which rows hold numbers that these lanes can hold: (rows,) mask."""
    low, high, units = (bound[read] for bound in setting.bounds)
    steps = np.where((units > 0) & np.isfinite(units), units, 1.0)
    off = np.where(units > 0, numbers % steps, 0.0)
    return ((numbers >= low) & (numbers <= high) & (off == 0)).all(axis=1)


def _changed(part: np.ndarray, now: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """x (rows, lanes) with part · x = wanted, or near it, equal to `now` in the lanes that are not needed."""
    result = now.copy()
    if _selects(part):  # each number has a lane of its own: nearly always
        rows, columns = np.nonzero(part)
        result[:, columns] = wanted[:, rows] / part[rows, columns]
        return result
    pivots = _pivots(part)
    rest = wanted - now @ part.T + now[:, pivots] @ part[:, pivots].T
    if _selects(part[:, pivots]):  # so do the pivots: exactly, and not by least squares
        rows, columns = np.nonzero(part[:, pivots])
        result[:, pivots[columns]] = rest[:, rows] / part[rows, pivots[columns]]
        return result
    solved = np.linalg.lstsq(part[:, pivots], rest.T, rcond=None)[0].T
    result[:, pivots] = np.where(np.abs(solved - np.round(solved)) < 1e-6, np.round(solved), solved)
    return result


def _selects(part: np.ndarray) -> bool:
    nonzero = part != 0
    return bool((nonzero.sum(axis=1) == 1).all() and (nonzero.sum(axis=0) <= 1).all())


def _pivots(part: np.ndarray) -> np.ndarray:
    """Columns that span all columns, the first that do."""
    chosen: list[int] = []
    rank = 0
    for column in range(part.shape[1]):
        more = np.linalg.matrix_rank(part[:, [*chosen, column]])
        if more > rank:
            chosen.append(column)
            rank = int(more)
        if rank == part.shape[0]:
            break
    return np.array(chosen, dtype=np.int64)


def _shown(values: np.ndarray) -> str:
    numbers = values.tolist()
    return f"{numbers[0]:.9g}" if len(numbers) == 1 else f"({', '.join(f'{n:.9g}' for n in numbers[:8])})"
