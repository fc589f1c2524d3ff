"""Whether latches answer what a task asks, after every window and for every length.

For each slot q let R_q be the channels on which the logits at windows that ask for q depend through the state. Proved,
from the real module's own steps: a window that stores answer v in q writes all of R_q, a pattern that depends on q and
v only; any other window leaves all of R_q alone. So at every position R_q holds the pattern of the last answer stored,
or 0 before the first. For every window that asks for q (those that read alike, once) and every pattern, the real
out_proj and head then give the right token the largest logit; the least lead is the margin.
"""

from __future__ import annotations

import numpy as np
import torch

from compiler.artifact.model import Stack
from verify.certificates.ask import Ask, Windows
from verify.certificates.certificate import Refused, Violated
from verify.certificates.latch_rule import Comparison, Rule
from verify.certificates.stepper import Stepped


class Answers:
    """Collects what windows store and how they read, then checks every answer.

    values: (passes, channels) states gone through.
    """

    def __init__(self, stack: Stack, ask: Ask, values: np.ndarray, comparison: Comparison):
        self.stack, self.ask, self.values, self.comparison = stack, ask, values, comparison
        self._counts = (comparison.last_map != 0).any(axis=0)
        # (slot, answer, bytes of written values, nan where kept) → a window; slot −1 for windows that store nothing
        self._writes: dict[tuple[int, int, bytes], np.ndarray] = {}
        # (slot, own answer or −1, bytes) → (gated outputs by pass, passing stream, a window)
        self._reads: dict[tuple[int, int, bytes], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def collect(self, windows: Windows, steps: list[Stepped], rule: Rule) -> None:
        """Take in the steps from all windows with one present token."""
        slot, answer = self.ask.stores(windows)
        written = np.full(steps[0].after.shape, np.nan, dtype=np.float32)
        written[:, self.comparison.at] = np.where(rule.keep == 0, steps[0].after[:, self.comparison.at], np.nan)
        written += 0.0
        for row, window in enumerate(windows):
            key = (int(slot[row]), int(answer[row]) if slot[row] >= 0 else -1, written[row].tobytes())
            self._writes.setdefault(key, window)
        asked = self.ask.asks(windows)
        for row in np.flatnonzero(asked >= 0).tolist():
            gated = np.array([step.gated[row] for step in steps]) + 0.0
            own = int(answer[row]) if slot[row] == asked[row] else -1
            key = (int(asked[row]), own, gated.tobytes() + steps[0].stream[row].tobytes())
            self._reads.setdefault(key, (gated, steps[0].stream[row], windows[row]))

    def margin(self) -> float:
        """The least lead of a right answer; Violated where a write, or an answer, is wrong."""
        slots = sorted({slot for slot, _, _ in self._reads})
        if not slots:
            raise Refused("no window asks for anything, so there is nothing to prove")
        reading = {slot: np.zeros(len(self._counts), dtype=bool) for slot in slots}
        for (slot, _, _), (gated, _, _) in self._reads.items():
            reading[slot] |= self._counts & (gated != gated[0]).any(axis=0)
        patterns = self._patterns(reading)
        return min(
            self._least(own, gated, stream, patterns[slot], reading[slot], window)
            for (slot, own, _), (gated, stream, window) in self._reads.items()
        )

    def _patterns(self, reading: dict[int, np.ndarray]) -> dict[int, dict[int, np.ndarray]]:
        """slot → answer → the state of all channels that its reads depend on."""
        slots, readers = list(reading), np.array(list(reading.values()))
        patterns: dict[int, dict[int, np.ndarray]] = {slot: {} for slot in slots}
        for (slot, answer, data), window in self._writes.items():
            written = np.frombuffer(data, dtype=np.float32)
            changed = ~np.isnan(written)
            for touched in np.flatnonzero(readers[:, changed].any(axis=1)):
                if slots[touched] != slot:
                    self._fail(
                        "is written",
                        readers[touched] & changed,
                        window,
                        f"which stores nothing in slot {slots[touched]}",
                    )
            if slot not in patterns:
                continue
            kept = reading[slot] & ~changed
            if kept.any():
                self._fail("is kept", kept, window, f"which stores in slot {slot}")
            known = patterns[slot].setdefault(answer, written)
            differs = reading[slot] & (known != written)
            if differs.any():
                self._fail(
                    "is written otherwise than elsewhere",
                    differs,
                    window,
                    f"which stores the same answer in slot {slot}",
                )
        return patterns

    def _fail(self, what: str, channels: np.ndarray, window: np.ndarray, why: str) -> None:
        name = self.comparison.name(int(np.flatnonzero(channels)[0]))
        raise Violated(f"channel {name} {what} at the window '{self.comparison.spell(window)}', {why}")

    @torch.no_grad()
    def _least(
        self, own: int, gated: np.ndarray, stream: np.ndarray, patterns: dict, reads: np.ndarray, window: np.ndarray
    ) -> float:
        """The least lead at one kind of read, over everything that the slot may hold."""
        held = dict(patterns)
        if own >= 0 or self.ask.otherwise is not None:
            held[-1] = np.zeros(len(reads), dtype=np.float32)
        if not held:
            return np.inf
        states = np.array(list(held.values()))
        right = np.array([own if own >= 0 else self.ask.otherwise if answer < 0 else answer for answer in held])
        which = (states[:, None] == self.values).argmax(axis=1)
        entering = np.where(reads, np.take_along_axis(gated, which, axis=0), gated[0])
        out = self.stack.blocks[-1].out_proj(torch.from_numpy(entering)) + torch.from_numpy(stream)
        logits = self.stack.head(out).double().numpy()
        rows = np.arange(len(right))
        lead = logits[rows, right].copy()
        logits[rows, right] = -np.inf
        lead -= logits.max(axis=1)
        worst = int(lead.argmin())
        if not lead[worst] > 0:
            tokens = self.comparison.tokens
            raise Violated(
                f"after the window '{self.comparison.spell(window)}' the right token is "
                f"{tokens[right[worst]]}, and token "
                f"{int(logits[worst].argmax())} leads by {-lead[worst]:g}: wrong channels are "
                f"among {self._names(reads)}"
            )
        return float(lead[worst])

    def _names(self, reads: np.ndarray) -> str:
        return ", ".join(self.comparison.name(int(c)) for c in np.flatnonzero(reads)[:3])
