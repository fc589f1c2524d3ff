"""Target s4d alone: what its modules add to the lanes is what the block IR says, bit for bit."""

from __future__ import annotations

from itertools import accumulate

import pytest

from compiler import driver, run
from compiler.errors import CompileError
from compiler.language.words import concatenate, latch
from tests.circuits import is_a, over_abc, token
from tests.gadgets import harness as gadgets
from tests.targets.harness import WITHOUT_LATCH, check


@pytest.mark.parametrize("spare_state", [0, 3])
@pytest.mark.parametrize("name", WITHOUT_LATCH)
def test_blocks_and_modules_agree(name: str, spare_state: int):
    check("s4d", WITHOUT_LATCH[name], spare_state=spare_state)


@pytest.mark.parametrize("name", WITHOUT_LATCH)
def test_an_unmodified_mamba_holds_the_same_blocks(name: str):
    check("s4d", WITHOUT_LATCH[name], printer="mamba")


def test_what_an_unmodified_mamba_could_hold_and_an_s4d_cannot_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Were it not refused by its operation, a latch would be a Mamba whose steps see the input, under the name S4D."""
    monkeypatch.setattr(run, "PASSES", tuple(entry for entry in run.PASSES if entry.name != "fit ports"))
    with pytest.raises(CompileError, match="s4d has no place for a step that is linear in x̂"):
        driver.compile(over_abc("kept", latch(token, is_a)), "s4d")


@pytest.mark.parametrize("lane", [0, 1])
def test_the_first_of_a_kind_is_kept_without_forgetting(lane: int):
    """A flag is there for the k-th time at most once; of the count of another nothing follows."""
    both, value = concatenate(gadgets.is_a, gadgets.is_b), gadgets.counted.cumsum()
    first = latch(value, both, first=True)

    def oracle(word: list[str]) -> list[list[int]]:
        sums = list(accumulate(gadgets.COUNTED[letter] for letter in word))
        at = word.index("ab"[lane]) if "ab"[lane] in word else len(word)
        return [[sums[at] if t >= at else 0] for t in range(len(word))]

    gadgets.agrees(first[lane], oracle, ("s4d", "mamba", "mamba2"))
    with pytest.raises(CompileError, match="s4d has no lowering of latch"):
        gadgets.compiled(latch(value, gadgets.is_a & (gadgets.is_b.cumsum() == 1)), "s4d")
    with pytest.raises(CompileError, match="s4d has no lowering of latch"):
        gadgets.compiled(latch(value, gadgets.is_a & (gadgets.is_a.cumsum() != 1)), "s4d")
