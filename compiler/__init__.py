"""Compile circuits of state-space models to exact weights of real Mamba modules.

    from compiler import Alphabet, Circuit, InputLanguage, Tokens, bare, compile, memory, readout_one_hot

    letters = Alphabet.of("a", "b", "c")
    x = Tokens(letters).one_hot()
    follower = memory.write(key=x.shift(1), value=x, policy="last").read(x)
    circuit = Circuit("induction", readout_one_hot(follower, letters), InputLanguage.everything(letters, 1000))
    model = bare(compile(circuit, "mamba"))      # an embedding, one mamba_ssm.Mamba, a head

The letters of the field, used everywhere with one meaning:

    batch, time        sizes of a batch of sequences; t the present position, s an earlier one
    vocab, kappa       numbers of values and keys of a recall task
    d_model            width of the residual stream; its coordinates are called lanes
    d_inner            channels of a block: x̂ = silu(conv(in_proj(lanes)))
    d_state (N)        columns of the state h, each with its B (write) and C (read)
    d_conv             taps of the convolution: a channel reads d_conv − 1 positions back
    dt_rank            rank of the map from x̂ to the steps Δ
    A, B, C, D, Δ, z   h ← exp(ΔA)·h + Δ·B·x̂;  y = C·h + D·x̂;  out = out_proj(y · silu(z))
    head               the last linear map, or (Mamba-2) channels that share Δ, A and D
"""

from typing import TYPE_CHECKING

from compiler.artifact.errors import CheckpointError
from compiler.automata.word import automaton
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import Codebook, balanced, bits, random_balanced, signs
from compiler.language.input_language import Edge, InputLanguage
from compiler.language.logic import all_of, any_of, argmax, hardmax
from compiler.language.output import decide, emit, readout, readout_integer, readout_nearest, readout_one_hot
from compiler.language.reals import choose, differs, exceeds
from compiler.language.rounded import rounded
from compiler.language.source import Tokens, numbers, position
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool, Code, Int, Logits, OneHot, Real
from compiler.language.words import (
    concatenate,
    count,
    decode,
    dot,
    fading_sum,
    latch,
    latch_bank,
    lti,
    maximum,
    minimum,
    permute,
    present,
    running_max,
    scaled_sum,
    select,
    silu_product,
    sum_where,
)
from compiler.lazy import lazy_names

if TYPE_CHECKING:
    from compiler.artifact.generate import generate
    from compiler.artifact.load import load
    from compiler.artifact.package import bare, language_model
    from compiler.artifact.save import save
    from compiler.compiled import Compiled
    from compiler.driver import compile

# What needs torch or the passes is imported when it is first used.
lazy_names(
    __name__,
    {
        "Compiled": "compiler.compiled",
        "bare": "compiler.artifact.package",
        "compile": "compiler.driver",
        "generate": "compiler.artifact.generate",
        "language_model": "compiler.artifact.package",
        "load": "compiler.artifact.load",
        "save": "compiler.artifact.save",
    },
)

__all__ = [
    "Alphabet", "Bool", "CheckpointError", "Circuit", "Code", "Codebook", "CompileError", "Compiled", "Edge",
    "InputLanguage", "Int", "Logits", "OneHot", "Real", "Stream", "Tokens", "all_of", "any_of", "argmax", "automaton",
    "balanced",
    "choose", "differs", "exceeds", "fading_sum", "silu_product",
    "bare", "bits", "compile", "concatenate", "constant", "count", "decide", "decode", "dot", "emit", "generate",
    "hardmax", "interpret",
    "language_model", "latch", "latch_bank", "load", "lti", "maximum", "memory", "minimum", "numbers", "permute",
    "position",
    "present", "random_balanced", "readout", "readout_integer", "readout_nearest", "readout_one_hot", "rounded",
    "running_max",
    "save", "scaled_sum", "select", "signs", "sum_where",
]  # fmt: skip
