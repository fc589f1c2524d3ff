"""One program on targets × dtypes × forms: exact, refused, wrong, crash or hang."""

from __future__ import annotations

import re
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch

from compiler import Compiled, CompileError, bare, compile, language_model
from compiler.artifact.model import Stack
from compiler.language.data import from_data, to_data
from tests.flushed import flushed
from tests.fuzz.device import SECONDS, not_for_the_kernels, transformers_definitions
from tests.fuzz.kinds import Draw
from tests.fuzz.language import continued, sequences
from tests.fuzz.program import Program

TARGETS = ("mamba", "mamba2", "s4d", "mamba-delta-t")
DTYPES = ("float32", "bfloat16", "float16")
FORMS = ("bare", "language model", "steps", "transformers")
WIDEST = 400  # lanes of a model that is run
INTERPRETED = 2.0**-40  # of the largest value
COMPILER = str(Path(__file__).parents[2] / "compiler")
Scores = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Outcome:
    """How a program came out on a target, in a dtype and form: exact, refused, wrong, crash or hang, and the reason.

    On CUDA a model may also be "refused by the kernels", where its manifest says that it is not for them.
    """

    verdict: str
    target: str
    dtype: str
    form: str
    reason: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict in ("wrong", "crash", "hang")


class Hang(BaseException):
    """More processor time than any small program may take."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises Hang after so many seconds of processor time."""

    def stop(signal_number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# What a sequence should give ------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """A batch of sequences and what the program means on them; a row counts up to its own length."""

    tokens: np.ndarray
    lengths: tuple[int, ...]
    values: list[list[tuple]]


def expectations(program: Program, seed: int, long: int = 300) -> list[Expected]:
    """Short walks of every kind, and sometimes a long one; of 5,000 tokens only where numbers stay short, because a sum
    that fades has a denominator which grows with every token.
    """
    draw = Draw(seed)
    language = program.language
    words = sequences(language, draw)
    groups = [words]
    if language.max_length > 12 and draw.chance(0.3):
        length = min(language.max_length, 5000 if draw.chance(0.03) and not program.approximate else long)
        groups.append([continued(language, draw, language.empty, length, repeat) for repeat in (False, True)])
    return [_batch(program, group) for group in groups if any(group)]


def _batch(program: Program, words: Sequence[tuple[str, ...]]) -> Expected:
    letters, longest = program.language.letters, max(map(len, words))
    words = [word for word in words if word]
    ids = [[letters.index(letter) for letter in word] + [0] * (longest - len(word)) for word in words]
    return Expected(np.array(ids, dtype=np.int64), tuple(map(len, words)), [program.meaning(word) for word in words])


def difference(expected: Expected, scores: np.ndarray, decides: bool = False, within: float = 0.0) -> str | None:
    """The first position where the scores are not the numbers that they should be; a float equals one number.

    decides: only the largest score is meant. within: how far the numbers may be off.
    """
    for word, length, wanted, given in zip(
        expected.tokens, expected.lengths, expected.values, scores.tolist(), strict=True
    ):
        for t, (row, found) in enumerate(zip(wanted, given[:length], strict=True)):
            if decides:
                right = list(row).index(max(row)) == found.index(max(found))
            elif within:
                right = all(abs(Fraction(a) - Fraction(b)) <= within for a, b in zip(row, found, strict=True))
            else:
                right = list(row) == found
            if not right:
                return f"{word[: t + 1].tolist()}: it should be {[str(v) for v in row]}, and it is {found}"
    return None


# The forms of a model -----------------------------------------------------------------------------------


def in_dtype(stack: Stack, dtype: str) -> Stack:
    """Weights in the dtype; A_log and D stay in float32, as the kernels and transformers keep them."""
    kept = {name: p.data for name, p in stack.named_parameters() if name.endswith(("A_log", ".D"))}
    stack = stack.to(getattr(torch, dtype))
    for name, parameter in stack.named_parameters():
        if name in kept:
            parameter.data = kept[name]
    return stack


def _bare(compiled: Compiled, device: str) -> Stack:
    return in_dtype(bare(compiled), compiled.dtype).to(device)


def _packaged(compiled: Compiled, device: str) -> Stack:
    """Of the circuit that its file keeps, which must give the weights that the circuit itself has."""
    context, kept = compiled.context, from_data(to_data(compiled.source))
    columns = context.columns.most if context.columns.asked else None
    again = compile(kept, context.target.name, compiled.dtype, columns)
    model, own = language_model(again), language_model(compiled)
    differ = [name for name, tensor in own.tensors.items() if not torch.equal(tensor, model.tensors[name])]
    if differ or own.config != model.config:
        raise AssertionError(f"the circuit that is kept compiles to another model: {differ or 'its config'} differ")
    return in_dtype(Stack.from_language_model(model.config, model.tensors), compiled.dtype).to(device)


def _by_steps(compiled: Compiled, device: str) -> Scores:
    stack = _bare(compiled, device)

    def scores(tokens: torch.Tensor) -> torch.Tensor:
        state, out = stack.initial_state(len(tokens)), []
        for t in range(tokens.shape[1]):
            row, state = stack.step(tokens[:, t], state)
            out.append(row)
        return torch.stack(out, dim=1)

    return scores


def _transformers(compiled: Compiled, device: str) -> Scores:
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    transformers_definitions(device)
    disable_progress_bar()
    with tempfile.TemporaryDirectory() as directory:
        compiled.save(Path(directory) / "checkpoint")
        model = AutoModelForCausalLM.from_pretrained(
            Path(directory) / "checkpoint", dtype=getattr(torch, compiled.dtype)
        ).to(device)
    return lambda tokens: model(tokens).logits


PACKAGES: dict[str, Callable[[Compiled, str], Scores]] = {
    "bare": _bare,
    "language model": _packaged,
    "steps": _by_steps,
    "transformers": _transformers,
}


# Verdicts -------------------------------------------------------------------------------------------------


def outcomes(
    program: Program,
    seed: int,
    targets: Sequence[str],
    dtypes: Sequence[str],
    forms: Sequence[str],
    device: str = "cpu",
) -> list[Outcome]:
    """The program everywhere; one outcome that names no target where it cannot even be written.

    What an ill-typed program should say is not known; it must be refused, or accepted without a crash.
    device: where the models run; the interpreter stays on the CPU.
    """
    circuit, outcome = _guarded(program.circuit, "", "", "")
    if circuit is None:
        return [outcome]
    expected, found = None, []
    for target in targets:
        for dtype in dtypes:
            options = (target, dtype, program.max_d_state)
            compiled, outcome = _guarded(lambda: compile(circuit, *options), target, dtype, "compile")  # noqa: B023
            if compiled is None:
                found.append(outcome)
                continue
            if not program.well_typed:
                found.append(Outcome("accepted", target, dtype, "compile"))
                continue
            if compiled.lanes.count > WIDEST:
                found.append(Outcome("too wide to run", target, dtype, "compile"))
                continue
            expected = expected or expectations(program, seed)
            found += [
                _form(program, compiled, expected, target, dtype, form, device) for form in ("interpreter", *forms)
            ]
    return found


def _error(compiled: Compiled, form: str) -> float:
    """How far real numbers may be off: by the bound that the compiler proves; the interpreter rounds to float64."""
    bound = compiled.error_bound
    if bound is None:
        raise CompileError([(None, "no bound of its error is known")])
    return INTERPRETED * max(1.0, float(compiled.domains.of(compiled.source.output).bound)) + (
        0.0 if form == "interpreter" else bound
    )


def _form(
    program: Program, compiled: Compiled, expected: list[Expected], target: str, dtype: str, form: str, device: str
) -> Outcome:
    """Whether a compiled program says what it should in one form, on a device."""

    def run() -> str:
        within = _error(compiled, form) if program.approximate else 0.0
        scores = None if form == "interpreter" else PACKAGES[form](compiled, device)
        for batch in expected:
            given = compiled.interpret(batch.tokens) if scores is None else _run(scores, batch.tokens, device)
            wrong = difference(batch, given[..., : compiled.source.output.width], program.decides, within)
            if wrong:
                return wrong
        return ""

    wrong, outcome = _guarded(run, target, dtype, form, SECONDS[device])
    if wrong is None:
        of_kernels = outcome.verdict == "crash" and not_for_the_kernels(compiled, form, outcome.reason)
        return replace(outcome, verdict="refused by the kernels") if of_kernels else outcome
    return Outcome("wrong" if wrong else "exact", target, dtype, form, wrong)


@torch.no_grad()
def _run(scores: Scores, tokens: np.ndarray, device: str) -> np.ndarray:
    with flushed():
        return scores(torch.from_numpy(tokens).to(device)).double().cpu().numpy()


def _guarded(run: Callable, target: str, dtype: str, form: str, seconds: float = SECONDS["cpu"]):
    """(what it returns, None), or (None, the outcome of its exception)."""
    try:
        with at_most(seconds):
            return run(), None
    except Hang:
        return None, Outcome("hang", target, dtype, form, f"more than {seconds} s")
    except Exception as error:
        said = refusal(error)
        if said is not None:
            return None, Outcome("refused", target, dtype, form, said)
        trace = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({Path(trace.filename).name}:{trace.lineno})"
        return None, Outcome("crash", target, dtype, form, reason)


def refusal(error: Exception) -> str | None:
    """The reason of an exception that the compiler raised on purpose in one sentence; None for any other."""
    if isinstance(error, CompileError):
        return error.reasons[0][1]
    if not isinstance(error, (ValueError, TypeError, IndexError)) or "\n" in str(error):
        return None
    *_, last = traceback.extract_tb(error.__traceback__)
    return str(error) if last.filename.startswith(COMPILER) and last.line.startswith("raise ") else None


def classified(reason: str) -> str:
    """A reason without its numbers and names, so that like ones are counted together."""
    short = re.sub(r"'[^']*'", "'…'", reason)
    short = re.sub(r"v\d+[\[\].\w]*", "v", short)
    return re.sub(r"(?<![A-Za-z\d])-?\d[\d.,e+/]*(?<![.,])", "N", short)[:160]
