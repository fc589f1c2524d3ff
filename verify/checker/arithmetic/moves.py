"""Heads of a Gated DeltaNet whose state has finitely many values (lemma of moved states)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from verify.checker.arithmetic.lengths import CHUNK, FLOAT32, Rows
from verify.checker.arithmetic.norms import level_of
from verify.checker.arithmetic.sums import check_range, exact_sum
from verify.checker.formats import Rejected, array_exponent
from verify.checker.values.exact import number, plus, product, times, times_number
from verify.checker.values.machines import machine, of_states
from verify.checker.values.together import heights_of
from verify.checker.values.values import Root, Value, World, constant, scaled

ONE = Fraction(1)
_MOST_VECTORS = 1 << 12


def moved_output(
    world: World,
    value: Sequence[Value],
    query: Rows,
    key: Rows,
    beta: Fraction,
    forgets: Value,
    scale: Fraction,
    weight: np.ndarray,
    epsilon: float,
    what: str,
) -> list[Value]:
    """w · o/√(mean(o²) + ε) of every column of a head with one query throughout, whose keys and values are flags."""
    if any(not flag.constant for flag in query.flags.values()):
        raise Rejected(f"{what}: neither is its key one row at a time, nor its query the same at every position")
    moving = _Moving.of(world, value, key, beta, forgets, what)
    start = np.zeros((len(moving.rows), len(value)))
    root, states = machine(world, moving.flags, start.tobytes(), moving.step, f"{what}: its state")
    held = np.stack([np.frombuffer(state).reshape(start.shape) for state in states])
    asked = np.zeros(len(moving.rows))
    places = [moving.rows.index(i) for i in query.flags if i in moving.rows]
    entry = query.entry(len(query.flags), f"{what}: its query") if query.flags else Fraction(0)
    asked[places] = number(entry * scale)
    moving.check_sums(world, held, asked, what)
    return _read(world, root, times(held.swapaxes(1, 2), asked[:, None])[:, :, 0], weight, epsilon, what)


def _read(world: World, root: Root, read: np.ndarray, weight: np.ndarray, epsilon: float, what: str) -> list[Value]:
    """What stands in each state, behind the norm."""
    found = np.zeros(read.shape, dtype=object)
    for s, o in enumerate(read.tolist()):
        if any(o):
            lanes = [constant(Fraction(x)) for x in o]
            level = level_of(world, lanes, epsilon, f"{what}: the norm of what it reads")
            for c, (lane, w) in enumerate(zip(lanes, weight.tolist(), strict=True)):
                for factor in (ONE, 1 / level):
                    exact_sum(world, [(factor, lane)], f"{what}: column {c}")
                found[s, c] = exact_sum(world, [(Fraction(w) / level, lane)], f"{what}: column {c}").const
    return [of_states(root, [Fraction(x) for x in column]) for column in found.T]


@dataclass(frozen=True, eq=False)
class _Moving:
    """rows: of the state, that a key ever touches; flags: of the keys, then of the values, then that it forgets; keys,
    values: the flags' numbers by row of the key and by column, with the height of a value.
    """

    rows: list[int]
    flags: list[Value]
    keys: dict[int, int]
    values: dict[int, tuple[int, float]]
    forgets: int
    beta: float
    key: Rows
    what: str
    seen: dict[bytes, np.ndarray] = field(default_factory=dict)  # keys that a step took

    @classmethod
    def of(cls, world: World, value: Sequence[Value], key: Rows, beta: Fraction, forgets: Value, what: str) -> _Moving:
        flags: list[Value] = []
        at: dict[str, int] = {}

        def place(flag: Value) -> int:
            if flag.key not in at:
                at[flag.key] = len(flags)
                flags.append(flag)
            return at[flag.key]

        keys = {i: place(flag) for i, flag in key.flags.items()}
        values = {}
        for c, row in enumerate(value):
            heights = heights_of(world, row, f"{what}: its value {c}")
            if len(heights) > 1 or row.upto is not None:
                raise Rejected(f"{what}: its value {c} has several heights, and its keys are not one row at a time")
            if heights:
                (height,) = heights
                values[c] = place(scaled(row, 1 / height)), number(height)
        return cls(sorted(keys), flags, keys, values, place(forgets), number(beta), key, what)

    def unit(self, on: frozenset[int]) -> np.ndarray:
        """The key, divided by its length."""
        live = np.array([float(self.keys[i] in on) for i in self.rows])
        count = int(live.sum())
        found = live * number(self.key.entry(count, f"{self.what}: its key")) if count else live
        return self.seen.setdefault(found.tobytes(), found)

    def step(self, state: bytes, on: frozenset[int]) -> bytes:
        """S ← e^g (I − β k kᵀ) S + β k vᵀ, which is exact, and of 24 bits at the end."""
        held = np.frombuffer(state).reshape(len(self.rows), -1) * float(self.forgets not in on)
        k, v = self.unit(on), np.zeros(held.shape[1])
        for c, (flag, height) in self.values.items():
            v[c] = height if flag in on else 0.0
        left = plus(v, -times(k[None], held)[0])
        held = plus(held, product(k[:, None], times_number(left, self.beta)[None])) + 0.0
        unit = array_exponent(held)
        if unit is not None and np.abs(held).max() > 2.0 ** (24 + unit):
            raise Rejected(f"{self.what}: its state grows beyond what {FLOAT32.name} holds")
        return held.tobytes()

    def check_sums(self, world: World, held: np.ndarray, asked: np.ndarray, what: str) -> None:
        """Every sum of the delta rule, by steps and in chunks, is exact in any order (lemma of moved states)."""
        keys = np.array(sorted(self.seen.values(), key=bytes)).reshape(-1, len(self.rows))
        orbit = self._orbit(keys)
        of = lambda x: array_exponent(x) or 0
        beta, doubled, wide = Fraction(self.beta), int(self.beta) - 1, max([0.0, *(h for _, h in self.values.values())])
        high, tall = Fraction(float(np.abs(held).max(initial=0.0))), len(self.rows)
        written = beta * (Fraction(wide) + tall * high)  # |β (v − kᵀS)|
        u_r, u_q, u_v = of(orbit), of(asked), of(np.array([wide]))
        u_s = of(held) if held.any() else u_v
        u_a = min(0, of(times(keys, orbit.T)) + doubled)
        u_w = doubled + min(u_v, u_r + u_s)
        checks = [
            ((CHUNK + 1) * beta**2, u_a + min(u_a, u_r + doubled)),  # the inverse of the triangle, and it times keys
            ((CHUNK + 1) * beta * written, u_a + u_w),  # what is written, by what stood before the chunk and within it
            (tall * beta * high, u_r + doubled + u_s),
            (high + CHUNK * written, min(u_s, u_r + u_w)),  # the state
            (tall * high + CHUNK * written, u_q + min(u_s, u_r + u_w)),  # what is read
        ]
        for reach, unit in checks:
            if reach > FLOAT32.units * Fraction(2) ** unit:
                raise Rejected(f"{what}: a sum of a chunk can reach {float(reach):g} in units of 2^{unit}")
            check_range(world, reach, unit, f"{what}: a sum of a chunk")

    def _orbit(self, keys: np.ndarray) -> np.ndarray:
        """Keys, and all that products of I − β k kᵀ make of them."""
        found = {row.tobytes(): row for row in keys}
        for row in (pending := list(found.values())):
            for k in keys:
                along = times(k[None], row[:, None])[0]
                after = plus(row, -product(times_number(along, self.beta), k)) + 0.0
                if after.tobytes() not in found:
                    found[after.tobytes()] = after
                    pending.append(after)
            if len(found) > _MOST_VECTORS:
                raise Rejected(f"{self.what}: its steps make more than {_MOST_VECTORS} vectors of its keys")
        return np.array(list(found.values())).reshape(-1, len(self.rows))
