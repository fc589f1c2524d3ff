"""Small hosts and circuits, and plain Python that says what the circuits answer."""

from __future__ import annotations

import torch

from compiler import Alphabet, Circuit, InputLanguage, Tokens, memory, readout_integer, readout_one_hot
from compiler.runtime.huggingface import torch_only_transformers

VOCAB = 48


def induction(letters: str | tuple[str, ...] = "abcd", name: str = "induction", length: int = 4000) -> Circuit:
    """What followed the last time."""
    alphabet = Alphabet(tuple(letters))
    x = Tokens(alphabet).one_hot()
    follower = memory.write(key=x.shift(1), value=x, policy="last").read(x)
    return Circuit(name, readout_one_hot(follower, alphabet), InputLanguage.everything(alphabet, length))


def counter(name: str = "count", length: int = 4000) -> Circuit:
    """How many 1 there were, up to 2."""
    alphabet = Alphabet.of("0", "1", "2", "=")
    ones = Tokens(alphabet).is_in("1").cumsum().clip(0, 2)
    scores = readout_integer(ones, alphabet, {"0": 0, "1": 1, "2": 2})
    return Circuit(name, scores, InputLanguage.everything(alphabet, length))


def induction_answers(words: list[str], letters: str | tuple[str, ...]) -> list[str | None]:
    """By plain Python: for each word that is a letter, what followed its last occurrence; None where nothing did.

    A letter that a word of another kind followed last has no answer.
    """
    followers: dict[str, str | None] = {}
    answers: list[str | None] = []
    before = None
    for word in words:
        own = word if word in letters else None
        if before is not None:
            followers[before] = own
        answers.append(followers.get(own) if own is not None else None)
        before = own
    return answers


def count_answers(words: list[str]) -> list[str | None]:
    """By plain Python: the ones so far, where the word is of the counter's alphabet."""
    ones, answers = 0, []
    for word in words:
        ones += word == "1"
        answers.append(str(min(ones, 2)) if word in "012=" else None)
    return answers


def delta_host(kind: str, seed: int = 0, dtype: torch.dtype = torch.float32, **options):
    """A random `OlmoHybridForCausalLM` ("olmo") or `Qwen3_5ForCausalLM` ("qwen") of 32 lanes, as below."""
    torch_only_transformers()
    from transformers import OlmoHybridConfig, OlmoHybridForCausalLM, Qwen3_5ForCausalLM, Qwen3_5TextConfig

    torch.manual_seed(seed)
    sizes = {"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3}
    sizes |= {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "linear_num_key_heads": 2}
    sizes |= {"linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 8}
    sizes |= {"pad_token_id": 0, "eos_token_id": 2, "bos_token_id": None}
    if kind == "olmo":
        model = OlmoHybridForCausalLM(OlmoHybridConfig(**(sizes | options)))
    else:
        model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**({"head_dim": 8} | sizes | options)))
    return moved(model).to(dtype).eval()


def moved(model):
    """With every parameter away from its initial value."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def host(kind: str = "mamba", d_model: int = 64, seed: int = 0, dtype: torch.dtype = torch.float32, **options):
    """A random language model of transformers, with every parameter away from its initial value."""
    torch_only_transformers()
    from transformers import (
        FalconMambaConfig,
        FalconMambaForCausalLM,
        Mamba2Config,
        Mamba2ForCausalLM,
        MambaConfig,
        MambaForCausalLM,
    )

    torch.manual_seed(seed)
    sizes = {"vocab_size": VOCAB, "hidden_size": d_model, "num_hidden_layers": 2} | options
    if kind == "mamba":
        model = MambaForCausalLM(MambaConfig(**sizes))
    elif kind == "falcon":
        model = FalconMambaForCausalLM(FalconMambaConfig(**sizes))
    else:
        heads = {"num_heads": 2 * d_model // 16, "head_dim": 16, "n_groups": 1, "state_size": 16, "chunk_size": 32}
        model = Mamba2ForCausalLM(Mamba2Config(**(heads | sizes)))
    return moved(model).to(dtype).eval()


def host_text(count: int = 3, length: int = 40, seed: int = 1) -> torch.Tensor:
    return torch.randint(0, VOCAB, (count, length), generator=torch.Generator().manual_seed(seed))
