"""A circuit against a plain Python function, on every short sequence of its input language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from compiler.artifact.answers import strange_tokens
from compiler.artifact.package import bare
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.language.arguments import shown
from compiler.language.circuit import Circuit

Answer = str | float | Sequence[float] | None
MOST = 1 << 20  # sequences that are tried
_TOKENS_PER_BATCH = 1 << 16


@dataclass(frozen=True)
class Outcome:
    """True as a condition where everything agreed; counterexample: a sentence on the first sequence that did not."""

    sequences: int
    upto: int
    counterexample: str | None = None

    def __bool__(self) -> bool:
        return self.counterexample is None

    def __str__(self) -> str:
        return self.counterexample or f"right on all {self.sequences:,} sequences of up to {self.upto} tokens"


def verify(
    circuit: Circuit | Compiled,
    function: Callable[[list[str]], Answer],
    upto: int = 8,
    target: str = "mamba",
    show: Callable[[str], Any] = print,
) -> Outcome:
    """Try every sequence of the input language of up to `upto` tokens, shortest first; prints what came out.

    function: from the names of a sequence's tokens to what must stand at its last position: a token (the one with
    strictly the highest score), a number or the numbers of the output, or None where nobody asks. It is compared with
    the interpreter, and the real module (the bare form of `target`) with the interpreter, bit for bit.

    CompileError where a circuit does not compile; ValueError where there are more than 2^20 sequences, with the
    largest `upto` that works, for an answer that cannot be compared, and where the function never asks, which would
    be right of any circuit. An error of the function itself is raised as it is, with the sequence as a note.
    """
    if not callable(function):
        raise TypeError(f"the function is {shown(function)}, and a function of a sequence's tokens is needed")
    compiled = circuit if isinstance(circuit, Compiled) else compile(circuit, target)
    language = compiled.source.language
    if language is None:
        raise ValueError(f"the circuit {compiled.source.name!r} reads numbers; there are no sequences to try")
    asked_for, upto = upto, _checked(upto, language.max_length)
    _check_count(compiled, upto, asked_for)
    model, tried, asked = bare(compiled), 0, 0

    def answer(names: list[str]) -> Answer:
        nonlocal asked
        try:
            says = function(names)
        except Exception as error:
            error.add_note(f"raised by the function on the sequence: {' '.join(names)}")
            raise
        asked += says is not None
        return says

    for batch in _batches(compiled, upto):
        expected = compiled.interpret(batch)
        with torch.no_grad():
            scores = model(torch.from_numpy(batch)).double().numpy()
        for row, circuit_says, model_says in zip(batch, expected, scores, strict=True):
            wrong = _difference(compiled, row, circuit_says[-1], model_says[-1], answer)
            if wrong:
                outcome = Outcome(tried, upto, wrong)
                show(str(outcome))
                return outcome
            tried += 1
    if not asked:
        raise ValueError(
            f"the function answers None on all {tried:,} sequences of up to {upto} tokens, so nothing was compared"
            f"{strange_tokens(function, compiled.source.token_alphabet)}"
        )
    outcome = Outcome(tried, upto)
    show(str(outcome))
    return outcome


def _checked(upto: int, longest: int) -> int:
    if not isinstance(upto, int) or isinstance(upto, bool) or upto < 1:
        raise ValueError(f"upto is {upto!r}, and it must be an integer of at least 1")
    return min(upto, longest)


def _check_count(compiled: Compiled, upto: int, asked_for: int) -> None:
    """ValueError before any work where there are too many sequences."""
    total = 0
    for length in range(1, upto + 1):
        strings = compiled.source.token_language.strings(length)
        total += sum(1 for _ in islice(strings, MOST + 1 - total))
        if total > MOST:
            reason = f"upto = {asked_for} means more than {MOST:,} sequences"
            raise ValueError(f"{reason}; the largest that works is {length - 1}")


def _batches(compiled: Compiled, upto: int) -> Iterator[np.ndarray]:
    """Every sequence, shortest first: (batch, length) ids."""
    for length in range(1, upto + 1):
        strings = compiled.source.token_language.strings(length)
        while rows := list(islice(strings, max(1, _TOKENS_PER_BATCH // length))):
            yield np.array(rows, dtype=np.int64)


def _difference(
    compiled: Compiled, ids: np.ndarray, circuit: np.ndarray, model: np.ndarray, function: Callable
) -> str | None:
    names = [compiled.source.token_alphabet.tokens[i] for i in ids]
    if not np.array_equal(circuit, model):
        at = int(np.flatnonzero(circuit != model)[0])
        return f"on {' '.join(names)}: output {at} of the real module is {model[at]:g}, of the circuit {circuit[at]:g}"
    answer = function(list(names))
    if answer is None:
        return None
    if isinstance(answer, str):
        answer = str.__str__(answer)  # a subclass, such as NumPy's, has a repr and an equality of its own
    says = _in_the_words_of(answer, circuit, compiled)
    same = says == answer if isinstance(answer, str) else np.array_equal(np.asarray(says), np.asarray(answer))
    return None if same else f"on {' '.join(names)}: the circuit says {_shown(says)}, the function {_shown(answer)}"


def _in_the_words_of(answer: Answer, output: np.ndarray, compiled: Compiled) -> Any:
    """What the circuit puts out, as a token, a number or numbers, whatever the function's answer is."""
    if isinstance(answer, str):
        compiled.source.token_alphabet.index(answer)  # raises where it is no token
        best = np.flatnonzero(output == output.max())
        return compiled.source.token_alphabet.tokens[best[0]] if len(best) == 1 else f"a tie of {len(best)} tokens"
    wanted = np.asarray(answer)
    if wanted.dtype == object or wanted.ndim > 1 or wanted.size != output.size:
        kind = type(answer).__name__
        raise ValueError(
            f"the function's answer {answer!r:.60} is a {kind}, and a token, None or {output.size} numbers are needed"
        )
    return output.tolist() if wanted.ndim else output.tolist()[0]


def _shown(answer: Any) -> str:
    return repr(answer) if isinstance(answer, str) else str(answer)
