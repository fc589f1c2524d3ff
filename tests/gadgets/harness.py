"""One gadget alone: a circuit of one operation, in the block IR and in the real module, against plain integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch

from compiler.artifact.package import bare
from compiler.compiled import Compiled, run_blocks
from compiler.driver import compile
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream

LETTERS = Alphabet.of("a", "b", "c", "d")
TOKENS = Tokens(LETTERS)
SIGNED = {"a": 3, "b": -2, "c": 0, "d": 7}
COUNTED = {"a": 1, "b": 2, "c": 0, "d": 5}
signed = TOKENS.number(SIGNED, name="signed")
counted = TOKENS.number(COUNTED, name="counted")
is_a, is_b = (TOKENS.is_in([letter], name=f"is_{letter}") for letter in "ab")
one_hot = TOKENS.one_hot(name="letter")

Oracle = Callable[[list[str]], list[list[int]]]


def compiled(stream: Stream, target: str = "mamba") -> Compiled:
    return compile(Circuit("alone", stream, InputLanguage.everything(LETTERS, 64)), target)


def agrees(stream: Stream, oracle: Oracle, targets: Iterable[str] = ("mamba",), gadget: str = "") -> None:
    """Assert that blocks and modules of each target give what the oracle says of random words, bit for bit."""
    ids = np.random.default_rng(0).integers(0, len(LETTERS.tokens), (8, 24))
    expected = np.array([oracle([LETTERS.tokens[i] for i in row]) for row in ids.tolist()], dtype=float)
    for target in targets:
        made = compiled(stream, target)
        if gadget:
            used = {
                type(made.context.target.gadget(s.operation)).__name__ for block in made.schedule.blocks for s in block
            }
            assert gadget in used, (target, used)
        last = run_blocks(made, ids)[-1]
        assert np.array_equal(last @ made.head.toarray().T, expected), target
        with torch.no_grad():
            assert np.array_equal(bare(made)(torch.from_numpy(ids)).double().numpy(), expected), target
