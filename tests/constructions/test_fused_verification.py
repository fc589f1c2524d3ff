"""Verification by native blocks and distinct rows finds each planted fault that PyTorch's operations find."""

from __future__ import annotations

import numpy as np
import torch

from compiler.artifact.model import Stack
from constructions.checkpoints.built import build
from constructions.checkpoints.scores import module_scores, reference_scores
from constructions.selectivity.mqar import MQAR
from verify import scores
from verify.check import CheckedForm, check_forms


def plain(stack: Stack):
    """Every position through PyTorch's operations and the whole head."""

    def scores(ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return stack(torch.from_numpy(ids)).float().numpy()

    return scores


def test_one_wrong_weight_gives_the_same_verdict_on_both_ways() -> None:
    built = build(MQAR(kappa=2, vocab=5))
    (task,) = built.construction.tasks()
    batches, reference = list(task.random(12, seed=3, batch_size=5)), reference_scores(built.compiled)
    generator, found = np.random.default_rng(0), 0
    for stack, widened in ((built.bare_stack(), lambda s: s), (built.stack(), built.model.over_vocabulary)):
        for name, parameter in stack.named_parameters():
            weights = parameter.data.view(-1)
            used = weights.nonzero()[:, 0].tolist() or [0]
            for place in generator.choice(used, 2):
                before = weights[place].clone()
                weights[place] = float(generator.choice([0.0, -float(before), float(before) * 2 + 1]))
                each = [CheckedForm(scores(stack), widened) for scores in (module_scores, plain)]
                (fast,), (slow,) = (check_forms([form], reference, batches) for form in each)
                assert fast == slow, (name, place)
                found += not fast.bit_exact
                weights[place] = before
    assert found > 15


def test_a_fault_of_the_head_in_a_letter_that_is_never_right_is_found() -> None:
    built = build(MQAR(kappa=2, vocab=5))
    (task,) = built.construction.tasks()
    for stack in (built.bare_stack(), built.stack()):
        widened = built.model.over_vocabulary if stack.norms is not None else lambda s: s
        form, reference = lambda s=stack, w=widened: CheckedForm(module_scores(s), w), reference_scores(built.compiled)
        run = lambda form=form, reference=reference: check_forms([form()], reference, task.random(20, seed=0))[0]
        assert run().bit_exact
        head = stack.head.weight.data
        head[0, int(head.any(dim=0).nonzero()[0, 0])] += 0.5  # the score of `_`, which is never an answer
        assert not run().bit_exact and not run().passed


def test_a_batch_runs_in_parts_that_fit_the_cache(monkeypatch) -> None:
    built = build(MQAR(kappa=2, vocab=5))
    (task,) = built.construction.tasks()
    (batch,) = task.random(12, seed=3, batch_size=12)
    stack, seen = built.bare_stack(), []
    split = module_scores(stack)
    whole = split(batch.tokens)
    monkeypatch.setattr(scores, "_IN_CACHE", 5 * batch.tokens.shape[1] * split.widest)
    before_head = stack.before_head
    monkeypatch.setattr(stack, "before_head", lambda ids: seen.append(len(ids)) or before_head(ids))
    assert np.array_equal(module_scores(stack)(batch.tokens), whole) and seen == [4, 4, 4]
