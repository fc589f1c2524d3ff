"""One weight of a certified module changed: a certificate that still holds must still be true.

A fault is (parameter, place, value). Whenever the certificate holds after it, the real module must give finite scores
at every position and the right answer at every position that is asked, on random and adversarial inputs. `python -m
tests.verify.faults COUNT [seed] [--json]` runs it at any size and prints the counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from compiler.artifact.model import Stack
from compiler.artifact.numeric import numeric_stack
from compiler.artifact.package import bare
from compiler.driver import compile
from constructions.construction import CircuitFamily, Construction, NumericConstruction
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.with_position import AbsoluteTimePosition, KeepNthPosition
from verify.certificates import Certificate, Refused, Violated
from verify.tasks.task import IGNORED, Batch

CERTIFIED: dict[str, Callable[[], CircuitFamily]] = {
    "induction heads on mamba-delta-t": lambda: InductionHeads(vocab=3, arch="mamba-delta-t"),
    "keep-nth-position on mamba": lambda: KeepNthPosition(n=3, vocab=5),
    "keep-nth-position on mamba2": lambda: KeepNthPosition(n=3, vocab=5, arch="mamba2"),
    "absolute-time-position on mamba": lambda: AbsoluteTimePosition(horizon=6),
    "absolute-time-position on mamba2": lambda: AbsoluteTimePosition(horizon=6, arch="mamba2"),
}

CHANGES: dict[str, Callable[[np.float32], float]] = {
    "sign": lambda w: -w,
    "up": lambda w: np.nextafter(w, np.float32(np.inf)),
    "down": lambda w: np.nextafter(w, np.float32(-np.inf)),
    "double": lambda w: 2 * w,
    "zero": lambda w: 0.0,
    "2^100": lambda w: 2.0**100,
    "-2^124": lambda w: -(2.0**124),
    "2^124": lambda w: 2.0**124,
    "200": lambda w: 200.0,
    "100": lambda w: 100.0,
    "nan": lambda w: np.nan,
    "inf": lambda w: np.inf,
    "-inf": lambda w: -np.inf,
}


@dataclass(frozen=True)
class Fault:
    """parameter: its name; place: flat index; change: which of CHANGES."""

    parameter: str
    place: int
    change: str


class Faulty:
    """A certified module, its inputs, and what a fault does to both."""

    def __init__(self, construction: Construction, samples: int = 24, seed: int = 0):
        self.construction = construction
        self.compiled = compile(construction.circuit(), construction.target)
        self.stack: Stack = bare(self.compiled)
        self.batches: list[Batch] = []
        for task in construction.tasks():
            self.batches += [*task.adversarial(), *task.random(samples, seed=seed)]
        self.names = [name for name, p in self.stack.named_parameters() if p.numel()]

    @property
    def module(self) -> torch.nn.Module:
        """What the certificate speaks of."""
        return self.stack

    def faults(self, count: int, seed: int) -> Iterator[Fault]:
        """`count` faults, spread evenly over the parameters, half of them on weights that are not 0."""
        rng = np.random.default_rng(seed)
        for number in range(count):
            name = self.names[number % len(self.names)]
            weights = self.stack.get_parameter(name).data.view(-1)
            nonzero = weights.nonzero()[:, 0]
            some = len(nonzero) and rng.integers(2)
            place = int(nonzero[rng.integers(len(nonzero))]) if some else int(rng.integers(len(weights)))
            yield Fault(name, place, list(CHANGES)[rng.integers(len(CHANGES))])

    def certificate(self) -> Certificate | None:
        """The certificate where it holds."""
        try:
            found = self.construction.certificate(self.module, self.compiled)
        except (Refused, Violated):
            return None
        return found if found is not None and found.holds else None

    def outcome(self, fault: Fault) -> str:
        """ "same" weight, "rejected", "true" or "false": what became of the certificate."""
        weights = self.stack.get_parameter(fault.parameter).data.view(-1)
        saved = weights[fault.place].clone()
        with np.errstate(over="ignore"):
            weights[fault.place] = float(np.float32(CHANGES[fault.change](np.float32(saved.item()))))
        try:
            if torch.equal(weights[fault.place], saved):
                return "same"
            if self.certificate() is None:
                return "rejected"
            return "true" if self.answers() else "false"
        finally:
            weights[fault.place] = saved

    @torch.no_grad()
    def answers(self) -> bool:
        """Whether all scores are finite and every answer asked for wins strictly."""
        return all(self._answers(batch) for batch in self.batches)

    def _answers(self, batch: Batch) -> bool:
        scores = self.stack(torch.from_numpy(batch.tokens))
        asked = torch.from_numpy(batch.labels != IGNORED)
        right = torch.from_numpy(batch.labels)[asked]
        at_ask = scores[asked].clone()
        signal = at_ask.gather(1, right[:, None])[:, 0]
        others = at_ask.scatter(1, right[:, None], -torch.inf).max(dim=1).values
        return bool(scores.isfinite().all() and (signal > others).all())


class FaultyNumbers(Faulty):
    """The same of a model over one-hot tokens and a position."""

    def __init__(self, construction: NumericConstruction, samples: int = 24, seed: int = 0):
        self.construction, self.compiled = construction, compile(construction.circuit(), construction.target)
        self.numeric = numeric_stack(self.compiled)
        self.stack = self.numeric.stack
        self.names = [name for name, p in self.stack.named_parameters() if p.numel()]
        rng, width = np.random.default_rng(seed), getattr(construction, "vocab", 0)
        self.last = getattr(construction, "n", 0) or construction.horizon
        self.places = np.array([*range(1, self.last + 12), 2**24 - 1, 2**24 + 1, 2**31 + 7, 2**40])
        self.tokens = rng.integers(max(1, width), size=(samples, len(self.places)))
        self.inputs = {"position": np.tile(self.places.astype(float)[None, :, None], (samples, 1, 1))}
        if width:
            self.inputs["token"] = np.eye(width)[self.tokens]

    @property
    def module(self) -> torch.nn.Module:
        return self.numeric

    def answers(self) -> bool:
        """The right answer at every position that asks, step by step, which is what the certificate speaks of."""
        tokens = "token" in self.inputs
        asked = np.flatnonzero(self.places >= self.last) if tokens else np.arange(len(self.places))
        kept = np.tile(self.tokens[:, [self.last - 1]], len(asked))
        right = torch.from_numpy(kept if tokens else np.minimum(self.places, self.last)[None] - 1)
        scores = self._stepped(self.numeric.pack(self.inputs))
        at = right.expand(len(scores), -1)[..., None]
        signal, others = scores[:, asked].gather(2, at), scores[:, asked].scatter(2, at, -torch.inf)
        return bool(scores.isfinite().all() and (signal[..., 0] > others.amax(dim=2)).all())

    def _stepped(self, lanes: torch.Tensor) -> torch.Tensor:
        state, found = self.stack.initial_state(len(lanes)), []
        for place in range(lanes.shape[1]):
            scores, state = self.stack.advance(lanes[:, place : place + 1], state)
            found.append(scores)
        return torch.stack(found, dim=1)


def faulty(construction: CircuitFamily, samples: int = 24) -> Faulty:
    """A certified construction, ready for faults."""
    over_numbers = isinstance(construction, NumericConstruction)
    return FaultyNumbers(construction, samples) if over_numbers else Faulty(construction, samples)


def run(count: int, seed: int) -> tuple[Counter, list[str]]:
    """(what became of so many faults for each certified construction, those after which a certificate was false)."""
    counts: Counter[str] = Counter()
    false = []
    for name, build in CERTIFIED.items():
        module = faulty(build())
        assert module.certificate() is not None and module.answers(), name
        for fault in module.faults(count, seed):
            outcome = module.outcome(fault)
            counts[outcome] += 1
            if outcome == "false":
                false.append(f"{name}: {fault}")
    return counts, false


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.verify.faults", description=__doc__)
    parser.add_argument("count", type=int, help="faults per construction")
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    counts, false = run(options.count, options.seed)
    print(json.dumps({"certificates": counts, "failures": false}) if options.json else f"{dict(counts)} {false}")
    return 1 if false else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
