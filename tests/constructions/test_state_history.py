"""The states that pictures show against what was written, on every target that a picture is drawn of."""

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens
from compiler.artifact.model import Stack
from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.language import memory
from compiler.language.words import concatenate
from constructions.pictures.state_history import state_history
from constructions.selectivity.mqar import MQAR

KEYS, DIGITS = "ab", {"1": 1, "2": 2, "3": 3}
LETTERS = Alphabet.of(*KEYS, *DIGITS, "?")
DELTA = ["gated-deltanet", "gated-deltanet-qwen"]
WORD = ["a", "1", "2", "b", "3", "1", "?", "a", "3", "2", "2", "b", "?", "1"]


@pytest.mark.parametrize("packaged", [False, True])
@pytest.mark.parametrize("arch", ["mamba", "mamba2", *DELTA])
def test_every_key_holds_the_last_value_that_it_was_given(arch, packaged):
    compiled = compile(MQAR(kappa=3, vocab=5, write="last", arch=arch).circuit(), arch)
    model = language_model(compiled) if packaged else None
    stack = Stack.from_language_model(model.config, model.tensors) if packaged else bare(compiled)
    text = "k0 v1 k0 v3 k2 v2 k1 v4 k2 v0"
    history, last = state_history(compiled, stack, text), {}
    words = text.split()
    for t, word in enumerate(words):
        if word.startswith("v"):
            last[words[t - 1]] = word
        assert {group.name: group.answers[t] for group in history.groups} == {
            f"k{i}": last.get(f"k{i}", "") for i in range(3)
        }


@pytest.mark.parametrize("policy, arch", [("sum", "mamba"), *(("last", arch) for arch in DELTA)])
def test_two_memories_of_one_block_are_drawn_apart(policy, arch):
    """Digits under the letter before them, and under the one before that: each has columns of its own."""
    x = Tokens(LETTERS)
    key, digit = x.one_hot(list(KEYS), name="key"), x.number(DIGITS, name="digit")
    asks = x.is_in(["?"], name="asks")
    back = [key.shift(1), key.shift(2)]
    read = [memory.write(where, digit, policy=policy).read(where & asks) for where in back]
    compiled = compile(Circuit("two", concatenate(*read), InputLanguage.everything(LETTERS, 24)), arch)
    (number,) = [n for n, block in enumerate(compiled.blocks, 1) if len(np.unique(block.columns.group)) > 1]
    groups = state_history(compiled, bare(compiled), " ".join(WORD), number).groups
    shown = sorted(tuple(group.values[:, 0].tolist()) for group in groups)
    assert shown == sorted(tuple(held(lag, letter, policy)) for lag in (1, 2) for letter in KEYS)


def held(lag: int, letter: str, policy: str) -> list[int]:
    """What stands under a letter after each step."""
    entry, steps = 0, []
    for t, word in enumerate(WORD):
        if t >= lag and WORD[t - lag] == letter:
            entry = DIGITS.get(word, 0) + (entry if policy == "sum" else 0)
        steps.append(entry)
    return steps
