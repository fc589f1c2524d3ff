"""Draws a disguise of a level: which steps, in which order, from one seed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from compiler.disguise.channels import draw_channels
from compiler.disguise.errors import DisguiseError
from compiler.disguise.facts import Facts
from compiler.disguise.mixing import draw_column_mixes, draw_lane_mixes, idle_lanes_read
from compiler.disguise.places import draw_places
from compiler.disguise.steps import Step, Tensors, applied, undone

LEVELS = {
    1: "lanes, channels, heads and state columns change places, signs and powers of two",
    2: "lanes, and state columns of one decay, become integer sums of each other",
    3: "channels are split and merged; decoys compute what nobody uses, or what cancels",
}
LANES, COLUMNS = "lanes mixed", "columns mixed"
SPLIT = ("merged", "split", "unused", "cancelling")
PARTS = {1: (), 2: (LANES, COLUMNS), 3: tuple(f"channels {name}" for name in SPLIT)}  # what each level adds


@dataclass
class Disguise:
    """Steps from a checkpoint's weights to the disguised ones. counts: how many of each kind, for people."""

    level: int
    steps: list[Step]
    tensors: Tensors
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def added(self) -> dict[str, int]:
        """The counts of what the level adds to the one before."""
        return {name: self.counts.get(name, 0) for name in PARTS[self.level]}


def draw(facts: Facts, level: int, seed: int, leave_out: Collection[str] = ()) -> Disguise:
    """A disguise of this level, of its parts those that are not left out; `facts` is used up.

    DisguiseError where the weights do not come back bit for bit: then one of them is no number that steps keep.
    """
    if level not in LEVELS:
        raise DisguiseError(f"--level {level}: there are levels 1 to {max(LEVELS)}.")
    original, rng = facts.tensors, Random(f"{seed} {level}")
    facts.tensors = {name: tensor.copy() for name, tensor in original.items()}
    steps, counts = _parts(facts, level, rng, leave_out)
    steps += draw_places(facts, rng)
    found = Disguise(level, steps, applied(steps, original), counts)
    back = undone(steps, found.tensors)
    different = next((name for name in original if back[name].tobytes() != original[name].tobytes()), None)
    if different is not None:
        raise DisguiseError(f"the disguise of {different} cannot be taken back bit for bit, so it is not made.")
    return found


def _parts(facts: Facts, level: int, rng: Random, leave_out: Collection[str]) -> tuple[list[Step], dict[str, int]]:
    """What levels above 1 add: channels first, while idle ones can be told, then sums."""
    steps: list[Step] = []
    counts: dict[str, int] = {}
    if level > 2:
        more, found = draw_channels(facts, rng)
        steps += more
        counts |= {f"channels {name}": count for name, count in found.items()}
    if level > 1 and LANES not in leave_out:
        steps += idle_lanes_read(facts)
        mixes = draw_lane_mixes(facts, rng)
        steps += mixes
        counts[LANES] = len(mixes)
    if level > 1 and COLUMNS not in leave_out:
        mixes = draw_column_mixes(facts, rng)
        steps += mixes
        counts[COLUMNS] = len(mixes)
    return steps, counts
