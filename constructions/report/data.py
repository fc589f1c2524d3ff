"""What a report holds: the blocks, lanes and variables of a model as JSON, for the page's own interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE
from compiler.artifact.manifest import Manifest, is_own
from compiler.artifact.records import right_answers
from compiler.compiled import Compiled
from compiler.digits import at_least
from compiler.ir.block import SelectiveBlock
from compiler.ir.decay import FORGET, rates
from compiler.language.arguments import counted
from compiler.language.input_language import length_said
from compiler.language.language_said import language_said, own_domain
from compiler.tracing.decoding import Decoder
from compiler.tracing.variables import Variable, Variables
from constructions.papers import is_told_no_more, whose

_RECORDED = "Recorded by its maker, not run for this page:"
MOST_NUMBERS = 2_000_000  # entries of all matrices: a page of about 30 MB


def model_data(compiled: Compiled) -> dict[str, Any]:
    """Tokens, lanes, blocks, head and variables, as interpreter.js takes them. ValueError for what it does not run."""
    if compiled.source.alphabet is None:
        raise ValueError("it is a model over numbers, and a page steps through tokens")
    if any(_curved(block) for block in compiled.blocks):
        raise ValueError("its promise is within an error, and a page computes exactly")
    parts = [compiled.lanes.embedding, compiled.head]
    parts += [m for b in compiled.blocks for m in (b.features.rows, b.channels.gate, b.columns.write, b.columns.read)]
    if (count := sum(part.nnz for part in parts)) > MOST_NUMBERS:
        raise ValueError(f"its blocks have {count:,} weights, and a page steps through at most {MOST_NUMBERS:,}")
    shown = [v for v in Variables(compiled) if not v.constant and v.stream is not compiled.source.output]
    variables = [_variable(v, compiled) for v in shown]
    return {
        "tokens": list(compiled.source.alphabet.tokens),
        "lanes": [{"name": c.name, "said": c.said} for c in compiled.lanes.coordinates],
        "embedding": _rows(compiled.lanes.embedding),
        "blocks": [_block(block) for block in compiled.blocks],
        "head": _rows(compiled.head),
        "one": int(compiled.lanes.index[ONE][0]),
        "variables": [v for v in variables if v],
        "length": compiled.source.max_length,
    }


def page_data(compiled: Compiled, manifest: Manifest, proof: str) -> dict[str, Any]:
    """The same, and what the page says of the checkpoint in words."""
    sizes, promise, variables, stated = manifest.sizes, manifest.promise, Variables(compiled), _stated(manifest)
    return _stepping(compiled) | {
        "title": manifest.construction or manifest.circuit or "circuit",
        "theorem": manifest.theorem or "a circuit of its author's own",
        "arch": manifest.arch,
        "promise": {
            "scores": "Every score is the circuit's, bit for bit."
            if promise.level == "bit-exact"
            else "Scores are the circuit's within a bound.",
            "answers": _answers(manifest),
            "inputs": f"Inputs: {_inputs(compiled, manifest)}.",
            "proof": proof,
        },
        "sizes": [
            {"name": name, "used": getattr(sizes, name), "bound": stated.get(name)}
            for name in ("d_model", "d_inner", "d_state", "layers")
        ],
        "bounds": _bounds(manifest),
        "obstructions": manifest.obstructions,
        "tested": _tested(manifest),
        "circuit": [_line(v, variables) for v in variables],
    }


def _stepping(compiled: Compiled) -> dict[str, Any]:
    """What the page steps through, or the sentence that says why it does not."""
    try:
        return model_data(compiled)
    except ValueError as reason:
        return {"still": f"This model cannot be stepped through here: {reason}. construct plot draws its runs."}


def _stated(manifest: Manifest) -> dict[str, int]:
    """Sizes that a paper states; earlier versions recorded bounds of their own as well."""
    return {} if is_told_no_more(manifest.bound_source) else manifest.bound


def _bounds(manifest: Manifest) -> dict[str, str] | None:
    """The head of the column of bounds, and where they come from; None where there is none."""
    if not _stated(manifest):
        return None
    return {"head": whose(manifest.bound_source), "source": manifest.bound_source or ""}


def _answers(manifest: Manifest) -> str:
    if manifest.guarantee is not None:
        tested = None if manifest.verification is None else vars(manifest.verification)
        return f"Answers right: {right_answers(vars(manifest.guarantee), tested)}."
    if manifest.answers is None and manifest.task is not None:
        return "Its construction.json states a task: the proof below says what is known of it."
    if manifest.answers is None:
        return "Nobody has said what it should answer."
    said = manifest.answers.says or f"{manifest.answers.function}."
    return f"Its author has said what it should answer: {said}"


def _inputs(compiled: Compiled, manifest: Manifest) -> str:
    promise, alphabet = manifest.promise, compiled.source.alphabet
    if not is_own(vars(manifest)) or alphabet is None:
        return f"{promise.description}; {length_said(promise.length)}, in {promise.dtype}"
    said = language_said({"language": promise.language, "length": promise.length}, alphabet.tokens)
    return own_domain(said, promise.dtype, promise.description)


def _tested(manifest: Manifest) -> list[str]:
    found, asked = manifest.verification, manifest.answers
    if found is None:
        compared = "It was compared with its circuit on short sequences and random ones when it was compiled."
        if asked is None:
            return [compared]
        return [
            compared,
            f"{_RECORDED} its author's {counted(asked.questions, 'answer')} in "
            f"{counted(asked.sequences, 'sequence')}, all right.",
        ]
    right = "" if found.accuracy is None else f", {at_least(100 * found.accuracy, 6)} % of them answered right"
    return [
        f"{_RECORDED} {counted(found.sequences, 'sequence')} with {counted(found.queries, 'question')}{right}; "
        f"{found.exact_sequences:,} bit-exact."
    ]


def _line(variable: Variable, variables: Variables) -> dict[str, Any]:
    stream = variable.stream
    reads = [_said(variables.of_stream[s]) for s in stream.inputs]
    return {
        "name": _said(variable),
        "label": stream.label,
        "source": stream.origin,
        "reads": reads,
        "type": str(stream.type),
    }


def _said(variable: Variable) -> str:
    """What its author calls it."""
    return variable.called or variable.name


def _variable(variable: Variable, compiled: Compiled) -> dict[str, Any] | None:
    reading = variable.reading
    if reading is None or not reading.whole:
        return None
    decoder = Decoder(variable.stream, variable.name, compiled.source.alphabet)
    lags = {}
    for lag, matrix in reading.parts.items():
        coo = matrix.tocoo()
        lags[str(lag)] = [list(e) for e in zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True)]
    words = decoder.words
    pairs = None if words is None else [[n, w.tolist()] for n, w in zip(decoder.names, words, strict=True)]
    named = bool(variable.stream.name or variable.called)
    source = variable.stream.origin
    return {
        "name": variable.name, "said": _said(variable), "width": variable.width, "lags": lags, "alternatives": pairs,
        "named": named, "source": source, "after": reading.after,
    }  # fmt: skip


def _curved(block: SelectiveBlock) -> bool:
    channels = block.channels
    real = block.features.real or channels.real_gates or channels.real_steps or channels.curved_gates
    return bool(real) or block.columns.step is not None or any(decay.fades for decay in channels.decay)


def _block(block: SelectiveBlock) -> dict[str, Any]:
    features, channels, columns = block.features, block.channels, block.columns
    rate = rates(channels.decay)[:, None]
    if block.foreign is not None:
        rate = np.where(block.foreign, FORGET.rate, rate)
    return {
        "features": list(features.names), "rows": _rows(features.rows), "taps": features.taps.tolist(),
        "bias": features.bias.tolist(), "channels": list(channels.names), "feature": channels.feature.tolist(),
        "said": [c.said for c in channels.coordinates], "why": [c.gadget for c in channels.coordinates],
        "columns": list(columns.names), "write": _rows(columns.write), "read": _rows(columns.read),
        "deltaFeatures": _rows(channels.delta_features), "deltaLanes": _rows(channels.delta_lanes),
        "deltaBias": channels.delta_bias.tolist(), "rate": rate.tolist(), "skip": channels.skip.tolist(),
        "gate": _rows(channels.gate), "out": _rows(channels.out),
    }  # fmt: skip


def _rows(matrix: sparse.csr_array) -> list[list[float]]:
    """Each row as [column, weight, column, weight, …]."""
    found = []
    for i in range(matrix.shape[0]):
        span = slice(matrix.indptr[i], matrix.indptr[i + 1])
        pairs = zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
        found.append([part for pair in pairs for part in pair])
    return found
