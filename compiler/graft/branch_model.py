"""A language model with a frozen circuit beside it: what a saved side branch is loaded by.

This file imports torch and transformers only. `save_pretrained` copies it into the directory, so that
`AutoModelForCausalLM.from_pretrained(DIR, trust_remote_code=True)` opens it where this project is not installed.

The circuit reads token ids (`symbols`: the letter of each token of the host, the guest for those that are none), in
float32 and without gradients. Its answer is the letter that leads, as a one-hot row: zeros where none leads and after
the guest. What the answer changes is trainable: `write` (letters × d_model) is added to the host's input embeddings,
`say` (letters × vocabulary) to its logits. One cache holds the states of both: the circuit's layers stand behind the
host's. With a cache the circuit reads token by token, so that a prompt in several pieces is right as well, also where
padding goes on into the second piece. The circuit stays in float32: `.half()`, `.to(dtype)` and autocast pass it by.
"""

import inspect
from contextlib import contextmanager

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    DynamicCache,
    GenerationMixin,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import CausalLMOutputWithPast

_MARK = "holds_a_circuit"  # on a cache that has layers for the circuit


class CircuitBranchConfig(PreTrainedConfig):
    """host, circuit: the configurations of both as dicts. letters: how many the circuit answers with; the guest is
    letter number `letters`. where: "embeddings", "logits" or "both".
    """

    model_type = "circuit_branch"
    has_no_defaults_at_init = True

    def __init__(self, host=None, circuit=None, letters=0, where="embeddings", use_cache=True, **kwargs):
        self.use_cache = use_cache
        self.host, self.circuit, self.letters, self.where = host or {}, circuit or {}, letters, where
        if host:
            told = _config(host).get_text_config(decoder=True)
            self.vocab_size, self.hidden_size = told.vocab_size, told.hidden_size
            self.num_hidden_layers = told.num_hidden_layers + self.circuit.get("num_hidden_layers", 0)
        super().__init__(**({"tie_word_embeddings": False} | kwargs))


def _config(told):
    arguments = dict(told)
    return AutoConfig.for_model(arguments.pop("model_type"), **arguments)


def _model(told):
    return AutoModelForCausalLM.from_config(_config(told))


def frozen_model(told):
    """A model of this configuration, its parameters as buffers: saved and moved like them, and seen by no optimiser."""
    model = _model(told)
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.data)
    return model


class Reader(nn.Module):
    """The frozen circuit: token ids of the host (batch, time) to answers (batch, time, letters)."""

    symbols: torch.Tensor

    def __init__(self, config, vocab, letters, first_layer=0):
        super().__init__()
        self.letters = letters
        self.circuit = frozen_model(config)
        self.first_layer = first_layer
        self.register_buffer("symbols", torch.full((vocab,), letters))

    def new_layers(self):
        """Empty states of the circuit's layers, for a cache."""
        return DynamicCache(config=self.circuit.config).layers

    def _apply(self, fn, recurse=True):
        """Moved between devices as any module is, but never to another dtype: exact weights would be rounded."""

        def moved(tensor):
            there = fn(tensor)
            return there if there.dtype == tensor.dtype else tensor.to(there.device)

        return super()._apply(moved, recurse)

    @torch.no_grad()
    def forward(self, ids, mask=None, cache=None):
        """mask: (batch, time), 0 where padding stands; cache: one whose layers from `first_layer` on are the circuit's,
        which is written to.
        """
        symbols, length = self.symbols[ids], ids.shape[1]
        cache = self._own(cache)
        with torch.autocast(ids.device.type, enabled=False):
            if cache is None or (self._is_empty(cache) and length > 1):
                scores = self._scores(symbols, mask, cache)
            else:
                parts = (slice(t, t + 1) for t in range(length))
                steps = (self._step(symbols[:, t], None if mask is None else mask[:, t], cache) for t in parts)
                scores = torch.cat(list(steps), dim=1)
        scores = scores[..., : self.letters].float()
        best, answer = scores.max(-1)
        alone = (scores == best[..., None]).sum(-1) == 1
        clear = alone & (symbols < self.letters)
        return nn.functional.one_hot(answer, self.letters).float() * clear[..., None]

    def _own(self, cache):
        """The circuit's layers of a shared cache as a cache of their own, so that its positions are not the host's."""
        if cache is None:
            return None
        own = DynamicCache(config=self.circuit.config)
        own.layers = cache.layers[self.first_layer :]
        return own

    def _scores(self, symbols, mask, cache):
        told = {"cache_params" if hasattr(self.circuit, "backbone") else "past_key_values": cache}  # Mamba's, or other
        return self.circuit(symbols, attention_mask=mask, use_cache=cache is not None, **told).logits

    def _step(self, symbol, mask, cache):
        """One token, which leaves the states of a row as they were where it is padding: transformers reads it there."""
        if mask is None:
            return self._scores(symbol, None, cache)
        empty = self._is_empty(cache)
        before = [state.clone() for state in self._states(cache)]
        scores = self._scores(symbol, None, cache)
        for i, state in enumerate(self._states(cache)):
            read = (mask != 0).view(-1, *[1] * (state.dim() - 1))
            state.copy_(torch.where(read, state, 0 if empty else before[i]))
        return scores

    def _states(self, cache):
        """The tensors that the circuit's mixers have in the cache; none before the first token. Keys and values of a
        layer of attention are none of them, for what is read of those is multiplied by 0.
        """
        layers = [layer for layer in cache.layers if hasattr(layer, "recurrent_states")]
        held = [
            state
            for layer in layers
            for states in (layer.conv_states, layer.recurrent_states)
            for state in states.values()
        ]
        return [state for state in held if state is not None]

    def _is_empty(self, cache):
        return not cache.has_previous_state(0)


def _holds_something(layer):
    """Whether a layer of a cache has read a token."""
    states = getattr(layer, "has_previous_state", {})
    return any(states.values()) or (hasattr(layer, "get_seq_length") and bool(layer.get_seq_length()))


class CircuitBranchForCausalLM(PreTrainedModel, GenerationMixin):
    """A host of any class that `AutoModelForCausalLM` knows, with a circuit beside it."""

    config_class = CircuitBranchConfig
    base_model_prefix = "host"
    main_input_name = "input_ids"
    _is_stateful = True
    _keep_in_fp32_modules_strict = ["circuit"]  # exact weights are rounded in narrower formats
    _no_split_modules = ["Reader"]

    def __init__(self, config):
        super().__init__(config)
        self.host = _model(config.host)
        first_layer = len(DynamicCache(config=self.host.config).layers)
        self.reader = Reader(config.circuit, config.vocab_size, config.letters, first_layer)
        self.write = nn.Parameter(torch.zeros(config.letters, self.get_input_embeddings().weight.shape[1]))
        self.say = nn.Parameter(torch.zeros(config.letters, config.vocab_size))
        self.write.requires_grad_(config.where != "logits")
        self.say.requires_grad_(config.where != "embeddings")
        self.post_init()

    def _init_weights(self, module):
        """Nothing: host and circuit come with their weights."""

    @classmethod
    def is_custom_code(cls):
        """No: else transformers leaves out how the host fills the buffers that it does not save."""
        return False

    def resize_token_embeddings(self, new_num_tokens=None, *arguments, **options):
        """Refused, but for the size that it has: the circuit's letters are told by the host's tokens."""
        vocab = len(self.reader.symbols)
        if new_num_tokens not in (None, vocab) or arguments or options.get("pad_to_multiple_of"):
            raise ValueError(
                f"the side branch knows the letters of the host's {vocab} tokens; resize the host alone, and then put "
                "the circuit beside it by compiler.graft.branch"
            )
        return self.get_input_embeddings()

    def get_input_embeddings(self):
        return self.host.get_input_embeddings()

    def get_output_embeddings(self):
        return self.host.get_output_embeddings()

    def new_cache(self):
        """An empty cache for host and circuit."""
        cache = DynamicCache(config=self.host.config)
        cache.layers.extend(self.reader.new_layers())
        vars(cache)[_MARK] = True
        return cache

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        use_cache=None,
        labels=None,
        logits_to_keep=0,
        num_items_in_batch=None,
        **kwargs,
    ):
        """Like the host's, which is called as it would be without the circuit; what is not named here goes to it alone.

        attention_mask: (batch, all tokens so far), 0 at padding on the left.
        """
        if input_ids is None or kwargs.pop("inputs_embeds", None) is not None:
            raise ValueError("a circuit reads token ids; give input_ids, and no inputs_embeds")
        if kwargs.pop("cache_params", None) is not None:
            raise ValueError("the cache of a side branch holds both states; give it as past_key_values")
        cache = self._cache(past_key_values, use_cache)
        length = input_ids.shape[1]
        new = None if attention_mask is None else attention_mask[:, -length:]
        answers = self.reader(input_ids, new, cache).to(self.write.dtype)
        with self._written(answers):
            output = self.host(input_ids=input_ids, **self._told(attention_mask, position_ids, length, cache), **kwargs)
        logits = output.logits
        if self.config.where != "embeddings":
            logits = logits + answers @ self.say
        loss = None
        if labels is not None:
            loss = self.loss_function(
                logits, labels, vocab_size=logits.shape[-1], num_items_in_batch=num_items_in_batch
            )
        if isinstance(logits_to_keep, int) and logits_to_keep:
            logits = logits[:, -logits_to_keep:]
        return CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            hidden_states=getattr(output, "hidden_states", None),
            attentions=getattr(output, "attentions", None),
        )

    @contextmanager
    def _written(self, answers):
        """Within it the host's input embeddings have the answers added to them."""
        if self.config.where == "logits":
            yield
            return
        hook = self.get_input_embeddings().register_forward_hook(lambda _, __, found: found + answers @ self.write)
        try:
            yield
        finally:
            hook.remove()

    def _cache(self, given, use_cache):
        if given is None:
            wanted = self.config.use_cache if use_cache is None else use_cache
            return self.new_cache() if wanted and not self.training else None
        if _MARK in vars(given):
            return given
        if any(_holds_something(layer) for layer in given.layers):
            raise ValueError("the cache holds no state of the circuit; start from model.new_cache() or from None")
        return self.new_cache()

    def _told(self, mask, positions, length, cache):
        """The host's arguments, by the names that it has for them."""
        names = inspect.signature(self.host.forward).parameters
        told = {"use_cache": cache is not None}
        if "cache_params" in names:  # Mamba and its kin: a mask for the new tokens
            return told | {"cache_params": cache, "attention_mask": None if mask is None else mask[:, -length:]}
        told |= {"past_key_values": cache, "attention_mask": mask}
        if positions is not None and "position_ids" in names:
            told["position_ids"] = positions[..., -length:]
        return told

    def prepare_inputs_for_generation(
        self,
        input_ids,
        next_sequence_length=None,
        past_key_values=None,
        attention_mask=None,
        inputs_embeds=None,
        is_first_iteration=False,
        **kwargs,
    ):
        if inputs_embeds is not None:
            raise ValueError("a circuit reads token ids, and inputs_embeds were given")
        if next_sequence_length is not None:
            input_ids = input_ids[:, -next_sequence_length:]
        kept = kwargs.get("logits_to_keep", 0)
        return {
            "input_ids": input_ids.contiguous(),
            "attention_mask": attention_mask,
            "position_ids": kwargs.get("position_ids"),
            "past_key_values": past_key_values,
            "use_cache": kwargs.get("use_cache"),
            "logits_to_keep": kept or 0,
        }


AutoConfig.register("circuit_branch", CircuitBranchConfig, exist_ok=True)
AutoModelForCausalLM.register(CircuitBranchConfig, CircuitBranchForCausalLM, exist_ok=True)
CircuitBranchConfig.register_for_auto_class()
CircuitBranchForCausalLM.register_for_auto_class("AutoModelForCausalLM")
