"""How fast samples are verified, and where the time goes: tokens per CPU second of both forms of MQAR, and the shares.

    python -m benchmarks.verification [--kappa 16] [--vocab 512] [--samples 2000] [--json]

model: both real modules, up to the head and behind it; interpreter: the circuit; oracle: sequences and their answers;
comparison: all else, such as finding distinct rows and holding scores against each other.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the command does: read when numpy and torch are loaded

from compiler.runtime import mamba_classes
from constructions.checkpoints.built import build
from constructions.checkpoints.scores import module_scores, reference_scores
from constructions.selectivity.mqar import MQAR
from verify.check import CheckedForm, check_forms
from verify.samples import Cost, chosen_batches
from verify.scores import Scores, Split

PARTS = ("model", "interpreter", "oracle", "comparison")


class Clock:
    """CPU seconds by part."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(PARTS, 0.0)

    def timed(self, part: str, function: Callable) -> Callable:
        """The function, its time counted."""

        def counted(*arguments: Any) -> Any:
            start = process_time()
            try:
                return function(*arguments)
            finally:
                self.spent[part] += process_time() - start

        return counted

    def scores(self, part: str, scores: Scores) -> Scores:
        """Scores in one step or in two, their time counted."""
        if not isinstance(scores, Split):
            return self.timed(part, scores)
        read = None if scores.read is None else (scores.read[0], self.timed(part, scores.read[1]))
        return replace(scores, rows=self.timed(part, scores.rows), head=self.timed(part, scores.head), read=read)

    def batches(self, batches: Iterator) -> Iterator:
        """The batches, the time to draw and answer them counted."""
        following = self.timed("oracle", lambda: next(batches, None))
        while (batch := following()) is not None:
            yield batch


def measure(kappa: int, vocab: int, samples: int) -> dict[str, Any]:
    """Both forms on the task's hard sequences and this many random ones."""
    mamba_classes()  # importing mamba_ssm is not verifying
    built, clock = build(MQAR(kappa=kappa, vocab=vocab)), Clock()
    models = [module_scores(stack) for stack in (built.bare_stack(), built.stack())]
    forms = [CheckedForm(clock.scores("model", model)) for model in models]
    forms[1] = replace(forms[1], widened=built.model.over_vocabulary)
    reference = clock.scores("interpreter", reference_scores(built.compiled))
    (task,) = built.construction.tasks()
    widest = max(model.widest for model in models if isinstance(model, Split))
    tokens = 0

    def counted(batches: Iterator) -> Iterator:
        nonlocal tokens
        for batch in batches:
            tokens += batch.tokens.size
            yield batch

    cost = Cost(built.compiled.source.alphabet.size, 0, widest)
    start = process_time()
    results = check_forms(
        forms, reference, counted(clock.batches(chosen_batches(task, "random", samples, 0, cost).batches))
    )
    whole = process_time() - start
    if not all(result.passed and result.bit_exact for result in results):
        raise SystemExit("the verification failed")
    clock.spent["comparison"] = whole - sum(clock.spent.values())
    shares = {part: round(spent / whole, 3) for part, spent in clock.spent.items()}
    return {
        "kappa": kappa,
        "vocab": vocab,
        "tokens": tokens,
        "tokens_per_cpu_s": round(tokens / whole),
        "shares": shares,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verification", description=__doc__)
    for name, default in (("kappa", 16), ("vocab", 512), ("samples", 2000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.kappa, options.vocab, options.samples)
    if options.json:
        print(json.dumps(found))
        return
    print(f"κ = {found['kappa']}, V = {found['vocab']}: {found['tokens']:,} tokens, both forms")
    print(f"{found['tokens_per_cpu_s']:,} tokens per CPU second")
    for part, share in found["shares"].items():
        print(f"{part:12}{100 * share:6.1f} %")


if __name__ == "__main__":
    sys.exit(main())
