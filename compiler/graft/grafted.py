"""`graft(host, circuit)`: a circuit in a language model, as a plain checkpoint of the host's own class."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from compiler.artifact.config import kernel_limits, kernel_warnings
from compiler.compiled import Compiled
from compiler.graft.arguments import check_token_map, ids_of, source_of
from compiler.graft.bound import proved
from compiler.graft.direct_sum import config_of, plan, tensors_of
from compiler.graft.errors import GraftError
from compiler.graft.faint import LOUDEST
from compiler.graft.hosts import DTYPES, read_host
from compiler.graft.planned import Plan
from compiler.graft.special import check_free, check_special, other_words
from compiler.graft.union import union
from compiler.graft.widths import Widths
from compiler.language.arguments import close_to, integer, shown
from compiler.language.circuit import Circuit
from compiler.language.data import language_to_data
from compiler.targets import target_of

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedModel

GUEST = "<host>"  # the letter that stands for every token of the host
TIES_OF_NEW = "where no letter leads in the circuit, some letter is the answer, but nothing is promised of which"
TIES = (
    f"{TIES_OF_NEW}: to letters that are its tokens the host adds its own logits, which the rounding of the letters' "
    "own, far larger ones may swallow, and then the lowest id among equal logits answers"
)


@dataclass(frozen=True, eq=False)
class Grafted:
    """A host with a circuit in it.

    model: of the host's class, wider. ids: the token id of each of the circuit's letters. circuit: what its layers
    compute, with GUEST for the tokens of the host. report: sizes, and what is promised of host and circuit.
    """

    model: PreTrainedModel
    ids: dict[str, int]
    compiled: Compiled
    report: dict[str, Any]

    @property
    def circuit(self) -> Circuit:
        """The circuit as written."""
        return self.compiled.source

    def scores(self, tokens: np.ndarray) -> np.ndarray:
        """What the circuit's letters score exactly, by the interpreter: (batch, time) ids of the model to (batch, time,
        letters).
        """
        import numpy as np

        alphabet = self.circuit.token_alphabet
        letter_of = np.full(self.model.config.vocab_size, alphabet.size - 1)
        letter_of[list(self.ids.values())] = [alphabet.index(letter) for letter in self.ids]
        return self.compiled.interpret(letter_of[tokens])[..., :-1]


def graft(
    host: object,
    circuit: Circuit | Compiled,
    tokens: Mapping[str, int] | None = None,
    width: int | None = None,
) -> Grafted:
    """Put a circuit into a host, side by side: host and circuit keep computing what they computed.

    host: a `MambaForCausalLM`, `Mamba2ForCausalLM`, `FalconMambaForCausalLM`, `OlmoHybridForCausalLM`,
    `Qwen3_5ForCausalLM` or `MambaLMHeadModel`, or a directory of one; its weights are copied. circuit: over tokens; a
    compiled one is compiled again for the host. tokens: letters that are tokens of the host, by their ids; all others
    come after its vocabulary. width: d_model of the result, by default the least 4^k times the host's that has room,
    with which the host's arithmetic is its own.

    Raises GraftError for a host, a map or a width that cannot be, TypeError for what is no circuit, CompileError where
    the circuit cannot be exact among the host's tokens.
    """
    circuit, tokens = source_of(circuit), {} if tokens is None else tokens
    check_token_map(tokens)
    if width is not None:
        integer(width, "width", 1)
    model: Any = read_host(host)
    mapped = _checked(tokens, circuit, model.config.vocab_size)
    check_special(model, circuit, mapped)
    check_free(model, model.get_input_embeddings().weight.shape[0])
    lifted = union(circuit, name=circuit.name, guest=GUEST, silent=tuple(mapped))
    dtype = DTYPES[model.get_input_embeddings().weight.dtype]
    planned = plan(model, lifted, dtype, width)
    ids, vocab = _ids(circuit, mapped, model.get_input_embeddings().weight.shape[0])
    config = config_of(planned, model, vocab)
    with torch.device("meta"):
        wide = type(model)(config)
    tensors = tensors_of(planned, model, ids, vocab)
    wide.load_state_dict(tensors, assign=True)
    planned.family.complete(wide, model)
    wide.generation_config = _generation(model.generation_config, circuit.end, ids, mapped)
    wide.eval()
    warnings = [*_warnings(planned, wide), *_of_generate(wide.generation_config, circuit.end, mapped)]
    report = _report(planned, model, ids, circuit, mapped) | {"warnings": warnings}
    report["host_promise"] = proved(planned, model, tensors)
    return Grafted(wide, ids, planned.compiled, report)


def _warnings(plan: Plan, wide: Any) -> list[str]:
    """What else a user of the result must know: of its class, and of a GPU."""
    family = target_of(plan.family.target).family
    assert family is not None  # hosts are language models
    mixer = getattr(plan.family.backbone(wide).layers[0], "mixer", None)
    if mixer is None:
        return list(family.cautions(wide.config.to_dict()))
    channels, _, taps = mixer.conv1d.weight.shape
    limits = kernel_limits(taps, plan.wide.d_state, channels, mixer.in_proj.weight.shape[0])
    return [*family.cautions(wide.config.to_dict()), *kernel_warnings(limits)]


def _generation(host: Any, end: str | None, ids: Mapping[str, int], mapped: Mapping[str, int]) -> Any:
    """The host's settings; the circuit's end ends a generation too, unless it is a token of the host."""
    settings = deepcopy(host)
    if end is not None and end not in mapped:
        known = settings.eos_token_id
        settings.eos_token_id = [*(known if isinstance(known, list) else [known] * (known is not None)), ids[end]]
    return settings


def _of_generate(settings: Any, end: str | None, mapped: Mapping[str, int]) -> list[str]:
    """What of the answers generate() does not do, by the settings of the result."""
    return [*_endless(settings, end, mapped), *other_words(settings)]


def _endless(settings: Any, end: str | None, mapped: Mapping[str, int]) -> list[str]:
    """That the circuit's end ends no generation, where it is a token of the host that ends none there."""
    if end is None or end not in mapped or mapped[end] in ids_of(settings.eos_token_id or ()):
        return []
    told = f"the circuit's end {end!r} is token {mapped[end]} of the host, whose texts it does not end"
    return [f"{told}, so generate() goes on behind it; pass eos_token_id = {mapped[end]} to end there"]


def _checked(tokens: Mapping[str, int], circuit: Circuit, vocab: int) -> dict[str, int]:
    """The map, where it leads letters of the circuit to different tokens of the host."""
    letters = circuit.token_alphabet.tokens
    seen: dict[int, str] = {}
    for letter, place in tokens.items():
        if letter not in letters:
            raise GraftError(
                f"the token map has {shown(letter)}, which is no letter of the circuit{close_to(letter, letters, '.')}"
            )
        if isinstance(place, (list, tuple)):
            raise GraftError(
                f"the token map leads {shown(letter)} to a list, and lists belong to a side branch (--mode branch); in "
                "a direct sum a letter is one token, so give one id."
            )
        if type(place) is not int or not 0 <= place < vocab:
            raise GraftError(
                f"the token map leads {shown(letter)} to {shown(place)}, and the host has ids 0 to {vocab - 1}."
            )
        if place in seen:
            raise GraftError(
                f"the token map leads {seen[place]!r} and {letter!r} both to {place}; a token is one letter."
            )
        seen[place] = letter
    return dict(tokens)


def _ids(circuit: Circuit, mapped: Mapping[str, int], vocab: int) -> tuple[dict[str, int], int]:
    """(the id of each letter, the size of the vocabulary with them)."""
    ids = {}
    for letter in circuit.token_alphabet.tokens:
        ids[letter] = mapped.get(letter, vocab)
        vocab += letter not in mapped
    return ids, vocab


def _report(
    plan: Plan, host: Any, ids: Mapping[str, int], circuit: Circuit, mapped: Mapping[str, int]
) -> dict[str, Any]:
    """Sizes, and the promise of the circuit, as data. least_lead: of a letter that leads at all."""
    format = plan.compiled.context.format
    domain = plan.compiled.domains.of(plan.compiled.source.output)
    unit = 2.0**-format.significand
    share = (plan.terms + 2) * unit
    needed = 2 * share / (1 - share) * plan.reach if share < 1 else float("inf")
    step = float(domain.step)
    return {
        "mode": "direct-sum",
        "circuit": circuit.name,
        "host": {
            "class": type(host).__name__,
            "layers": host.config.num_hidden_layers,
            "vocab": host.get_input_embeddings().weight.shape[0],
            **_told(plan, plan.host),
        },
        "result": {"layers": len(plan.blocks) + host.config.num_hidden_layers, **_told(plan, plan.wide)},
        "dtype": format.name,
        "letters": dict(ids),
        "mapped": sorted(mapped),
        "circuit_promise": {
            "level": "margin-certified" if 0 < needed < step else "up to rounding",
            "lead_needed": needed,
            "least_lead": step,
            "ties": TIES if mapped else TIES_OF_NEW,
            "length": language_to_data(plan.compiled.source.token_language)["length"],
            "description": plan.compiled.source.token_language.description,
            "loudest_stream": LOUDEST,
        },
    }


def _told(plan: Plan, sizes: Widths) -> dict[str, int]:
    last = plan.family.rank_name
    return {"d_model": sizes.d_model, "d_inner": sizes.d_inner, "d_state": sizes.d_state, last: sizes.rank}
