"""Package: blocks of the IR as modules that run.

Two forms. *Bare*: embedding, blocks, head and nothing else, at the sizes the papers state;
one block needs no residual. *Language model*: what Hugging Face builds from a config,
RMSNorm before every block and residual around it, with all blocks padded to one size.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import frexp, prod

import numpy as np
import torch
from scipy import sparse

from compiler.analysis.affine_form import ONE
from compiler.artifact.files import tensor_shapes
from compiler.artifact.free_memory import free_bytes, too_large
from compiler.artifact.model import Stack
from compiler.artifact.model_layout import bare_layout, language_model_layout
from compiler.artifact.read_back import check_around_blocks, check_table
from compiler.artifact.tokenizer import with_special_tokens
from compiler.compiled import Compiled
from compiler.errors import CompileError
from compiler.exactness.ballast import Ballast, choose_ballast, holds_quotients, with_margin
from compiler.exactness.sums import finest_lane, largest_step
from compiler.formats import FLOAT32, Format
from compiler.language.arguments import instance
from compiler.layout import Layout
from compiler.lowering.builder import BlockBuilder
from compiler.targets import family_of, target_of
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, Family, mixer_prefix, norm_name
from compiler.targets.sizes import Sizes
from compiler.targets.target import Target
from compiler.targets.tensors import exact_float32

_AT_ONCE = 1 << 18  # numbers that the cache holds
LARGEST_MODEL = 1 << 33  # parameters: 32 GiB in float32


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A Hugging Face checkpoint in memory: config.json, tensors by their names, token names, and what the norms carry.

    special_score: what every special token scores everywhere, below any score that a letter can have.
    letters: size of the circuit's own alphabet; the special tokens come after it.
    layout: what stands where in the tensors.
    """

    config: dict
    tensors: dict[str, torch.Tensor]
    tokens: list[str]
    lane_of: np.ndarray
    ballast: Ballast
    special_score: float
    letters: int
    layout: Layout

    def over_vocabulary(self, scores: np.ndarray) -> np.ndarray:
        """The scores of the whole vocabulary, special tokens included, where the circuit gives these: (…, vocabulary).

        They keep their dtype where it holds the score of a special token.
        """
        dtype = scores.dtype if scores.dtype.type(self.special_score) == self.special_score else np.float64
        whole = np.zeros((*scores.shape[:-1], len(self.tokens)), dtype)
        whole[..., : scores.shape[-1]] = scores
        whole[..., self.letters :] = self.special_score
        return whole


# Bare ---------------------------------------------------------------------------------------------


def bare_sizes(compiled: Compiled, mixer: str | None = None) -> list[Sizes]:
    """The least sizes of each block, without padding: what bounds are about."""
    lane_in, lane_out, d_model = _bare_lanes(compiled)
    printer = _printer(compiled, mixer)
    return [printer.sizes(block, d_model) for block in compiled.blocks]


def size_fields(size: Sizes) -> dict[str, int]:
    """Sizes by name."""
    return asdict(size)


def bare(compiled: Compiled, mixer: str | None = None) -> Stack:
    """The circuit as embedding, real blocks and head (tokens → logits).

    mixer: "mamba", "mamba2" or, for circuits compiled for s4d, also "s4d" (our S4DMixer);
    the target's own module by default.
    """
    instance(compiled, Compiled, "what bare packages", "what compile(circuit, target) returns")
    lane_in, lane_out, d_model = _bare_lanes(compiled)
    printer = _printer(compiled, mixer)
    sizes = packaged_sizes(compiled, mixer)
    d_model = max((s.d_model for s in sizes), default=d_model)
    embedding = torch.from_numpy(_columns(compiled.lanes.embedding, lane_in, d_model, "embedding"))
    head = torch.from_numpy(_columns(compiled.head, lane_out, d_model, "head"))
    check_table("the embedding", embedding.numpy(), compiled.lanes.embedding, lane_in)
    check_table("the head", head.numpy(), compiled.head, lane_out)
    emitted = [
        printer.printed(block, size, lane_in if i == 0 else lane_out, lane_out)
        for i, (block, size) in enumerate(zip(compiled.blocks, sizes, strict=True))
    ]
    tensors = [emission.tensors for emission in emitted]
    for i, state in enumerate(tensors, start=1):
        named = {f"block {i}: {name}": tensor for name, tensor in state.items()}
        _check_representable(named, compiled.context.format)
    modules = [printer.module(size, i) for i, size in enumerate(sizes)]
    stack = Stack.without_norms(embedding, modules, tensors, head, needs_residual(compiled))
    stack.layout = bare_layout(compiled, emitted, d_model, lane_in, lane_out)
    return stack


def needs_residual(compiled: Compiled) -> bool:
    """Whether a lane must outlive a block: several blocks, or a head that reads what the embedding wrote."""
    read = compiled.head.indices if compiled.head.nnz else np.zeros(0)
    return len(compiled.blocks) != 1 or bool((read < compiled.lanes.n_inputs).any())


def _bare_lanes(compiled: Compiled) -> tuple[np.ndarray, np.ndarray, int]:
    """(coordinate of each lane before a block, after it, d_model); one block without residual reuses coordinates."""
    count, inputs = compiled.lanes.count, compiled.lanes.n_inputs
    if needs_residual(compiled):
        return np.arange(count), np.arange(count), count
    lane_in, lane_out = np.full(count, -1), np.full(count, -1)
    lane_in[:inputs] = np.arange(inputs)
    lane_out[inputs:] = np.arange(count - inputs)
    return lane_in, lane_out, max(inputs, count - inputs)


def _printer(compiled: Compiled, mixer: str | None) -> Target:
    """The target whose modules hold the blocks: the usual one, or the named one."""
    target = compiled.context.target
    names = target.printed_by or (target.name,)
    if mixer is not None and mixer not in names:
        raise ValueError(f"mixer {mixer!r} cannot hold a circuit compiled for {target.name}; compile it for {mixer}")
    name = mixer or names[0]
    return target if name == target.name else target_of(name)


def packaged_sizes(compiled: Compiled, mixer: str | None = None) -> list[Sizes]:
    """The sizes of the modules of the bare stack, as small as their classes can have them."""
    printer = _printer(compiled, mixer)
    pairs = zip(bare_sizes(compiled, mixer), compiled.blocks, strict=True)
    return [printer.packaged(size, block) for size, block in pairs]


def _columns(matrix: sparse.csr_array, column_of: np.ndarray, width: int, name: str, rows: int = 0) -> np.ndarray:
    """The dense (rows × width) float32 array with column j of the matrix at column_of[j].

    Lanes without a place must be empty. rows: of zeros, to this many, where the matrix has fewer.

    CompileError where a weight is no float32: asked before the cast, for after it nothing shows.
    """
    coo = matrix.tocoo()
    at = column_of[coo.col]
    dense = np.zeros((max(rows, matrix.shape[0]), width), dtype=np.float32)
    weights = coo.data[at >= 0]
    dense[coo.row[at >= 0], at[at >= 0]] = exact_float32(weights, name).numpy()
    return dense


# Language model -------------------------------------------------------------------------------------


def language_model(compiled: Compiled, most: int | None = None) -> LanguageModel:
    """What a Hugging Face checkpoint of the circuit holds, exact under the RMSNorms of Mamba or Mamba-2.

    most: parameters that it may have, where that is less than what any machine holds; CompileError beyond.

    It is a record, no module: its `config`, `tensors` by name and `tokens` are those of the files that `save` writes,
    and what `load` then returns runs.

    Its vocabulary is the alphabet and then the special tokens. Their embedding rows are those of an absent
    token; their head rows read a constant, the last ballast lane, so that they score below every letter.
    """
    instance(compiled, Compiled, "what language_model packages", "what compile(circuit, target) returns")
    if compiled.source.alphabet is None:
        raise CompileError(
            [
                (
                    None,
                    (
                        "a circuit over numbers has no vocabulary, so there is no language model of it; "
                        "`numeric.numeric_stack` runs it"
                    ),
                )
            ]
        )
    if compiled.source.output.width > compiled.source.alphabet.size:
        reason = (
            f"it gives {compiled.source.output.width} numbers, and the alphabet has "
            f"{compiled.source.alphabet.size} tokens to score; "
            "read it out with output.readout… or package it with bare()"
        )
        raise CompileError([(compiled.source.output, reason)])
    family = compiled.context.target.family
    if family is None:
        name = compiled.context.target.name
        reason = (
            f"no library ships {name}, so there is no language model of it; the bare stack (`package.bare`) runs it"
        )
        raise CompileError([(None, reason)])
    compiled = with_a_block(compiled)
    alphabet, tokens = compiled.source.token_alphabet, _tokens(compiled)
    bounds, format = compiled.lane_bounds(), compiled.context.format
    special = _special_score(compiled, bounds)
    blocks = compiled.blocks
    size = family.size(blocks, compiled.lanes.count)
    config = _config(compiled, family, size, bounds)
    _check_size(config, LARGEST_MODEL if most is None else min(most, LARGEST_MODEL))
    groups = compiled.context.target.n_groups  # whoever bounds what each of them adds by itself gets so many times ours
    ballast = _norm_ballast(compiled, choose_ballast(size.d_model, groups * bounds, format), size.d_model)
    one = int(compiled.lanes.index[ONE][0])
    lane_of = np.arange(compiled.lanes.count)
    tensors = {
        EMBEDDING: _embedding(compiled, size.d_model, len(tokens), ballast),
        FINAL_NORM: _norm_weight(size.d_model, lane_of, ballast),
        HEAD: _head(compiled, lane_of, size.d_model, len(tokens), special),
    }
    tensors[FINAL_NORM][-1] = 1 / ballast.factors[-1]  # K divides a·K; what the special rows read is 1
    emitted = []
    for i, block in enumerate(blocks):
        prefix = mixer_prefix(i)
        tensors[norm_name(i)] = _norm_weight(size.d_model, lane_of, ballast)
        emitted.append(family.mixer(target_of(family.printer), block, size, one, bounds, format))
        for name, tensor in emitted[-1].tensors.items():
            tensors[f"{prefix}{name}"] = tensor
    check_around_blocks(compiled, tensors, special, len(ballast.factors))
    layout = language_model_layout(compiled, emitted, size.d_model, tokens, len(ballast.factors))
    tensors, layout = family.in_library(config, tensors, layout)
    _check_representable(tensors, format)
    return LanguageModel(config, tensors, tokens, lane_of, ballast, special, alphabet.size, layout)


def parameters_of(compiled: Compiled) -> int:
    """How many parameters the language model of a circuit over tokens has, none of which is made."""
    family, compiled = compiled.context.target.family, with_a_block(compiled)
    assert family is not None, "a mixer that some library ships"
    size = family.size(compiled.blocks, compiled.lanes.count)
    return _parameters(_config(compiled, family, size, compiled.lane_bounds()))


def _tokens(compiled: Compiled) -> list[str]:
    """The vocabulary: the alphabet, then the special tokens."""
    return with_special_tokens(list(compiled.source.token_alphabet.tokens), compiled.source.end)


def _config(compiled: Compiled, family: Family, size: Sizes, bounds: np.ndarray) -> dict:
    """What config.json says; bounds: of the lanes."""
    alphabet, end = compiled.source.token_alphabet, compiled.source.end
    ends_with = None if end is None else alphabet.index(end)
    step = max(largest_step(block, bounds) for block in compiled.blocks)
    config = family.config(size, len(_tokens(compiled)), len(compiled.blocks), ends_with, step)
    return config | {"dtype": compiled.dtype}


def _parameters(config: dict) -> int:
    return sum(prod(shape) for shape in tensor_shapes(config).values())


def with_a_block(compiled: Compiled) -> Compiled:
    """The same circuit with one idle block where it needs none: every language model has a layer.

    A function of the present token alone is a linear map of its embedding. The idle block has no channel, so it adds 0.
    """
    if compiled.blocks:
        return compiled
    idle = BlockBuilder(compiled.lanes, compiled.context).build()
    idle.verify()
    return replace(compiled, blocks=(idle,), schedule=replace(compiled.schedule, blocks=[[]]))


def _norm_ballast(compiled: Compiled, least: Ballast, width: int) -> Ballast:
    """The ballast with a margin; CompileError where a lane over K, which the norm forms, would be flushed to 0."""
    format = compiled.context.format
    stream, unit = finest_lane(compiled.lanes, compiled.domains)
    if not holds_quotients(unit, least.level, format):
        finest = least.level * format.smallest
        reason = (
            f"it holds multiples of {float(unit):g}, and beside the norm's ballast of K = {least.level:g} "
            f"{format.name} keeps multiples of {finest:g} or more; scale it up, or declare smaller bounds for what "
            "else is held"
        )
        raise CompileError([(stream, reason)])
    return with_margin(least, width, unit, format)


def _check_size(config: dict, most: int) -> None:
    """Raise CompileError, before any tensor is made, where there are more parameters than this."""
    parameters = _parameters(config)
    if parameters > most:
        told = family_of(config["model_type"]).told_sizes(config)
        sizes = f"d_model {told['d_model']}, d_state {told['d_state']}, {config['vocab_size']} tokens"
        reason = f"the language model would have {parameters:,} parameters ({sizes}), and at most {most:,} are built"
        raise CompileError([(None, f"{reason}; choose smaller sizes, or package it with bare()")])
    beyond = too_large(parameters, free_bytes())
    if beyond is not None:
        raise CompileError([(None, beyond)])


def _special_score(compiled: Compiled, bounds: np.ndarray) -> float:
    """The negative of the least power of two above every |score| of a letter, by the bounds of the lanes."""
    format = compiled.context.format
    reach = float((abs(compiled.head) @ bounds).max(initial=0.0))
    score = 2.0 ** frexp(max(reach, 0.5) * (1 + 2.0**-40))[1]  # the factor covers the rounding of the bound itself
    if score > format.largest:
        fix = "scale the scores down" if format is FLOAT32 else "use float32"
        reason = f"its scores can reach {reach:g}, and special tokens must score below them in {format.name}; {fix}"
        raise CompileError([(compiled.source.output, reason)])
    return -score


def _head(compiled: Compiled, lane_of: np.ndarray, d_model: int, vocab: int, special: float) -> torch.Tensor:
    rows = _columns(compiled.head, lane_of, d_model, "lm_head", vocab)
    rows[compiled.source.token_alphabet.size :, d_model - 1] = special  # a power of two
    return torch.from_numpy(rows)


def _check_representable(tensors: dict[str, torch.Tensor], format: Format) -> None:
    """Every weight must be the same number in the dtype that the promise is made for, and on units that flush
    subnormal numbers to 0.
    """
    for name, tensor in tensors.items():
        flat = tensor.reshape(-1).numpy()
        for start in range(0, len(flat), _AT_ONCE):
            piece = flat[start : start + _AT_ONCE]
            weights = piece[piece != 0].astype(np.float64)
            bad = weights[~format.holds(weights)]
            if bad.size:
                remedy = (
                    f"{bad[0]:g} is out of the range that every backend keeps" if format is FLOAT32 else "use float32"
                )
                reason = f"{name} has a weight that {format.name} does not hold exactly; {remedy}"
                raise CompileError([(None, reason)])


def _embedding(compiled: Compiled, d_model: int, vocab: int, ballast: Ballast) -> torch.Tensor:
    table = _columns(compiled.lanes.embedding, np.arange(compiled.lanes.count), d_model, "embeddings", vocab)
    table[:, d_model - len(ballast.factors) :] = np.array(ballast.factors, dtype=np.float32) * ballast.level
    return torch.from_numpy(table)


def _norm_weight(width: int, data: np.ndarray, ballast: Ballast) -> torch.Tensor:
    """K on the data, 0 elsewhere: the norm divides by K exactly."""
    weight = torch.zeros(width)
    weight[torch.from_numpy(np.asarray(data))] = ballast.level
    return weight
