"""What a trace of many tokens costs beside the forward pass of the same model: `python -m benchmarks.tracing`.

Brackets of two types, a stack in three or four blocks. Prints CPU seconds of one thread, the best of several runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from compiler.artifact.model import Stack
from compiler.artifact.package import language_model
from compiler.driver import compile
from compiler.tracing.truth import Truth
from examples.programs import two_brackets

TOKENS, ROUNDS = 10_000, 3


def measured(mixer: str, rounds: int = ROUNDS) -> dict[str, float]:
    """CPU seconds. forward: the blocks alone; trace: `model.trace(…)`, forward pass included; read: every variable of
    it, decoded, at all positions, and whether each is the circuit's; table: the text of all of them.
    """
    compiled = compile(two_brackets.circuit(max_length=TOKENS), mixer)
    packaged = language_model(compiled)
    truth = Truth(compiled, Stack.from_language_model(packaged.config, packaged.tensors), packaged.layout)
    ids = compiled.source.token_language.sample(1, TOKENS, 0)
    found = truth.trace(ids[0], {})

    def forward() -> None:
        with torch.no_grad():
            truth.run(np.asarray(ids), {})

    def read() -> None:
        trace = truth.trace(ids[0], {})
        assert trace.agrees and all(len(trace[v.name]) == TOKENS for v in truth.variables)

    names = [variable.name for variable in truth.variables]
    timed: dict[str, Callable[[], Any]] = {
        "forward": forward,
        "trace": lambda: truth.trace(ids[0], {}),
        "trace, all read": read,
        "table": lambda: found.table(*names),
    }
    return {name: min(_seconds(one) for _ in range(rounds)) for name, one in timed.items()}


def _seconds(run: Callable[[], Any]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    for mixer in ("mamba", "mamba2"):
        print(f"{mixer}, {TOKENS:,} tokens, CPU s:", {name: round(s, 2) for name, s in measured(mixer).items()})


if __name__ == "__main__":
    main()
