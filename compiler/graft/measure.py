"""What a grafted model does beside what its host did and what its circuit says, on given tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from compiler import digits
from compiler.graft.bound import SAME
from compiler.graft.grafted import Grafted
from compiler.graft.orderless import orderless

PROBES, PROBE_LENGTH = 8, 48


@dataclass(frozen=True)
class HostDifference:
    """The host's own logits before and after, where the circuit does not speak: at tokens that are letters, those of
    letters are the circuit's. worst: the largest difference; size: the largest |logit|.

    nats_before, nats_after: the mean cross-entropy over the host's vocabulary of each token that follows no letter.
    """

    positions: int
    worst: float
    size: float
    nats_before: float
    nats_after: float

    @property
    def equal(self) -> bool:
        return self.worst == 0


@dataclass(frozen=True)
class Answers:
    """Positions where the circuit has a best letter with the lead that is needed, and how many the model gets wrong.

    tied: positions of letters where no letter has that lead, of which nothing is promised; tied_otherwise: those of
    them at which the model answers otherwise than the circuit, whose answer is then the first of the best letters.
    intruding: positions of the host's own tokens at which a letter scores highest. tie_steps: the least and the largest
    distance of floats at the largest logit of a tied position: what the host adds there is rounded to multiples of it.
    """

    asked: int
    wrong: int
    tied: int
    tied_otherwise: int
    host_positions: int
    intruding: int
    tie_steps: tuple[float, float] = (0.0, 0.0)


@torch.no_grad()
def host_difference(host: Any, grafted: Grafted, ids: torch.Tensor) -> HostDifference:
    """Run both on token ids (batch, time) of the host."""
    before, after = _both(host, grafted, ids)
    own = ~torch.isin(ids, _mapped(grafted))
    nats = [_nats(logits, ids, own) for logits in (before, after)]
    return HostDifference(ids.numel(), float((before - after).abs().max()), float(before.abs().max()), *nats)


@torch.no_grad()
def same_sums(host: Any, grafted: Grafted, ids: torch.Tensor) -> bool:
    """Whether both have the same logits bit for bit where every sum is rounded once: then all that differs elsewhere is
    the order in which a machine adds.
    """
    with orderless():
        return torch.equal(*_both(host, grafted, ids))


def _both(host: Any, grafted: Grafted, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The host's logits, alone and in the direct sum, and 0 where the circuit speaks: (batch, time, the host's
    vocabulary).
    """
    before = host(ids).logits.float()
    after = grafted.model(ids).logits[..., : before.shape[-1]].float()
    mapped = _mapped(grafted)
    spoken = torch.isin(ids, mapped)[..., None] & torch.isin(torch.arange(before.shape[-1]), mapped)
    return before.masked_fill(spoken, 0), after.masked_fill(spoken, 0)


def _mapped(grafted: Grafted) -> torch.Tensor:
    """The tokens of the host that are letters."""
    return torch.tensor([grafted.ids[letter] for letter in grafted.report["mapped"]], dtype=torch.int64)


def _nats(logits: torch.Tensor, ids: torch.Tensor, own: torch.Tensor) -> float:
    """own: the positions after which the host speaks, (batch, time)."""
    asked = own[:, :-1]
    if not asked.any():
        return 0.0
    return float(torch.nn.functional.cross_entropy(logits[:, :-1][asked], ids[:, 1:][asked]))


def broken_promise(grafted: Grafted, difference: HostDifference, same: bool) -> str | None:
    """What contradicts the promise of the host, in a sentence, or None. same: what `same_sums` found."""
    promise = grafted.report["host_promise"]
    if not difference.worst <= promise["logit_bound"]:
        least, most = digits.at_least(difference.worst, 6), digits.at_most(promise["logit_bound"], 6)
        return f"the host's logits changed by {least}, and at most {most} is promised"
    if not same and promise["level"] == SAME:
        return "with sums that are rounded once the host's logits differ, which contradicts what is proved of them"
    return None


def random_text(vocab: int, letters: Collection[int] = (), seed: int = 0) -> torch.Tensor:
    """Token ids of a host, uniformly drawn; about one in four is one of these letters, if there are any."""
    rng = np.random.default_rng(seed)
    text = rng.integers(0, vocab, (PROBES, PROBE_LENGTH))
    if letters:
        text = np.where(rng.random(text.shape) < 0.25, rng.choice(sorted(letters), text.shape), text)
    return torch.from_numpy(text)


def mixed_text(grafted: Grafted, host_vocab: int, count: int, length: int, seed: int) -> Iterator[np.ndarray]:
    """Sequences of the promise, half of them with random tokens of the host between: (1, length) ids each."""
    language, rng = grafted.circuit.token_language, np.random.default_rng(seed)
    guest = language.alphabet.size - 1
    free = np.setdiff1d(np.arange(host_vocab), list(grafted.ids.values()))
    place = np.array([grafted.ids[letter] for letter in language.alphabet.tokens[:-1]])
    for i in range(count):
        walk = language.sample(1, min(length, language.max_length), int(rng.integers(2**62)))[0]
        if i % 2 or not free.size:
            walk = walk[walk != guest]
        if walk.size:
            drawn = free[rng.integers(len(free), size=len(walk))] if free.size else np.zeros(len(walk), dtype=np.int64)
            yield np.where(walk == guest, drawn, place[np.minimum(walk, guest - 1)])[None]


@torch.no_grad()
def answers(grafted: Grafted, rows: Iterable[np.ndarray], model: Any = None) -> Answers:
    """Run the model (`grafted.model`, or the same loaded again) on rows of ids, beside the interpreter."""
    run = grafted.model if model is None else model
    letters = np.array([grafted.ids[letter] for letter in grafted.circuit.token_alphabet.tokens[:-1]])
    lead_needed = grafted.report["circuit_promise"]["lead_needed"]
    steps: list[float] = []
    asked = wrong = tied = otherwise = others = intruding = 0
    for row in rows:
        logits = run(torch.from_numpy(row)).logits
        found = logits.float().numpy().argmax(-1)
        scores = grafted.scores(row)
        here = np.isin(row, letters)
        ordered = np.sort(scores, axis=-1)
        lead = ordered[..., -1] - ordered[..., -2] if scores.shape[-1] > 1 else np.full(row.shape, np.inf)
        certain = here & (lead > lead_needed)
        asked += int(certain.sum())
        differs = found != letters[scores.argmax(-1)]
        wrong += int(differs[certain].sum())
        tied += int((here & ~certain).sum())
        steps += _steps(logits.max(-1).values)[here & ~certain].tolist()
        otherwise += int(differs[here & ~certain].sum())
        others += int((~here).sum())
        unmapped = np.setdiff1d(letters, [grafted.ids[m] for m in grafted.report["mapped"]])
        intruding += int(np.isin(found, unmapped)[~here].sum())
    return Answers(asked, wrong, tied, otherwise, others, intruding, (min(steps, default=0.0), max(steps, default=0.0)))


def _steps(logits: torch.Tensor) -> np.ndarray:
    """The distance of floats of this format at each number; 0 at 0."""
    _, exponent = torch.frexp(logits.float())
    return np.ldexp(torch.finfo(logits.dtype).eps / 2, exponent.numpy()) * (logits != 0).numpy()
