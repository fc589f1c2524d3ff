"""From a construction to a verified checkpoint, and back from the files alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from compiler.artifact.artifact import Artifact, sizes
from compiler.artifact.config import cuda_limits
from compiler.artifact.dtype import in_dtype
from compiler.artifact.generate import transformers_model
from compiler.artifact.model import Stack
from compiler.artifact.numbers_config import NumberInput
from compiler.artifact.numeric import NumericModel, NumericStack, interpret_named
from compiler.artifact.package import bare, bare_sizes, packaged_sizes
from compiler.artifact.save import save as save_checkpoint
from compiler.compiled import Compiled
from compiler.language.data import language_to_data
from compiler.language.input_language import length_said
from compiler.language.language_said import language_said, own_domain
from constructions.checkpoints.built import Built
from constructions.checkpoints.examples import shown_example
from constructions.checkpoints.guarantee import NOT_ASKED, Proof, refused, stated_task, weights_proved, without_tests
from constructions.checkpoints.judged import judged, right_of
from constructions.checkpoints.scores import module_scores, reference_scores
from constructions.command.requests import check_exhaustive
from verify import obstructions
from verify.check import CheckedForm, Verification, check, check_forms
from verify.generation import check_generation
from verify.numbers import check_numbers
from verify.probe import first_divergence
from verify.random_codes import interval
from verify.samples import Cost, affordable, chosen_batches
from verify.scores import Scores, Split
from verify.tasks.chain import ChainTask
from verify.tasks.task import Task

EXACT, UNVERIFIED = "bit-exact", "unverified"
TESTED = "tested"  # of weights that nobody has compared or proved
_OF_CONTRASTS = 1 / 8  # of the budget of all samples, for each
NO_PROGRESS = lambda name, count: lambda done: None


def hugging_face(directory: Path, dtype: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The saved checkpoint on transformers' own PyTorch code: tokens to scores."""
    model = transformers_model(directory, dtype)
    return lambda tokens: model(tokens).logits


class Form(NamedTuple):
    """A form in which a model is run: the stack, and `progress(name, count)`, which opens a bar
    and returns its advance.

    bare: whether it is the bare form, whose vocabulary is the alphabet alone.
    """

    stack: Callable[[torch.Tensor], torch.Tensor]
    progress: Callable[[str, int], Callable[[int], None]] = NO_PROGRESS
    bare: bool = False


def verify(
    built: Built,
    stack: Callable[[torch.Tensor], torch.Tensor],
    mode: str,
    samples: int,
    seed: int,
    progress: Callable[[str, int], Callable[[int], None]] = NO_PROGRESS,
    bare: bool = False,
    tasks: Sequence[Task] | None = None,
) -> dict[str, Verification]:
    """Run every task of the construction on the stack, as `Form` tells of it; tasks: others than its own."""
    (results,) = verify_forms(built, [Form(stack, progress, bare)], mode, samples, seed, tasks)
    return results


def verify_forms(
    built: Built, forms: Sequence[Form], mode: str, samples: int, seed: int, tasks: Sequence[Task] | None = None
) -> list[dict[str, Verification]]:
    """`verify` for several forms on the same sequences, which are drawn and interpreted once."""
    if built.over_numbers:
        return [_verify_numbers(built, form.stack, mode, samples, seed, form.progress) for form in forms]
    reference = reference_scores(built.compiled)
    widened = lambda bare: (lambda letters: letters) if bare or built.model is None else built.model.over_vocabulary
    check_exhaustive(built.construction, mode)
    results: list[dict[str, Verification]] = [{} for _ in forms]
    hard = built.construction.promise() != "random"
    models = [module_scores(form.stack) for form in forms]
    cost = cost_of(built.compiled, models)
    for task in built.construction.tasks() if tasks is None else tasks:
        chosen = chosen_batches(task, mode, samples, seed, cost, hard)
        checked = [
            CheckedForm(model, widened(form.bare), form.progress(task.name, chosen.count))
            for form, model in zip(forms, models, strict=True)
        ]
        bound, asked = built.compiled.error_bound or 0.0, built.construction.asked_at
        found = check_forms(checked, reference, chosen.batches, bound, asked)
        for result, verification in zip(results, found, strict=True):
            result[task.describe()] = replace(verification, left_out=chosen.left_out, not_drawn=chosen.not_drawn)
    return results


def not_run(built: Built) -> dict[str, Verification]:
    """What is found where nothing is run."""
    return {} if built.over_numbers else {task.describe(): Verification() for task in built.construction.tasks()}


def cost_of(compiled: Compiled, models: Sequence[Scores]) -> Cost:
    """What one position takes of all models; of what it holds at most, only where all score distinct rows alone."""
    splits = [model for model in models if isinstance(model, Split)]
    products = sum(model.products for model in splits)
    if len(splits) == len(models):
        return Cost(compiled.source.alphabet.size, products, max(model.widest for model in splits))
    return Cost(compiled.source.alphabet.size, products)


def _verify_numbers(built: Built, stack: NumericStack, mode: str, samples: int, seed: int, progress) -> dict:
    """The same over numbers, whose inputs cannot be counted: every task at every size."""
    if mode == "exhaustive":
        raise ValueError("--verify exhaustive: real numbers cannot be counted; use --verify auto or random.")
    within = cache(lambda size: built.compiled.error_bound_within(size) or 0.0)
    exact = lambda inputs: interpret_named(built.compiled, inputs)
    results = {}
    for task in built.construction.tasks() if mode != "none" else ():
        count = min(samples, task.most_random) if mode == "auto" else samples
        batches = list(task.random(count, seed))
        advance = progress(task.name, sum(map(len, batches)))
        results[task.describe()] = check_numbers(stack.run, exact, batches, within, advance)
    return results


def passed(built: Built, results: dict[str, Verification], proof: Proof = NOT_ASKED) -> bool:
    """As near as promised everywhere (bit-exact, but for real numbers), and every answer right.

    Of a promise of most answers, no more are wrong than it allows, and none of those that are proved (`judged`). A task
    that is stated and refused is not answered at all.
    """
    total = sum(results.values(), start=Verification())
    if built.construction.promise() == "random":
        return total.within and judged(built, total, proof)[0]
    return total.within and total.passed and not refused(proof)


def contrasts(
    built: Built, samples: int, seed: int, progress: Callable[[str, int], Callable[[int], None]] = NO_PROGRESS
) -> dict[str, Verification]:
    """What each contrasting circuit's real module answers of the first random sequences that the construction's first
    task was verified on. Fewer than `samples` where these are beyond the budget.
    """
    task, found = built.construction.tasks()[0], {}
    for other in built.construction.contrasts():
        circuit = other.compiled()
        scores = module_scores(in_dtype(bare(circuit), circuit.dtype))
        cost = cost_of(circuit, [scores])
        few = affordable(task, samples, cost, _OF_CONTRASTS)
        batches = chosen_batches(task, "random", few, seed, cost, adversarial=False).batches
        changed = {k: v for k, v in other.params().items() if built.construction.params()[k] != v}
        name = " ".join(f"--{k} {v}" for k, v in changed.items())
        found[name] = check(scores, reference_scores(circuit), batches, progress(f"run {name}", few))
    return found


def divergence(built: Built, stack: Stack, verification: Verification, named: bool = True) -> str | None:
    """Where the model first leaves the circuit on the sequence that failed; None where it follows it to the end. named:
    whether its lanes are the circuit's; otherwise scores alone are compared.
    """
    if verification.failure is None or built.over_numbers:
        return None
    packaged = built.model if built.model and stack.norms is not None else None
    return first_divergence(stack, built.compiled, np.array([verification.failure[1]]), packaged, named)


def generations(built: Built, directory: Path, every: bool = False) -> list[dict]:
    """What each runtime writes from a saved checkpoint of a chain task, against the solver; every: after all prompts.

    [] where there is no such task, or where not every chain is promised to be right.
    """
    if built.construction.promise() == "random":
        return []
    return [
        run.to_json()
        for task in built.construction.tasks()
        if isinstance(task, ChainTask)
        for run in check_generation(task, directory, built.construction.seed, every)
    ]


def report(
    built: Built,
    results: dict[str, Verification],
    out: str | None,
    bare_results: dict[str, Verification] | None = None,
    proof: Proof = NOT_ASKED,
    compared: bool = True,
) -> dict:
    """The JSON object of the command, which is also the manifest of the checkpoint.

    results: of the language model that the checkpoint holds; bare_results: of the bare form;
    proof: what `guarantee.proof_of` returned. compared: whether the weights are those that the circuit compiles to, to
    the bit; where nobody looked, no more is promised of them than is proved.
    """
    construction, has = built.construction, capacity(built.compiled)
    needs = construction.obstructions(has)
    total = sum(results.values(), start=Verification())
    no_task = refused(proof)
    return (
        {
            "construction": construction.title(),
            "theorem": construction.statement(),
            "params": construction.params(),
            "arch": construction.target,
            "dtype": built.compiled.dtype,
            "sizes": sizes(built.compiled, built.model),
            "bound": construction.bound(),
            "bound_source": construction.bound_source(),
            "state": state_numbers(built),
            "obstructions": [str(one) for one in needs],
            "needed": obstructions.summary(needs, has.channels) if needs else "",
            "guarantee": {
                "level": _level(built, total, compared or weights_proved(proof)),
                "answers": right_of(construction, proof, results, bare_results or {}),
                "expected_failure": construction.expected_failure(),
                "certificate": proof[0],
                "proof": proof[1] if total.sequences else without_tests(proof[1]),
                "domain": _domain(built),
            }
            | ({"codes": codes} if (codes := construction.drawn_codes()) else {})
            | ({"asks_where": construction.asks_where()} if built.over_numbers and construction.asks_where() else {}),
            "task": stated_task(built, proof),
            "verification": _by_task(results)
            | ({"bare": _by_task(bare_results)} if bare_results else {})
            | (_failure(total) if construction.promise() == "random" and total.queries else {}),
            "cuda_limits": cuda_limits(built.model.config) if built.model else [],
            "out": out,
        }
        | ({"task_refused": no_task} if no_task else {})
        | (_promise_of_numbers(built) if built.over_numbers else _inputs(built))
    )


def _level(built: Built, total: Verification, known: bool) -> str:
    """What is promised behind these runs. known: whether the weights are compared with the circuit's, or proved."""
    if not (total.sequences and total.within):
        return UNVERIFIED
    return promised_level(built) if known else TESTED


def state_numbers(built: Built) -> dict[str, int]:
    """How many numbers the state holds: those that the circuit writes, and all of the bare and the packaged modules."""
    compiled, whole = built.compiled, sizes(built.compiled, built.model)
    bare_form = sum(size.d_inner * size.d_state for size in packaged_sizes(compiled))
    found = {"in use": sum(map(compiled.context.target.state_entries, compiled.blocks)), "bare": bare_form}
    packaged = whole["packaged"]
    if packaged:
        found["language model"] = state_held(packaged)
    return found


def state_held(packaged: Mapping[str, int]) -> int:
    """How many numbers the state of a language model of these sizes holds."""
    return packaged["layers"] * packaged["d_inner"] * packaged["d_state"]


def capacity(compiled: Compiled) -> obstructions.Capacity:
    """What the blocks have, at their least sizes: d_inner·d_state numbers and what each convolution holds.

    Of a convolution the taps before the present position count: nothing else goes on to the next one. What it holds
    besides the channels (B and C of Mamba-2) is not of one channel but of all.
    """
    blocks = bare_sizes(compiled)
    channels, columns = (max((getattr(b, name) for b in blocks), default=0) for name in ("d_inner", "d_state"))
    held = compiled.context.target.max_lag
    shared = held * max((b.convolved - b.d_inner for b in blocks), default=0)
    numbers = sum(b.carried(held) for b in blocks)
    return obstructions.Capacity(channels, len(blocks), numbers, columns + held, shared, columns)


def _domain(built: Built) -> str:
    """For which inputs the promise is made, in words. Those of a circuit of one's own are its author's, so what its
    automaton says comes first.
    """
    language, dtype = built.compiled.source.language, built.compiled.dtype
    if language is None:
        return _of_numbers(built)
    if not built.construction.registered:
        return own_domain(_inputs(built)["inputs"], dtype, language.description, built.construction.stated_in)
    return f"{language.description}; {length_said(language_to_data(language)['length'])}, {dtype}"


def _promise_of_numbers(built: Built) -> dict[str, Any]:
    return {"promise": Artifact(built.compiled, built.model).promise} if built.model else {}


def _inputs(built: Built) -> dict[str, str]:
    """The entry of reports on circuits of one's own: what the automaton says alone."""
    language = built.compiled.source.language
    if language is None or built.construction.registered:
        return {}
    return {"inputs": language_said(language_to_data(language), language.alphabet.tokens)}


def _of_numbers(built: Built) -> str:
    read = "; ".join(f"{r.name}: {r.kind}" for r in _records(built))
    return f"{read}; up to {built.compiled.source.max_length} positions, {built.compiled.dtype}"


def _records(built: Built) -> list[NumberInput]:
    config = built.model.config if isinstance(built.model, NumericModel) else {"inputs": []}
    return [NumberInput(**record) for record in config["inputs"]]


def promised_level(built: Built) -> str:
    """What a run can confirm: bits where the circuit is exact, errors within bounds elsewhere."""
    return EXACT if built.compiled.error_bound == 0 else "bounded-error"


def _by_task(results: dict[str, Verification]) -> dict:
    total = sum(results.values(), start=Verification())
    return total.to_json() | {"tasks": {name: result.to_json() for name, result in results.items()}}


def _failure(total: Verification) -> dict:
    """The measured rate of wrong answers with its 95 % interval over sequences, whose queries hang together."""
    rate = 1 - total.accuracy
    return {"failure": {"rate": rate, "interval": list(interval(rate, total.sequences))}}


def claims(report: dict) -> dict:
    """The entries of a report that a construction adds to the manifest of its checkpoint."""
    always = ("construction", "theorem", "params", "bound", "bound_source", "guarantee", "verification")
    found = ("task", "obstructions", "needed")
    return {name: report[name] for name in always} | {name: report[name] for name in found if report[name]}


def save(
    built: Built,
    results: dict[str, Verification],
    out: Path,
    bare_results: dict | None = None,
    proof: Proof = NOT_ASKED,
    overwrite: bool = False,
) -> None:
    """Write the checkpoint directory; its manifest tells what the report does, and the names in the weights."""
    told = claims(report(built, results, None, bare_results, proof)) if built.construction.registered else {}
    save_checkpoint(Artifact(built.compiled, built.model, told, asked=shown_example(built)), out, overwrite)
