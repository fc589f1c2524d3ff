"""What a block of latches must do at one step, by the block IR, and whether the real module does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.block import Block, UnsafePreactivation, rectified, run, run_features
from compiler.compile import Compiled
from compiler.targets.mamba2 import channel_seats
from verify.certificates.ask import BEFORE, Windows
from verify.certificates.certificate import Refused, Violated
from verify.certificates.stepper import Stepped
from verify.certificates.windows import spell


@dataclass(frozen=True, eq=False)
class Rule:
    """h ← keep·h + added; out_proj then reads (read·h + skipped)·gate. All arrays (n windows, channels) but read: (n, 1)."""

    keep: np.ndarray
    added: np.ndarray
    read: np.ndarray
    skipped: np.ndarray
    gate: np.ndarray


def last_block(compiled: Compiled) -> Block:
    """The block that holds the latches; refused where its state has several columns."""
    block = compiled.blocks[-1]
    if block.d_state > 1:
        raise Refused(f"the last block has {block.d_state} state columns, and the inductive certificate is for latches, which have one")
    return block


def seats(compiled: Compiled, module) -> np.ndarray:
    """Where each channel of the last block stands in the module."""
    block = compiled.blocks[-1]
    return channel_seats(block, module.headdim) if hasattr(module, "headdim") else np.arange(len(block.channels.names))


def rule(compiled: Compiled, windows: Windows) -> Rule:
    """The IR's step at each window."""
    lengths = (windows != BEFORE).sum(axis=1)
    parts, order = [], []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        order.append(rows)
        try:
            parts.append(_rule(compiled, windows[rows, :length][:, ::-1]))
        except UnsafePreactivation as error:
            raise Refused(str(error)) from error
    back = np.argsort(np.concatenate(order))
    return Rule(*(np.concatenate(arrays)[back] for arrays in zip(*parts, strict=True)))


def _rule(compiled: Compiled, tokens: np.ndarray) -> tuple[np.ndarray, ...]:
    """keep, added, read, skipped, gate at the last of (n, time) tokens."""
    lanes = compiled.lanes.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)
    for earlier in compiled.blocks[:-1]:
        lanes = lanes + run(earlier, lanes)
    block = compiled.blocks[-1]
    channels, features, present = block.channels, run_features(block.features, lanes)[:, -1], lanes[:, -1]
    x = features[:, channels.feature]
    step = (channels.delta_features @ features.T).T + (channels.delta_lanes @ present.T).T + channels.delta_bias
    delta = rectified(step, channels.names, "the Δ pre-activation")
    gate = rectified((channels.gate @ present.T).T, channels.names, "the gate pre-activation")
    write, read = ((port @ features.T).T for port in (block.columns.write, block.columns.read))
    keep = np.where(delta * channels.decay == 0, 1.0, 0.0)
    return keep, delta * x * write, read, channels.skip * x, gate


class Compared:
    """Checks real steps against the rule, channel by channel."""

    def __init__(self, compiled: Compiled, at: np.ndarray):
        self.names, self.at = compiled.blocks[-1].channels.names, at
        self.tokens = compiled.source.alphabet.tokens

    def check(self, real: Stepped, rule: Rule, windows: Windows) -> None:
        """Raise Violated at the first channel and window where a state or a gated output is not the rule's."""
        state = rule.keep * real.before[:, self.at] + rule.added
        gated = (rule.read * state + rule.skipped) * rule.gate
        self._equal(real.after[:, self.at], state, "state", windows, real)
        self._equal(real.gated[:, self.at], gated, "gated output", windows, real)

    def _equal(self, real: np.ndarray, right: np.ndarray, what: str, windows: Windows, step: Stepped) -> None:
        wrong = real != right
        if wrong.any():
            row, channel = np.argwhere(wrong)[0]
            held = step.before[row, self.at[channel]]
            raise Violated(
                f"the {what} of channel {self.names[channel]} is {real[row, channel]:g} after the window "
                f"'{spell(windows[row].tolist(), self.tokens)}' from the state {held:g}, and must be {right[row, channel]:g}"
            )
