"""Noise in the weights of a disguise: what it does, measured when it is made and again whenever it is verified."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from compiler.artifact.files import MANIFEST
from compiler.disguise.key import Key
from compiler.disguise.steps import Tensors, applied
from compiler.targets.family import HEAD
from constructions.checkpoints.built import Built
from constructions.checkpoints.guarantee import promise_of, verdict_of
from constructions.checkpoints.saved_circuit import SavedCircuit
from verify.checker.arithmetic.model import prove_arithmetic
from verify.checker.arithmetic.perturbed import lead_of
from verify.checker.check import Verdict
from verify.checker.files import in_memory
from verify.checker.formats import Rejected
from verify.checker.values.values import below
from verify.samples import EXHAUSTIVE_LIMIT, Cost, chosen_batches
from verify.tasks.task import IGNORED, Batch

_ROUNDED = 2.0**-22  # a share, of what a weight of float32 is rounded by
_FEW = 100  # sequences of a task, where a record does not say how many
MOST_SAMPLES = 10**6
_NEAR = 0.1  # share by which another machine's sums may change what a logit is off by


def noise_anew(built: Built, key: Key, tensors: Tensors, told: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(what is found of weights with noise, where a record says otherwise): nothing is taken from the record but how
    many sequences to run.

    The key must give these weights from those that the circuit compiles to (`key_differences`); noise is its last step.
    """
    plain = {name: tensor.numpy() for name, tensor in built.model.tensors.items()}
    exact = applied(key.steps[:-1], plain)
    asked = told.get("samples") or 0
    samples = asked if 1 <= asked <= MOST_SAMPLES else _FEW
    found = {"epsilon": share_of(exact, tensors), "where": where_of(exact, tensors), "samples": samples}
    found |= measured_noise(built, with_tensors(built, tensors), samples)
    if found["where"] == "head" and ("lead" in told or "unproved" in told):
        proof = verdict_of(with_tensors(built, exact))
        found |= lead_with_noise(built.model.config, exact, tensors, promise_of(built), proof)
    return found, [f"{MANIFEST}: disguise.noise.{sentence}" for sentence in noise_differences(told, found)]


def noise_differences(told: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Where a record of noise is not what was measured. epsilon: the most that was drawn from, so no less is."""
    wrong = []
    if not found["epsilon"] <= told["epsilon"] * (1 + _ROUNDED) + _ROUNDED:
        wrong.append("epsilon")
    same = ("answers", "right", "sequences", "every_sequence")
    wrong += [name for name in same if told[name] != found[name]]
    if told.get("where", "all") == "head" != found["where"]:
        wrong.append("where")
    if not math.isclose(told["largest_change"], found["largest_change"], rel_tol=_NEAR):
        wrong.append("largest_change")
    if told.get("lead") is not None and not _same_lead(told["lead"], found.get("lead")):
        wrong.append("lead")
    return [f"{name} is {told[name]!r}, and {_shown(found.get(name))} here" for name in wrong]


def _shown(value: Any) -> str:
    return "nothing is proved" if value is None else f"{value!r} was found"


def _same_lead(told: float, found: float | None) -> bool:
    return found is not None and math.isclose(told, found, rel_tol=1e-9)


def share_of(exact: Tensors, noisy: Tensors) -> float:
    """The largest share by which a weight is off; infinite for one that was 0, which noise leaves alone."""
    most = 0.0
    for name, before in exact.items():
        before, after = before.astype(float), noisy[name].astype(float)
        off = before != after
        if not off.any():
            continue
        if not (np.isfinite(before[off]) & np.isfinite(after[off]) & (before[off] != 0)).all():
            return math.inf
        most = max(most, float(np.abs(after[off] / before[off] - 1).max()))
    return most


def where_of(exact: Tensors, noisy: Tensors) -> str:
    """ "head" where every other tensor is as it was."""
    others = (name for name in exact if name != HEAD)
    return "head" if all(exact[name].tobytes() == noisy[name].tobytes() for name in others) else "all"


def lead_with_noise(
    config: dict[str, Any], exact: Tensors, noisy: Tensors, promise: dict[str, Any], proof: Verdict
) -> dict[str, Any]:
    """The least lead of the right letter with noise in the head, {"lead": x}, or why none is proved, {"unproved": …}.

    proof: the verdict on the exact weights.
    """
    if not proof.accepted or proof.task is not None or proof.margin is None:
        return {"unproved": "of the exact weights no lead of the right letter is proved"}
    try:
        checkpoint = in_memory(config, exact, promise)
        head = in_memory(config, noisy, promise).tensors[HEAD]
        lead = lead_of(prove_arithmetic(checkpoint), head, proof.margin, checkpoint.language.tokens)
    except Rejected as reason:
        return {"unproved": str(reason)}
    return {"lead": below(lead)}


@torch.no_grad()
def measured_noise(built: Built, noisy: Built, samples: int) -> dict[str, Any]:
    """What is known of a model with noise: how many answers are right, and how far its logits are off.

    The right answers are those of the tasks; where nobody has said any, the letters that alone score highest without
    noise. Answers of an author's own are left out, for a disguised directory holds none, and what is told of noise must
    be found again there. every_sequence: whether all sequences of the tasks were run.
    """
    if isinstance(built.construction, SavedCircuit):
        built = replace(built, construction=replace(built.construction, answers=None))
    plain, other = built.stack(), noisy.stack()
    letters = built.compiled.source.alphabet.size
    answers = right = sequences = 0
    change = 0.0
    for batch in batches_of(built, samples):
        tokens = torch.as_tensor(batch.tokens)
        one, two = plain(tokens).double().numpy(), other(tokens).double().numpy()
        wanted = np.where((one == one.max(-1, keepdims=True)).sum(-1) == 1, one.argmax(-1), IGNORED)
        if (batch.labels != IGNORED).any():
            wanted = batch.labels
        asked = wanted != IGNORED
        answers, right = answers + int(asked.sum()), right + int((two.argmax(-1) == wanted)[asked].sum())
        sequences, change = sequences + len(tokens), max(change, float(np.abs(two - one)[..., :letters].max()))
    every = all(task.exhaustive_count() <= EXHAUSTIVE_LIMIT for task in built.construction.tasks())
    return {
        "answers": answers, "right": right, "sequences": sequences, "every_sequence": every, "largest_change": change,
    }  # fmt: skip


def with_tensors(built: Built, tensors: Tensors) -> Built:
    """The same construction with these weights in the place of its own."""
    found = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    return replace(built, model=replace(built.model, tensors=found))


def batches_of(built: Built, samples: int) -> Iterator[Batch]:
    """Sequences of every task of a construction."""
    cost, hard = Cost(built.compiled.source.alphabet.size), built.construction.promise() != "random"
    for task in built.construction.tasks():
        yield from chosen_batches(task, "auto", samples, built.construction.seed + 1, cost, hard).batches
