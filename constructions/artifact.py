"""From a construction to a verified checkpoint, and back from the files alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from compiler.artifact import CheckpointError
from compiler.artifact import save as save_checkpoint
from compiler.artifact.config import cuda_limits
from compiler.artifact.model import Stack
from compiler.artifact.package import LanguageModel, bare, bare_sizes, language_model, packaged_sizes, size_fields
from compiler.driver import Compiled, compile
from compiler.formats import format_of
from compiler.runtime import torch_only_transformers
from constructions.construction import Construction
from constructions.registry import CONSTRUCTIONS
from verify.certificates import Refused
from verify.check import Scores, Verification, check, chosen_batches
from verify.probe import first_divergence


@dataclass(frozen=True, eq=False)
class Built:
    """A compiled construction and its language model (None where Hugging Face has none of this mixer), in memory."""

    construction: Construction
    compiled: Compiled
    model: LanguageModel | None

    def stack(self) -> Stack | None:
        """The language model over the real modules, in the dtype that the promise is made for."""
        if self.model is None:
            return None
        return in_dtype(Stack.from_language_model(self.model.config, self.model.tensors), self.compiled.dtype)

    def bare_stack(self) -> Stack:
        """The bare form over the real modules, at the sizes of the theorem."""
        return in_dtype(bare(self.compiled), self.compiled.dtype)


def build(construction: Construction) -> Built:
    """Compile and package; CompileError with every reason when the promise cannot be kept.

    ValueError where a task would verify on sequences that the promise does not cover.
    """
    circuit = construction.circuit()
    longest = circuit.language.max_length
    for task in construction.tasks():
        if task.length > longest:
            raise ValueError(
                f"length = {task.length} is beyond max_length = {longest}, so nothing is promised there; the largest length that works is {longest}"
            )
    compiled = compile(circuit, construction.target, construction.dtype)
    return Built(construction, compiled, language_model(compiled) if compiled.context.target.family else None)


def in_dtype(stack: Stack, dtype: str) -> Stack:
    """The stack with its weights in the dtype; A_log and D stay in float32, as the kernels require."""
    if dtype == "float32":
        return stack
    kept = {name: p.data for name, p in stack.named_parameters() if name.endswith(("A_log", ".D"))}
    stack = stack.to(format_of(dtype).torch_dtype)
    for name, parameter in stack.named_parameters():
        if name in kept:
            parameter.data = kept[name]
    return stack


def hugging_face(directory: Path, dtype: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The saved checkpoint through AutoModelForCausalLM, on transformers' own PyTorch code: tokens to scores."""
    torch_only_transformers()
    disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=format_of(dtype).torch_dtype)
    return lambda tokens: model(tokens).logits


def verify(
    built: Built,
    stack: Callable[[torch.Tensor], torch.Tensor],
    mode: str,
    samples: int,
    seed: int,
    progress: Callable[[str, int], Callable[[int], None]] = lambda name, count: lambda n: None,
    bare: bool = False,
) -> dict[str, Verification]:
    """Run every task of the construction on the stack; `progress(name, count)` opens a bar and returns its advance.

    bare: whether the stack is the bare form, whose vocabulary is the alphabet alone.
    """
    tokens = built.compiled.source.alphabet.size

    scores = module_scores(stack)

    def expected(ids: np.ndarray) -> np.ndarray:
        letters = built.compiled.interpret(ids)
        return letters if bare or built.model is None else built.model.over_vocabulary(letters)

    results = {}
    for task in built.construction.tasks():
        hard = built.construction.promise() == "all"
        count, batches = chosen_batches(task, mode, samples, seed, tokens, adversarial=hard)
        results[task.describe()] = check(scores, expected, batches, progress(task.name, count))
    return results


def module_scores(stack: Callable[[torch.Tensor], torch.Tensor]) -> Scores:
    """Token ids (batch, length) to the stack's scores as float32 arrays."""

    def scores(ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return stack(torch.from_numpy(ids)).float().numpy()

    return scores


def passed(built: Built, results: dict[str, Verification]) -> bool:
    """Bit-exact everywhere and, unless the promise is for random inputs only, every answer right."""
    total = sum(results.values(), start=Verification())
    return total.bit_exact and (built.construction.promise() == "random" or total.passed)


def certificate(built: Built, bare_stack: Stack) -> tuple[dict | None, str]:
    """(the certificate, one sentence): a proof for every input of its domain, or why there is none.

    Raises Violated when the weights fail a step of the proof.
    """
    if built.compiled.dtype != "float32":
        return None, f"certificates are for float32, and the promise is for {built.compiled.dtype}"
    try:
        found = built.construction.certificate(bare_stack, built.compiled)
    except Refused as reason:
        return None, str(reason)
    if found is None:
        return None, "this form of the construction has no certificate; its answers are tested"
    if not found.holds:
        return (
            found.to_json(),
            f"the certificate's margin is {found.margin:g}, which proves nothing: it is a lower bound",
        )
    margin = "" if found.margin is None else f" with margin {found.margin:g}"
    return found.to_json(), f"every answer is right{margin}, on {found.domain}"


def exact_rate_of_contrasts(built: Built, samples: int, seed: int) -> dict[str, float]:
    """The rate of sequences that each contrasting circuit's real module answers completely, on the construction's first task."""
    task, rates = built.construction.tasks()[0], {}
    for other in built.construction.contrasts():
        circuit = compile(other.circuit(), other.target, other.dtype)
        scores = module_scores(in_dtype(bare(circuit), circuit.dtype))
        result = check(scores, circuit.interpret, task.random(samples, seed, batch_size=64))
        changed = {k: v for k, v in other.params().items() if built.construction.params()[k] != v}
        rates[" ".join(f"--{k} {v}" for k, v in changed.items())] = result.exact_sequences / result.sequences
    return rates


def divergence(built: Built, stack: Stack, verification: Verification) -> str | None:
    """Where the model first leaves the circuit on the sequence that failed; None where it follows it to the end."""
    if verification.failure is None:
        return None
    packaged = built.model if built.model and stack.norms is not None else None
    return first_divergence(stack, built.compiled, np.array([verification.failure[1]]), packaged)


def sizes(built: Built) -> dict:
    """Sizes of the bare stack as it runs, what each of its blocks uses of them, and of the packaged language model."""
    compiled = built.compiled
    blocks = [size_fields(size) for size in bare_sizes(compiled)]
    packaged = [size_fields(size) for size in packaged_sizes(compiled)]
    return {
        **{name: max(block[name] for block in packaged) for name in ("d_model", "d_inner", "d_state")},
        "layers": len(blocks),
        "blocks": blocks,
        **_packaged_sizes(built.model),
    }


def _packaged_sizes(model: LanguageModel | None) -> dict:
    if model is None:
        return {"parameters": None, "packaged": None}
    names = {
        "d_model": "hidden_size",
        "d_inner": "intermediate_size",
        "d_state": "state_size",
        "layers": "num_hidden_layers",
    }
    return {
        "parameters": sum(t.numel() for t in model.tensors.values()),
        "packaged": {ours: model.config[theirs] for ours, theirs in names.items()},
    }


def report(
    built: Built,
    results: dict[str, Verification],
    out: str | None,
    bare_results: dict[str, Verification] | None = None,
    proof: tuple[dict | None, str] = (None, "not asked for"),
) -> dict:
    """The JSON object of the command, which is also the manifest of the checkpoint.

    results: of the language model that the checkpoint holds; bare_results: of the bare form;
    proof: what `certificate` returned.
    """
    construction = built.construction
    total = sum(results.values(), start=Verification())
    language = built.compiled.source.language
    return {
        "construction": construction.name,
        "theorem": construction.theorem,
        "params": construction.params(),
        "arch": construction.target,
        "dtype": built.compiled.dtype,
        "sizes": sizes(built),
        "bound": construction.bound(),
        "guarantee": {
            "level": "bit-exact" if total.bit_exact and total.sequences else "unverified",
            "answers": construction.promise(),
            "expected_failure": construction.expected_failure(),
            "certificate": proof[0],
            "proof": proof[1],
            "domain": f"{language.description}; up to {language.max_length} tokens, {built.compiled.dtype}",
        },
        "verification": _by_task(results) | ({"bare": _by_task(bare_results)} if bare_results else {}),
        "cuda_limits": cuda_limits(built.model.config) if built.model else [],
        "out": out,
    }


def _by_task(results: dict[str, Verification]) -> dict:
    total = sum(results.values(), start=Verification())
    return total.to_json() | {"tasks": {name: result.to_json() for name, result in results.items()}}


def save(
    built: Built,
    results: dict[str, Verification],
    out: Path,
    bare_results: dict | None = None,
    proof: tuple[dict | None, str] = (None, "not asked for"),
    overwrite: bool = False,
) -> None:
    """Write the checkpoint directory; its manifest is the report and the names of the lanes."""
    manifest = report(built, results, None, bare_results, proof) | {
        "lanes": list(built.compiled.lanes.names),
        "blocks": block_names(built.compiled),
    }
    manifest.pop("out")
    save_checkpoint(out, built.model.config, built.model.tensors, built.model.tokens, manifest, overwrite=overwrite)


def block_names(compiled: Compiled) -> list[dict]:
    """For each block the names of its channels and state columns, in the order in which they were allocated."""
    return [{"channels": list(b.channels.names), "columns": list(b.columns.names)} for b in compiled.blocks]


def rebuild(manifest: dict) -> Built:
    """Compile again what a manifest says was compiled: the independent side of `construct verify`.

    CheckpointError where the manifest names no construction of ours.
    """
    name, params = manifest.get("construction"), manifest.get("params")
    if name not in CONSTRUCTIONS:
        raise CheckpointError(
            f"the checkpoint's construction is {name!r}, and it must be one of {', '.join(CONSTRUCTIONS)}."
        )
    try:
        construction = CONSTRUCTIONS[name](**params)
        return build(construction)
    except (TypeError, AttributeError) as reason:
        raise CheckpointError(f"the checkpoint's params are not those of {name}: {reason}.") from reason


def differences(built: Built, stack: Stack, manifest: dict) -> list[str]:
    """Where a loaded checkpoint is not what its own parameters compile to: tokens, config, weights, claims."""
    model = built.model
    found = [] if list(stack.tokens) == model.tokens else ["its tokenizer has other tokens"]
    found += [
        f"its config has {k} = {stack.config.get(k)!r}, not {v!r}"
        for k, v in model.config.items()
        if stack.config.get(k) != v
    ]
    ours = dict(Stack.from_language_model(model.config, model.tensors).named_parameters())
    found += [
        f"its weights {name} differ" for name, tensor in stack.named_parameters() if not torch.equal(tensor, ours[name])
    ]
    claims = report(built, {}, None)
    told = {
        **{k: claims[k] for k in ("theorem", "arch", "dtype", "sizes", "bound")},
        "lanes": list(built.compiled.lanes.names),
    }
    found += [f"its manifest claims another {key}" for key, value in told.items() if manifest.get(key) != value]
    if manifest.get("guarantee", {}).get("domain") != claims["guarantee"]["domain"]:
        found.append("its manifest claims another domain")
    return found
