"""An entry of the shared list of circuits, and what helps to write one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from compiler.compiled import Compiled, run_blocks
from compiler.driver import compile
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream

Oracle = Callable[[list[str]], list]
SELECTIVE = ("mamba", "mamba2", "mamba-delta-t")
ALL = (*SELECTIVE, "s4d")
NO_LATCH = {"s4d": "has no lowering of latch"}
FLAGS_ONLY = {"s4d": "for keys that are flags"}
DELTA, SUBTRACTS = ("gated-deltanet", "gated-deltanet-qwen"), "is subtracted|has no memory that adds"
_ADDING_NOTHING = """
    accepted climbed climbed_before induction_heads mqar_sum mqar_once mqar_last chained_memories deleted_keys
    first_rule_that_holds table_of_a_symbol a_constant previous_token shifts_of_one_to_seven shift_of_a_not
    shift_of_a_late_not a_far_shift same_as_three_back one_token_at_several_lags fixed_filter presence least_debt"""
ADDING_NOTHING = frozenset(_ADDING_NOTHING.split())  # the circuits without a sum over the past


@dataclass(frozen=True)
class Case:
    """A circuit, what it should say, where it compiles, and the words of the refusal where it does not."""

    name: str
    build: Callable[[], Circuit]
    oracle: Oracle
    targets: tuple[str, ...] = SELECTIVE
    refused: dict[str, str] = field(default_factory=lambda: NO_LATCH)
    exhaustive: int = 4

    def compiled(self, target: str) -> Compiled:
        """What it compiles to, for tests that only read it: found once in a process."""
        return _compiled(self.build, target)


@cache
def _compiled(build: Callable[[], Circuit], target: str) -> Compiled:
    return compile(build(), target)


CASES: list[Case] = []


def case(
    oracle: Oracle, targets: tuple[str, ...] = SELECTIVE, refused: dict[str, str] | None = None, exhaustive: int = 4
):
    """Add the circuit that a function builds to the list, under the function's name.

    targets: where it compiles, beside Gated DeltaNet, which takes what `ADDING_NOTHING` names and refuses the rest.
    """

    def add(build: Callable[[], Circuit]) -> Callable[[], Circuit]:
        refusals = refused if refused is not None else {} if "s4d" in targets else NO_LATCH
        held = build.__name__ in ADDING_NOTHING
        everywhere = (*targets, *DELTA) if held else targets
        CASES.append(
            Case(
                build.__name__,
                build,
                oracle,
                everywhere,
                refusals | ({} if held else dict.fromkeys(DELTA, SUBTRACTS)),
                exhaustive,
            )
        )
        return build

    return add


def words(case_: Case, circuit: Circuit, count_: int = 8, seed: int = 0) -> list[np.ndarray]:
    """Batches of token ids: every sequence of the language up to `exhaustive`, then random longer ones."""
    language = circuit.language
    batches = [np.array(list(language.strings(n)), dtype=np.int64) for n in range(1, case_.exhaustive + 1)]
    longest = [n for n in range(1, language.max_length + 1) if _spellable(language, n)][-1]
    batches += [language.sample(count_, n, seed) for n in {(case_.exhaustive + longest + 1) // 2, longest}]
    return [batch for batch in batches if len(batch)]


def _spellable(language: InputLanguage, length: int) -> bool:
    try:
        language.sample(1, length, 0)
    except ValueError:
        return False
    return True


def logits(compiled: Compiled, tokens: np.ndarray) -> np.ndarray:
    """What the block IR gives: (batch, time, width)."""
    last = run_blocks(compiled, tokens)[-1]
    flat = last.reshape(-1, last.shape[-1])
    return np.asarray((compiled.head @ flat.T).T).reshape(*tokens.shape, -1)


def mistakes(case_: Case, circuit: Circuit, tokens: np.ndarray, outputs: np.ndarray) -> list[str]:
    """Where outputs (batch, time, width) differ from the oracle's."""
    found = []
    for word, rows in zip(tokens, outputs, strict=True):
        names = [circuit.language.alphabet.tokens[i] for i in word]
        for t, (expected, row) in enumerate(zip(case_.oracle(names), rows, strict=True)):
            if not _agrees(expected, row, circuit):
                found.append(f"{' '.join(names)} at {t}: expected {expected}, got {list(row)}")
    return found


def _agrees(expected, row: np.ndarray, circuit: Circuit) -> bool:
    if expected is None:
        return True
    if isinstance(expected, str):
        best = circuit.language.alphabet.index(expected)
        return all(row[best] > row[i] for i in range(len(row)) if i != best)
    return tuple(row) == (expected if isinstance(expected, tuple) else (expected,))


ABC = Alphabet.of("a", "b", "c")
abc = Tokens(ABC)
is_a, is_b, is_c = (abc.is_in([name]) for name in "abc")
token = abc.one_hot()


def over_abc(name: str, stream: Stream, max_length: int = 24) -> Circuit:
    return Circuit(name, stream, InputLanguage.everything(ABC, max_length))


def each(step: Callable[[list[str], int], object]) -> Oracle:
    """An oracle from a function of (sequence, position)."""
    return lambda word: [step(word, t) for t in range(len(word))]


def back(word: list[str], t: int, k: int) -> str | None:
    return word[t - k] if t >= k else None


def one_hot_of(name: str | None, names: str = "abc") -> tuple[int, ...]:
    return tuple(int(name == n) for n in names)
