"""`branch(host, circuit, tokens)`: a frozen circuit beside a language model of any class; what it writes is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from compiler.artifact.package import LanguageModel, language_model
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.graft.arguments import check_token_map, ids_of, source_of
from compiler.graft.errors import GraftError
from compiler.graft.grafted import GUEST
from compiler.graft.special import check_special
from compiler.graft.union import union
from compiler.language.arguments import integer, shown
from compiler.language.circuit import Circuit

if TYPE_CHECKING:
    from compiler.graft.branch_model import CircuitBranchForCausalLM, Reader

Where = Literal["embeddings", "logits", "both"]
TARGETS = ("mamba", "mamba2", "gated-deltanet", "gated-deltanet-qwen")  # transformers has a class for these
_READER = "for any other module use `reader(circuit, tokens, vocab)` in its forward"


def branch(
    host: Any,
    circuit: Circuit | Compiled,
    tokens: Mapping[str, int | Sequence[int]],
    where: Where = "embeddings",
    strength: float = 0.0,
    target: str = "mamba",
) -> CircuitBranchForCausalLM:
    """A host with a circuit beside it; with strength 0 its logits are the host's, bit for bit, until it is trained.

    host: a causal language model of transformers, which is used as it is. tokens: for each letter the token of the host
    that it is, or several. where: what the answers are added to; strength: what the token of an answer (the first, for
    several) gets on its logit from the start. target: the mixers of the circuit: "mamba", "mamba2",
    "gated-deltanet" or "gated-deltanet-qwen".

    Raises GraftError for a host or a map that cannot be, TypeError for what is no circuit, CompileError where the
    circuit cannot be exact among tokens that are none of its letters.
    """
    from transformers import GenerationMixin, PreTrainedModel

    from compiler.graft.branch_model import CircuitBranchConfig, CircuitBranchForCausalLM

    causal = isinstance(host, PreTrainedModel) and isinstance(host, GenerationMixin)
    if not causal or host.get_output_embeddings() is None:
        raise GraftError(
            f"the host is {type(host).__name__}, and a side branch needs a causal language model of transformers; "
            f"{_READER}."
        )
    if where not in get_args(Where):
        raise GraftError(f"where is {shown(where)}, and it is one of {', '.join(get_args(Where))}.")
    if type(strength) not in (int, float) or not math.isfinite(strength):
        raise GraftError(f"strength is {shown(strength)}, and a finite number is needed.")
    if strength and where == "embeddings":
        raise GraftError(f"strength is {strength}, and it is for logits; choose where='logits' or where='both'.")
    table: Any = host.get_input_embeddings().weight
    vocab = table.shape[0]
    model, symbols, compiled = _circuit(circuit, tokens, vocab, target)
    check_special(host, source_of(circuit), tokens)
    _check_host(host)
    told = _settings(host.config)
    letters = compiled.source.token_alphabet.size - 1
    config = CircuitBranchConfig(host=told, circuit=_settings_of(model), letters=letters, where=where)
    with torch.device("meta"):
        result = CircuitBranchForCausalLM(config)
    if type(result.host) is not type(host):
        raise GraftError(
            f"the host is {type(host).__name__}, and a saved side branch would be opened beside a "
            f"{type(result.host).__name__}; {_READER}."
        )
    result.host = host
    _fill(result.reader, model)
    result.reader.symbols = symbols
    first = next(host.parameters())
    result.write = _parameter(letters, table.shape[1], first, where != "logits")
    result.say = _parameter(letters, config.vocab_size, first, where != "embeddings")
    with torch.no_grad():
        for letter, places in tokens.items():
            result.say[compiled.source.token_alphabet.index(letter), ids_of(places)[0]] = strength
    result.generation_config = host.generation_config
    result.config.dtype = first.dtype
    for key in ("eos_token_id", "bos_token_id", "pad_token_id"):
        setattr(result.config, key, getattr(host.config, key, None))
    return result.train(host.training)


def reader(
    circuit: Circuit | Compiled, tokens: Mapping[str, int | Sequence[int]], vocab: int, target: str = "mamba"
) -> Reader:
    """The frozen circuit as a module of its own, for the forward of any other: ids (batch, time) to one-hot answers
    (batch, time, letters).

    vocab: how many tokens the host has. With a cache (`DynamicCache()` whose layers are `reader.new_layers()`), several
    calls are one sequence.
    """
    from compiler.graft.branch_model import Reader

    integer(vocab, "vocab", 1)
    model, symbols, compiled = _circuit(circuit, tokens, vocab, target)
    with torch.device("meta"):
        result = Reader(_settings_of(model), vocab, compiled.source.token_alphabet.size - 1)
    _fill(result, model)
    result.symbols = symbols
    return result.eval()


def _fill(reader: Reader, model: LanguageModel) -> None:
    """Give a reader that was made without values those of the circuit."""
    from compiler.graft.branch_model import frozen_model

    reader.circuit = frozen_model(_settings_of(model))  # made anew: its class may keep buffers that it does not save
    reader.circuit.load_state_dict(model.tensors, assign=True)


def _check_host(host: Any) -> None:
    """GraftError for a model that keeps its past in another way than a side branch can share."""
    names = signature(host.forward).parameters
    if host.config.is_encoder_decoder:
        raise GraftError(f"the host is {type(host).__name__}, which has an encoder; a side branch reads one text.")
    if not {"past_key_values", "cache_params"} & set(names) or not type(host)._supports_default_dynamic_cache():
        raise GraftError(
            f"the host is {type(host).__name__}, whose state is in no DynamicCache, which the circuit would share; "
            f"{_READER}."
        )


def _circuit(
    circuit: Circuit | Compiled, tokens: Mapping[str, int | Sequence[int]], vocab: int, target: str
) -> tuple[LanguageModel, torch.Tensor, Compiled]:
    """(the circuit's language model, the letter of each token of the host, the compiled circuit with its guest)."""
    circuit = source_of(circuit)
    check_token_map(tokens)
    if target not in TARGETS:
        raise GraftError(f"target is {shown(target)}, and a side branch has mixers of {' or '.join(TARGETS)}.")
    compiled = compile(union(circuit, name=circuit.name, guest=GUEST), target)
    alphabet = compiled.source.token_alphabet
    symbols = torch.full((vocab,), alphabet.size - 1)
    if not tokens:
        raise GraftError("the token map is empty, and a side branch reads tokens of the host; map at least one letter.")
    for letter, places in tokens.items():
        if letter not in circuit.token_alphabet.tokens:
            raise GraftError(f"the token map has {letter!r}, which is no letter of the circuit.")
        ids = ids_of(places)
        if not ids:
            raise GraftError(f"the token map leads {letter!r} to no token at all; give an id or leave it out.")
        for place in ids:
            if type(place) is not int or not 0 <= place < vocab:
                raise GraftError(f"the token map leads {letter!r} to {place!r}, and the host has ids 0 to {vocab - 1}.")
            if symbols[place] != alphabet.size - 1:
                other = alphabet.tokens[int(symbols[place])]
                if other == letter:
                    raise GraftError(f"the token map leads {letter!r} to {place} twice; give each id once.")
                raise GraftError(
                    f"the token map leads {other!r} and {letter!r} both to {place}; a token is one letter."
                )
            symbols[place] = alphabet.index(letter)
    return language_model(compiled), symbols, compiled


def _settings(config: Any) -> dict[str, Any]:
    """A configuration as plain JSON values."""
    told = config.to_dict()
    for key in ("dtype", "torch_dtype", "transformers_version", "architectures", "_name_or_path"):
        told.pop(key, None)
    if "time_step_limit" in told:
        told["time_step_limit"] = [min(float(v), 1e30) for v in told["time_step_limit"]]
    return told | {"model_type": config.model_type}


def _settings_of(model: LanguageModel) -> dict[str, Any]:
    return {k: v for k, v in model.config.items() if k not in ("architectures", "dtype")}


def _parameter(rows: int, columns: int, like: torch.Tensor, trained: bool) -> torch.nn.Parameter:
    zeros = torch.zeros(rows, columns, dtype=like.dtype, device=like.device)
    return torch.nn.Parameter(zeros, requires_grad=trained)
