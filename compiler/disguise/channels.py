"""Level 3: channels are split and merged, and idle ones compute what nobody uses, or what cancels.

A channel that does the work of another reads the same rows, so it computes the same bits; what both weigh adds up
to what one weighed. All new channels stand where the padding was, so no size changes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from compiler.disguise.facts import Facts
from compiler.disguise.steps import Patch, Step, Tensors, patch_of
from compiler.targets.family import mixer_prefix

MOST = 12  # new channels in a block: each costs a proof as much as a channel of the circuit
SHARES = (0.5, 0.5, 2.0, -1.0)


class Block:
    """The channels of one block: what belongs to each, and which are idle."""

    def __init__(self, facts: Facts, layer: int):
        self.facts, self.layer = facts, layer
        self.prefix, self.inner = mixer_prefix(layer), facts.config["intermediate_size"]
        self.mamba2 = facts.config["model_type"] == "mamba2"

    def tensor(self, name: str, tensors: Tensors | None = None) -> np.ndarray:
        return (tensors or self.facts.tensors)[f"{self.prefix}{name}"]

    def rows(self, tensors: Tensors, channel: int) -> list[np.ndarray]:
        """Views of all that makes a channel compute what it computes, its head's Δ and decay left out."""
        in_proj, inner = self.tensor("in_proj.weight", tensors), self.inner
        found = [in_proj[channel], in_proj[inner + channel]]
        found += [self.tensor(f"conv1d.{name}", tensors)[channel : channel + 1] for name in ("weight", "bias")]
        own = ("norm.weight",) if self.mamba2 else ("dt_proj.weight", "dt_proj.bias", "A_log", "D")
        return found + [self.tensor(name, tensors)[channel : channel + 1] for name in own]

    def weighed(self, tensors: Tensors, channel: int) -> list[np.ndarray]:
        """Views of the weights with which others read it."""
        names = ("out_proj.weight",) if self.mamba2 else ("out_proj.weight", "x_proj.weight")
        return [self.tensor(name, tensors)[:, channel] for name in names]

    def live(self) -> list[int]:
        """Channels whose work is read, and that add to a lane."""
        out = self.tensor("out_proj.weight")
        return [c for c in range(self.inner) if out[:, c].any() and np.isfinite(self.facts.gated_units[self.layer][c])]

    def idle(self) -> list[int]:
        """Channels that read nothing and are not read."""
        tensors = self.facts.tensors
        read = lambda c: any(part.any() for part in (*self.rows(tensors, c)[:2], *self.weighed(tensors, c)))
        return [c for c in range(self.inner) if not read(c)]

    def head(self, tensors: Tensors, channel: int) -> list[np.ndarray]:
        """Views of Δ, decay and skip of a channel's head in Mamba-2."""
        head, heads = channel // self.facts.config["head_dim"], self.facts.config["num_heads"]
        steps = self.tensor("in_proj.weight", tensors)[-heads:]
        return [steps[head], *(self.tensor(name, tensors)[head : head + 1] for name in ("dt_bias", "A_log", "D"))]

    def seats(self, channel: int, idle: list[int]) -> list[int]:
        """Idle channels that may do what this one does: in Mamba-2 those of its group whose head is idle, or alike."""
        if not self.mamba2:
            return idle
        size, tensors = self.facts.config["head_dim"], self.facts.tensors
        share, own = self.inner // self.facts.config["n_groups"], self.head(tensors, channel)
        alike = lambda c: all(map(np.array_equal, self.head(tensors, c), own))
        whole = lambda c: set(range(c - c % size, c - c % size + size)) <= set(idle)
        return [c for c in idle if c // share == channel // share and (alike(c) or whole(c))]

    def exact(self, before: Tensors, after: Tensors) -> bool:
        """Whether the rows of out_proj that changed are exact sums."""
        out = self.tensor("out_proj.weight", after)
        lanes = np.flatnonzero((out != self.tensor("out_proj.weight", before)).any(axis=1))
        return self.facts.exact_rows(self.layer, out[lanes], self.facts.bounds[lanes], self.facts.units[lanes])


def draw_channels(facts: Facts, rng: Random) -> tuple[list[Step], dict[str, int]]:
    """Patches, and how many channels were split, merged, and how many decoys were added of each kind."""
    steps: list[Step] = []
    counts = {"merged": 0, "split": 0, "unused": 0, "cancelling": 0}
    for layer in range(facts.config["num_hidden_layers"]):
        block = Block(facts, layer)
        merges = _merges(block)
        steps += merges
        counts["merged"] += len(merges)
        free, live = block.idle(), block.live()
        rng.shuffle(free)
        for k in range(MOST if live else 0):
            channel, draw = rng.choice(live), (_split, _unused, _cancelling)[k % 3]
            patch = draw(block, channel, block.seats(channel, free), rng)
            if patch is not None:
                steps.append(patch)
                counts[patch.what["change"]] += 1
                free = [c for c in free if c not in patch.what["seats"]]
    return steps, counts


def _changed(
    block: Block, change: str, channel: int, seats: list[int], edit: Callable[[Tensors], None]
) -> Patch | None:
    """The patch of an edit, which `facts` has from then on; None where sums would not be exact."""
    facts = block.facts
    after = {name: t.copy() if name.startswith(block.prefix) else t for name, t in facts.tensors.items()}
    edit(after)
    if not block.exact(facts.tensors, after):
        return None
    what = {"change": change, "layer": block.layer, "channel": channel, "seats": seats}
    patch = patch_of(facts.tensors, after, what)
    facts.tensors = after
    return patch


def _copy(block: Block, tensors: Tensors, channel: int, seat: int) -> None:
    pairs = list(zip(block.rows(tensors, channel), block.rows(tensors, seat), strict=True))
    if block.mamba2:
        pairs += zip(block.head(tensors, channel), block.head(tensors, seat), strict=True)
    for old, new in pairs:
        new[...] = old
    for numbers in (block.facts.gated[block.layer], block.facts.gated_units[block.layer]):
        numbers[seat] = numbers[channel]


def _merges(block: Block) -> list[Patch]:
    """Of channels that compute the same bits one takes over what the others weigh."""
    first: dict[bytes, int] = {}
    patches = []
    for channel in block.live():
        content = b"".join(part.tobytes() for part in block.rows(block.facts.tensors, channel))
        size = block.facts.config["head_dim"] if block.mamba2 else block.inner
        key = content + str(channel // size).encode()
        if key in first:
            patches += [patch for patch in [_merge(block, first[key], channel)] if patch]
        first.setdefault(key, channel)
    return patches


def _merge(block: Block, channel: int, other: int) -> Patch | None:
    def edit(tensors: Tensors) -> None:
        for kept, gone in zip(block.weighed(tensors, channel), block.weighed(tensors, other), strict=True):
            kept += gone
            gone[...] = 0
        for part in block.rows(tensors, other)[:2]:
            part[...] = 0

    return _changed(block, "merged", channel, [other], edit)


def _split(block: Block, channel: int, seats: list[int], rng: Random) -> Patch | None:
    if not seats:
        return None
    seat, share = seats[0], rng.choice(SHARES)

    def edit(tensors: Tensors) -> None:
        _copy(block, tensors, channel, seat)
        for kept, given in zip(block.weighed(tensors, channel), block.weighed(tensors, seat), strict=True):
            given[...] = share * kept
            kept *= 1 - share

    return _changed(block, "split", channel, [seat], edit)


def _unused(block: Block, channel: int, seats: list[int], rng: Random) -> Patch | None:
    """A decoy whose sum goes to an idle lane, if there is one, that nothing reads."""
    if not seats:
        return None
    facts, seat = block.facts, seats[0]
    lane = rng.choice([None, *range(facts.data, facts.width - facts.ballast)])
    bound, unit = facts.gated[block.layer][channel], facts.gated_units[block.layer][channel]
    if lane is not None:
        bounds, units = facts.bounds.copy(), facts.units.copy()
        bounds[lane], units[lane] = bounds[lane] + bound / unit, 1
        if bounds[lane] > facts.format.exact_integers or not _borne(facts, bounds, units):
            lane = None
        else:
            facts.bounds, facts.units = bounds, units

    def edit(tensors: Tensors) -> None:
        _copy(block, tensors, channel, seat)
        if lane is not None:
            block.tensor("out_proj.weight", tensors)[lane, seat] = 1 / unit

    return _changed(block, "unused", channel, [seat], edit)


def _borne(facts: Facts, bounds: np.ndarray, units: np.ndarray) -> bool:
    return facts.hidden(bounds, facts.level) and facts.divisible(units)


def _cancelling(block: Block, channel: int, seats: list[int], rng: Random) -> Patch | None:
    """Two decoys of the same bits, one added to a lane and one taken off it."""
    facts, limit = block.facts, block.facts.format.exact_integers
    bound, unit = facts.gated[block.layer][channel], facts.gated_units[block.layer][channel]
    fits = lambda lane: (
        facts.bounds[lane] and 2 * (bound / unit * facts.units[lane] + facts.bounds[lane]) <= limit * facts.units[lane]
    )
    choices = [lane for lane in range(facts.data) if lane != facts.one and fits(lane)]
    if len(seats) < 2 or not choices:
        return None
    lane, pair = rng.choice(choices), seats[:2]

    def edit(tensors: Tensors) -> None:
        for seat, sign in zip(pair, (1, -1), strict=True):
            _copy(block, tensors, channel, seat)
            block.tensor("out_proj.weight", tensors)[lane, seat] = sign * facts.units[lane] / unit

    return _changed(block, "cancelling", channel, pair, edit)
