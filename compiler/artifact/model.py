"""One torch module for both ways of running a compiled circuit.

*Bare*: embedding, blocks, head and nothing else, the form in which a paper states its sizes; the residual
addition is optional. *Language model*: the same with an RMSNorm before every block and before the head and with
the residual addition, which is what Hugging Face's `MambaForCausalLM` and `Mamba2ForCausalLM` compute.

The blocks are real modules (`mamba_ssm.Mamba`, `mamba_ssm.Mamba2`; where mamba_ssm is not installed, modules of ours
with the same weights and arithmetic, `compiler.runtime.own_modules`), or any module that maps
(b, l, d_model) to the same shape; `step` also needs its `allocate_inference_cache` and `step`.
Letters: b batch, l length, d_model width of the residual stream.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import torch
from torch import Tensor, nn

from compiler.exactness.levels import NORM_EPSILON
from compiler.language.arguments import counted
from compiler.runtime import real_block
from compiler.runtime.block import Block
from compiler.targets import family_of, target_running
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, mixer_prefix, norm_name

if TYPE_CHECKING:
    from compiler.artifact.manifest import Manifest
    from compiler.layout import Layout

State = list[tuple[Tensor, Tensor]]
_Stack = TypeVar("_Stack", bound="Stack")


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + eps) · weight, with the arithmetic of Hugging Face's MambaRMSNorm.

    The mean square and the division are float32 whatever the input; the cast back to the input's dtype comes
    before the weight. The ballast that turns this into the identity (exactness E7) relies on both.
    """

    def __init__(self, width: int, eps: float = NORM_EPSILON, device=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, device=device))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) to (..., width)."""
        wide = x.to(torch.float32)
        mean_square = wide.square().mean(-1, keepdim=True)
        unit = wide * torch.rsqrt(mean_square + self.eps)
        return self.weight * unit.to(x.dtype)


class Stack(nn.Module):
    """embedding, then per block h <- [h +] block([norm](h)), then head([final_norm](h)).

    Attributes: `embedding` (vocab, d_model), `blocks`, `norms` and `final_norm` (None in a bare stack),
    `head` (vocab, d_model) without bias, `residual`. What has made a stack hangs on it: `layout` where it was packaged,
    `manifest`, `config` and `tokens` where it was loaded.
    """

    layout: "Layout"
    manifest: "Manifest"
    config: dict[str, Any]
    tokens: list[str]

    def __init__(
        self,
        embedding: nn.Embedding,
        blocks: Sequence[nn.Module],
        head: nn.Linear,
        *,
        residual: bool,
        norms: Sequence[nn.Module] | None = None,
        final_norm: nn.Module | None = None,
    ):
        super().__init__()
        self.embedding = embedding
        self.blocks = cast(Sequence[Block], nn.ModuleList(blocks))
        self.norms = None if norms is None else cast(Sequence[nn.Module], nn.ModuleList(norms))
        self.final_norm = final_norm
        self.head = head
        self.residual = residual

    @classmethod
    def bare(
        cls,
        embedding: Tensor,
        block_tensors: Sequence[Mapping[str, Tensor]],
        block_kind: str,
        block_config: Mapping | Sequence[Mapping],
        head: Tensor,
        residual: bool,
        d_model: int,
    ) -> "Stack":
        """A stack without norms from plain tensors, which it shares with the caller rather than copies.

        `block_tensors[i]` is block i's state dict; `block_config` holds the keyword arguments of the real class
        (`d_state`, `d_conv`, `expand`, `dt_rank` or `headdim`, …), one mapping for all blocks or one for each.
        Raises ValueError in one sentence for an unknown kind and for a missing, foreign or misshapen tensor.
        """
        configs = [block_config] * len(block_tensors) if isinstance(block_config, Mapping) else list(block_config)
        if len(configs) != len(block_tensors):
            given = counted(len(block_tensors), "block")
            raise ValueError(f"block_tensors is for {given}, and block_config for {len(configs)}.")
        blocks = [real_block(block_kind, d_model, i, config) for i, config in enumerate(configs)]
        return cls.without_norms(embedding, blocks, block_tensors, head, residual)

    @classmethod
    def without_norms(
        cls,
        embedding: Tensor,
        blocks: Sequence[nn.Module],
        block_tensors: Sequence[Mapping[str, Tensor]],
        head: Tensor,
        residual: bool,
    ) -> "Stack":
        """A stack without norms of empty modules, which get these state dicts."""
        (vocab, d_model), out = embedding.shape, len(head)
        stack = cls(_empty_embedding(vocab, d_model), blocks, _empty_head(out, d_model), residual=residual)
        tensors = {"embedding.weight": embedding, "head.weight": head}
        tensors |= {f"blocks.{i}.{name}": t for i, block in enumerate(block_tensors) for name, t in block.items()}
        return _assign(stack, tensors)

    @classmethod
    def from_language_model(cls, config: Mapping, tensors: Mapping[str, Tensor]) -> Self:
        """The language model that Hugging Face builds from this config.json and these state-dict names.

        The stack shares the tensors with the caller. Raises ValueError in one sentence for a config without a
        needed key and for a missing, foreign or misshapen tensor.
        """
        try:
            family = family_of(config["model_type"])
            d_model, vocab, layers = config["hidden_size"], config["vocab_size"], family.layers(config)
            eps = family.epsilon(config)
            blocks = [family.module(config, i) for i in range(layers)]
        except KeyError as missing:
            raise ValueError(f"the config has no entry {missing}.") from missing
        stack = cls(
            _empty_embedding(vocab, d_model),
            blocks,
            _empty_head(vocab, d_model),
            residual=True,
            norms=[RMSNorm(d_model, eps, device="meta") for _ in range(layers)],
            final_norm=RMSNorm(d_model, eps, device="meta"),
        )
        return _assign(stack, {stack_name(name): t for name, t in family.in_house(config, tensors).items()})

    def forward(self, tokens: Tensor, return_stream: bool = False) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Token ids (b, l), int64, to logits (b, l, vocab).

        With `return_stream`, also the list of residual streams (b, l, d_model) after 0, 1, … blocks.
        Raises ValueError if the tokens are not a (b, l) int64 tensor of ids below vocab.
        """
        streams = []
        for stream in self.streams(self._embed(tokens)):
            if return_stream:
                streams.append(stream)
        logits = self.logits(stream)
        return (logits, streams) if return_stream else logits

    def hidden(self, tokens: Tensor, upto: int) -> Tensor:
        """The residual stream (b, l, d_model) after the first `upto` blocks; 0 is the embedding.

        Raises ValueError if there are fewer blocks than that, and like `forward` for bad tokens.
        """
        if not 0 <= upto <= len(self.blocks):
            raise ValueError(f"there is no stream after {counted(upto, 'block')}: the stack has {len(self.blocks)}.")
        return next(islice(self.streams(self._embed(tokens)), upto, None))

    def initial_state(self, batch: int) -> State:
        """The caches (convolution window, recurrent state) of every block before the first token.

        Shapes come from the weights, for the modules' own `allocate_inference_cache` takes whole `expand` only.
        Recurrent states are at least float32 also when the weights are narrower, as in the scan kernels:
        the modules' own default would lose integers above 256 in bfloat16 at every step.
        """
        return [_empty_cache(block, batch) for block in self.blocks]

    @torch.no_grad()
    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """One token (b,) through the blocks' own `step`: logits (b, vocab) and the state after it.

        The modules update their caches in place, so the `state` passed in is spent; hence no gradients.
        """
        return self.advance(self._embed(token[:, None]), state)

    @torch.no_grad()
    def advance(self, stream: Tensor, state: State) -> tuple[Tensor, State]:
        """The same from the stream before the first block (b, 1, d_model)."""
        after = []
        for norm, block, (window, memory) in zip(self._norms(), self.blocks, state, strict=True):
            out, window, memory = block.step(norm(stream), window, memory)
            stream = self._add(stream, out)
            after.append((window, memory))
        return self.logits(stream)[:, 0], after

    def streams(self, stream: Tensor) -> Iterator[Tensor]:
        """The residual streams after 0, 1, … blocks, from that before the first: (b, l, d_model) each."""
        yield stream
        for norm, block in zip(self._norms(), self.blocks):
            stream = self._add(stream, block(norm(stream)))
            yield stream

    def _embed(self, tokens: Tensor) -> Tensor:
        if tokens.dtype != torch.int64 or tokens.dim() != 2:
            raise ValueError(
                f"tokens must be an int64 tensor of shape (batch, length), "
                f"not {tokens.dtype} of shape {tuple(tokens.shape)}."
            )
        if not tokens.numel():
            raise ValueError(
                f"tokens of shape {tuple(tokens.shape)} hold no token; a batch needs at "
                "least one sequence of one token."
            )
        vocab = self.embedding.num_embeddings
        # Out-of-range ids kill a CUDA context with an assertion that names nothing.
        if not 0 <= tokens.min() <= tokens.max() < vocab:
            raise ValueError(
                f"token ids must lie in 0…{vocab - 1}, but they range from {tokens.min()} to {tokens.max()}."
            )
        return self.embedding(tokens)

    def _norms(self) -> Sequence[nn.Module]:
        return self.norms if self.norms is not None else [nn.Identity()] * len(self.blocks)

    def _add(self, stream: Tensor, out: Tensor) -> Tensor:
        return stream + out if self.residual else out

    def logits(self, stream: Tensor) -> Tensor:
        """The last stream (b, l, d_model) through the head: (b, l, vocab)."""
        return self.head(self._normed(stream))

    def before_head(self, tokens: Tensor) -> Tensor:
        """What the head reads, (b, l, d_model), of token ids (b, l); raises like `forward`."""
        return self._normed(self.hidden(tokens, len(self.blocks)))

    def _normed(self, stream: Tensor) -> Tensor:
        return stream if self.final_norm is None else self.final_norm(stream)


# Everything is built on the meta device and then given its tensors: initialising a vocabulary of 50,257 rows
# only to overwrite it would double both time and memory.


def _empty_cache(block: Block, batch: int) -> tuple[Tensor, Tensor]:
    """(batch, channels of the convolution, d_conv) and the recurrent state of a real block, all zeros."""
    weight = block.conv1d.weight
    window = weight.new_zeros(batch, weight.shape[0], block.d_conv)
    precision = torch.promote_types(weight.dtype, torch.float32)
    return window, weight.new_zeros(batch, *target_running(block).state_shape(block), dtype=precision)


def _empty_embedding(vocab: int, d_model: int) -> nn.Embedding:
    return nn.Embedding.from_pretrained(torch.empty(vocab, d_model, device="meta"), freeze=False)  # draws no numbers


def _empty_head(vocab: int, d_model: int) -> nn.Linear:
    return nn.Linear(d_model, vocab, bias=False, device="meta")


def _pattern(name: str) -> re.Pattern[str]:
    """Of names with a number at 0."""
    return re.compile(re.escape(name).replace("0", r"(\d+)"))


_NAMES = (
    (_pattern(EMBEDDING), r"embedding.weight"),
    (re.compile(_pattern(mixer_prefix(0)).pattern + "(.+)"), r"blocks.\1.\2"),
    (_pattern(norm_name(0)), r"norms.\1.weight"),
    (_pattern(FINAL_NORM), r"final_norm.weight"),
    (_pattern(HEAD), r"head.weight"),
)


def stack_name(name: str) -> str:
    """The name in a stack of a tensor of a family (`in_house`); an unknown one comes back unchanged, for `_assign` to
    refuse.
    """
    for pattern, ours in _NAMES:
        if found := pattern.fullmatch(name):
            return found.expand(ours)
    return name


def _assign(stack: _Stack, tensors: Mapping[str, Tensor]) -> _Stack:
    """Give an empty stack its tensors, all of them and no others, without copying."""
    empty = dict(stack.named_parameters())
    for name in sorted(empty.keys() | tensors.keys()):
        _check_tensor(name, empty.get(name), tensors.get(name))
    stack.load_state_dict(tensors, assign=True)
    for name, parameter in stack.named_parameters():
        vars(parameter).update(vars(empty[name]))  # mamba_ssm's _no_weight_decay marks, which optimisers read
    return stack.eval()


def _check_tensor(name: str, wanted: Tensor | None, given: Tensor | None) -> None:
    if given is None:
        raise ValueError(f"there is no tensor {name}.")
    if wanted is None:
        raise ValueError(f"the model has no place for the tensor {name}.")
    if wanted.shape != given.shape:
        raise ValueError(f"the tensor {name} has shape {tuple(given.shape)}, expected {tuple(wanted.shape)}.")
