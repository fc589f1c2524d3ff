"""What a block of latches must do at one step, by the block IR, and whether the real module does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from compiler.artifact.model import Stack
from compiler.driver import Compiled
from compiler.ir.block import SelectiveBlock, UnsafePreactivation, kept, rectified, run_features
from compiler.ir.decay import rates
from verify.certificates.ask import BEFORE, Windows
from verify.certificates.certificate import Refused, Violated
from verify.certificates.stepper import Stepped
from verify.certificates.windows import spell


@dataclass(frozen=True, eq=False)
class Rule:
    """h ← keep·h + added; out_proj then reads (read·h + skipped)·gate. Arrays (n windows, channels) but read: (n, 1).

    lanes: (n, lanes) what stands on the lanes before the last block.
    """

    keep: np.ndarray
    added: np.ndarray
    read: np.ndarray
    skipped: np.ndarray
    gate: np.ndarray
    lanes: np.ndarray


def last_block(compiled: Compiled) -> SelectiveBlock:
    """The block that holds the latches; refused where its state has several columns."""
    block = compiled.blocks[-1]
    if block.d_state > 1:
        raise Refused(
            f"the last block has {block.d_state} state columns, and the inductive "
            "certificate is for latches, which have one"
        )
    if block.columns.step is not None:
        raise Refused(
            "the columns of the last block have steps of their own, and the inductive certificate is for real "
            "Mamba and Mamba-2 modules"
        )
    if any(
        b.features.real or b.channels.real_gates or b.channels.curved_gates or b.channels.real_steps
        for b in compiled.blocks
    ):
        raise Refused(
            "a block carries real numbers as pairs of halves, which are right to rounding only, and the "
            "inductive certificate is about bits"
        )
    return block


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
    """The fields of the rule at the last of (n, time) tokens."""
    lanes = compiled.lanes.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)
    for earlier in compiled.blocks[:-1]:
        lanes = lanes + earlier.run(lanes)
    block = compiled.blocks[-1]
    channels, features, present = block.channels, run_features(block.features, lanes)[:, -1], lanes[:, -1]
    x = features[:, channels.feature]
    step = (channels.delta_features @ features.T).T + (channels.delta_lanes @ present.T).T + channels.delta_bias
    delta = rectified(step, channels.names, "the Δ pre-activation")
    gate = rectified((channels.gate @ present.T).T, channels.names, "the gate pre-activation")
    write, read = ((port @ features.T).T for port in (block.columns.write, block.columns.read))
    keep = kept(delta * rates(channels.decay))
    return keep, delta * x * write, read, channels.skip * x, gate, present


class Comparison:
    """Checks real steps against the rule, channel by channel. at: where the IR's channels stand in the module."""

    def __init__(self, stack: Stack, compiled: Compiled):
        module, channels = stack.blocks[-1], compiled.blocks[-1].channels
        self.names, self.tokens = channels.names, compiled.source.token_alphabet.tokens
        self.at = compiled.context.target.seats(compiled.blocks[-1], module)
        self.head, self.right_head = _array(stack.head.weight), compiled.head
        self.last_map = self.head @ _array(module.out_proj.weight)
        self._check_last_map(sparse.csr_array(compiled.head @ channels.out.T).toarray())

    def _check_last_map(self, right: np.ndarray) -> None:
        """head · out_proj is the IR's, and reads none but the IR's channels."""
        expected = np.zeros_like(self.last_map)
        expected[: len(right), self.at] = right
        wrong = self.last_map != expected
        if wrong.any():
            token, channel = np.argwhere(wrong)[0]
            raise Violated(
                f"channel {self.name(int(channel))} counts {self.last_map[token, channel]:g} in the logit of "
                f"token {token} in every window, and must count {expected[token, channel]:g}"
            )

    def check(self, real: Stepped, rule: Rule, windows: Windows) -> None:
        """Raise Violated at the first channel and window where a state, a gated output or a passing lane is not the
        rule's.
        """
        self._check_latches(rule, windows)
        state = rule.keep * real.before[:, self.at] + rule.added
        gated = (rule.read * state + rule.skipped) * rule.gate
        foreign = np.delete(real.after, self.at, axis=1)
        if foreign.any():
            raise Violated(
                "a channel that the block IR does not have writes to its state at the window "
                f"'{self.spell(windows[np.argwhere(foreign)[0][0]])}'"
            )
        self._equal(real.after[:, self.at], state, "state", windows, real)
        self._equal(real.gated[:, self.at], gated, "gated output", windows, real)
        passing, right = real.stream @ self.head.T, (self.right_head @ rule.lanes.T).T
        if (passing[:, : right.shape[1]] != right).any() or passing[:, right.shape[1] :].any():
            row = np.argwhere((passing[:, : right.shape[1]] != right).any(axis=1)).min(initial=len(passing) - 1)
            raise Violated(
                "what passes by the last block is not the lanes of the block IR after the window "
                f"'{self.spell(windows[row])}'"
            )

    def _check_latches(self, rule: Rule, windows: Windows) -> None:
        adds = (rule.keep == 1) & (rule.added != 0)
        if adds.any():
            row, channel = np.argwhere(adds)[0]
            raise Refused(
                f"channel {self.names[channel]} adds to its state at the window '{self.spell(windows[row])}': "
                "it is a counter, and the certificate is for latches"
            )

    def _equal(self, real: np.ndarray, right: np.ndarray, what: str, windows: Windows, step: Stepped) -> None:
        wrong = real != right
        if wrong.any():
            row, channel = np.argwhere(wrong)[0]
            raise Violated(
                f"the {what} of channel {self.names[channel]} is {real[row, channel]:g} after "
                f"the window '{self.spell(windows[row])}' "
                f"from the state {step.before[row, self.at[channel]]:g}, and must be {right[row, channel]:g}"
            )

    def name(self, place: int) -> str:
        """The name of the channel at a place of the module."""
        return dict(zip(self.at.tolist(), self.names, strict=True)).get(
            place, f"number {place}, which the block IR does not have,"
        )

    def spell(self, window: np.ndarray) -> str:
        return spell(window.tolist(), self.tokens)


def _array(tensor) -> np.ndarray:
    return tensor.detach().double().numpy()
