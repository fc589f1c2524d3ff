"""Inductive certificate: latches that are right after every window are right after every sequence, of any length.

Statement. Let all but the last block of a stack keep no state, and let the last keep one number per channel. Then what a step does
to channel c depends on the window w of the last tokens and on the channel's own state h only. Let S_c hold 0 and every value that some
window writes from 0. For every w, the first positions of a sequence included, and every h in S_c, the module's own `step()` is run
and must (a) leave h as it is, or write a value of S_c that does not depend on h, whichever the block IR says, bit for bit; (b) hand
to out_proj the IR's number, bit for bit. By induction over positions no channel ever leaves S_c, and state and gated output
are the IR's at every position of every sequence. The last map, head · out_proj, is the IR's matrix and cannot round on such
numbers (`lattice.py`), so the logits are the IR's, bit for bit. Channels are independent: the joint state is never enumerated.

With a task (`Ask`) it is also proved that they answer it; see `latch_answers.py`. Rests on elementwise operations that do not depend on
the place in a batch, and is about `step()`; the scans compute the same where E4 of exact-arithmetic holds for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compiler.compile import Compiled
from compiler.model import Stack
from verify.certificates.ask import Ask, Windows
from verify.certificates.certificate import Certificate, Refused, Violated
from verify.certificates.latch_answers import Answers
from verify.certificates.latch_rule import Compared, Rule, last_block, rule, seats
from verify.certificates.lattice import Lattice
from verify.certificates.stepper import Stepped, Stepper
from verify.certificates.windows import after

MOST_VALUES = 8


@dataclass(frozen=True)
class InductiveCertificate(Certificate):
    """windows, steps: how many windows there are, and real steps taken from them; channels: latches proved; values: the most that one holds."""

    windows: int
    steps: int
    channels: int
    values: int
    level: ClassVar = "bit-exact"


def certify_latches(stack: Stack, compiled: Compiled, ask: Ask | None = None) -> InductiveCertificate:
    """Prove the last block's latches, and with `ask` the answers, for sequences of every length over the alphabet.

    Raises Violated, naming a channel and a window, where a step is wrong, and Refused where the module holds no latches.
    """
    block, vocab = last_block(compiled), compiled.source.alphabet.size
    stepper = Stepper(stack, vocab, ask.reach if ask else 1)
    at = seats(compiled, stack.blocks[-1])
    last_map = _last_map(stack, compiled, at)
    compared = Compared(compiled, at)
    values = _values(stepper, compiled, compared)
    answers = Answers(stack, ask, values, compiled) if ask else None
    largest = Lattice.of(np.zeros((1, stepper.channels)))
    for windows, steps, ruled in _steps(stepper, compiled, values):
        for real in steps:
            compared.check(real, ruled, windows)
            _check_latch(real, ruled, values, compared, windows)
            seen = Lattice.of(real.gated.astype(np.float64))
            largest = Lattice(np.maximum(largest.bound, seen.bound), np.minimum(largest.exponent, seen.exponent))
        if answers:
            answers.collect(windows, steps)
    stream = Lattice.of(stack.embedding.weight.detach().double().numpy())
    largest.through(stack.blocks[-1].out_proj.weight.detach().double().numpy()).plus(stream).exact("out_proj row").through(last_map).exact("logit")
    margin = answers.margin() if answers else None
    count = vocab * len(stepper.histories)
    return InductiveCertificate(margin, "every sequence over the alphabet, of every length; float32", count, count * values.shape[1], len(block.channels.names), values.shape[1])
