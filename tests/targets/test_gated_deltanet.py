"""Gated DeltaNet: swaps against plain Python, bare and through transformers, padded, step by step; planted faults."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from compiler import (
    Alphabet,
    CheckpointError,
    Circuit,
    InputLanguage,
    Tokens,
    bare,
    compile,
    emit,
    language_model,
    memory,
    permute,
    readout_one_hot,
)
from compiler.artifact.load import load
from compiler.artifact.model import Stack
from compiler.compiled import Compiled
from compiler.errors import CompileError
from compiler.exactness.compare import Miscompiled
from compiler.language.stream import constant
from compiler.language.types import OneHot
from compiler.language.words import latch
from compiler.targets import target_of
from compiler.targets.gated_deltanet.heads import heads_of
from compiler.targets.gated_deltanet.mixer import delta_rule
from compiler.targets.gated_deltanet.read import check_heads
from tests.circuits import ABC, is_a, is_b, over_abc, token
from tests.targets.harness import STREAMS, check

NEIGHBOURS = [(0, 1), (1, 2), (2, 3), (3, 4)]
FORMS = {
    "parity": (2, [(0, 1)], 0, False),
    "S_5": (5, NEIGHBOURS, 2, False),
    "a star": (4, [(0, 1), (0, 2), (0, 3)], 1, False),
    "three colours": (3, [(0, 1), (1, 2), (0, 2)], 0, False),
    "a start that is never moved": (3, [(1, 2), (2, 1)], 0, False),
    "resets": (4, [(0, 1), (1, 2), (2, 3)], 0, True),
    "placed by resets": (3, [(0, 1), (1, 2)], None, True),
}


def _circuit(n: int, pairs: list, start: int | None, resets: bool) -> Circuit:
    swaps, puts = [f"s{i}" for i in range(len(pairs))], [f"r{j}" for j in range(n)]
    letters = Alphabet.of(*swaps, "x", *(puts if resets else []))
    tokens = Tokens(letters)
    state = permute(start, tokens.one_hot(swaps), pairs, tokens.one_hot(puts) if resets else None)
    everything = InputLanguage.everything(letters, 10**6)
    return Circuit("walk", readout_one_hot(state, letters, list(letters.tokens[:n])), everything)


def _walk(n: int, pairs: list, start: int | None, letters: list[str]) -> np.ndarray:
    place, seen = start, np.zeros((len(letters), n))
    for t, letter in enumerate(letters):
        if letter[0] == "r":
            place = int(letter[1:])
        elif letter[0] == "s" and place in pairs[int(letter[1:])]:
            place = sum(pairs[int(letter[1:])]) - place
        if place is not None:
            seen[t, place] = 1
    return seen


def _expected(name: str, circuit: Circuit, ids: np.ndarray) -> np.ndarray:
    n, pairs, start, _ = FORMS[name]
    names = circuit.language.alphabet.tokens
    return np.stack([_walk(n, pairs, start, [names[i] for i in row]) for row in ids])


def _compiled(name: str, dtype: str = "float32") -> Compiled:
    return compile(_circuit(*FORMS[name]), "gated-deltanet", dtype)


@pytest.mark.parametrize("name", FORMS)
def test_swaps_move_the_state_bit_for_bit(name: str):
    """All sequences of four letters, and random ones across the borders of chunks."""
    compiled = _compiled(name)
    model, size = bare(compiled), compiled.source.language.alphabet.size
    rng = np.random.default_rng(0)
    for ids in (
        np.array(list(product(range(size), repeat=3))),
        *(rng.integers(0, size, (2, n)) for n in (64, 65, 400)),
    ):
        with torch.no_grad():
            scores = model(torch.from_numpy(ids)).numpy()
        assert np.array_equal(scores[..., : FORMS[name][0]], _expected(name, compiled.source, ids))


@pytest.mark.parametrize("start, pairs, comes", [(2, [(0, 1)], 1), (0, [(0, 1), (1, 2)], 0)])
def test_a_state_that_is_never_moved_stays(start: int, pairs: list, comes: int):
    """No pair has its start, or the only one that does is never swapped."""
    which = np.diag([comes, 1])[: len(pairs)]
    swaps = (which @ Tokens(ABC).one_hot(["a", "b"])).retyped(OneHot(len(pairs)))
    everything = InputLanguage.everything(ABC, 10**6)
    circuit = Circuit("stays", readout_one_hot(permute(start, swaps, pairs), ABC, list("abc")), everything)
    model = language_model(compile(circuit, "gated-deltanet"))
    ids = torch.tensor(list(product(range(3), repeat=3)))
    with torch.no_grad():
        scores = Stack.from_language_model(model.config, model.tensors)(ids)
    assert (scores[..., :3].argmax(dim=-1) == start).all()


def test_a_state_of_five_places_is_one_block_of_64_numbers():
    compiled = _compiled("S_5")
    ((block,), (size,)) = compiled.blocks, [target_of("gated-deltanet").sizes(b, 9) for b in compiled.blocks]
    assert (size.heads, size.d_state, size.headdim) == (4, 16, 1)
    assert {head.beta for head in heads_of(block, 1)} == {2.0}


def test_the_orbit_is_closed_under_every_letter():
    """All 120 orders of S_5 and every letter, from the states that are reached: so it holds at every length."""
    compiled = _compiled("S_5")
    mixer = bare(compiled).blocks[0]
    embedding = bare(compiled).embedding.weight
    letters = len(embedding)
    window = torch.zeros(1, mixer.conv1d.weight.shape[0], mixer.d_conv)
    seen, pending = {}, [torch.zeros(1, 4, 16, 1)]
    while pending:
        state = pending.pop()
        for letter in range(letters):
            with torch.no_grad():
                _, _, after = mixer.chunk(embedding[None, [letter]], window, state)
            key = after.numpy().tobytes()
            assert torch.isin(after, torch.tensor([0.0, 1.0, -1.0, 2.0]) * after.abs().max()).all()
            if key not in seen:
                seen[key] = after
                pending.append(after)
    assert len(seen) == 5  # the place is all that the four heads hold


@pytest.mark.parametrize("stream", ["latch", "last"])
def test_a_block_alone_computes_what_the_ir_says(stream: str):
    check("gated-deltanet", STREAMS[stream])


def test_sums_are_refused_with_the_reason():
    with pytest.raises(CompileError, match="what a write finds under its key is subtracted"):
        compile(over_abc("sum", is_a.cumsum()), "gated-deltanet")


def test_values_that_a_chunk_cannot_add_up_are_refused():
    wide = latch(token.lookup({0: 1, 1: (1 << 24) // 130 + 1, 2: 0}), is_b)
    with pytest.raises(CompileError, match="129056 quanta, and 129055 are the most"):
        compile(over_abc("wide", wide), "gated-deltanet")


@pytest.mark.parametrize(("name", "dtype"), [("S_5", "float32"), ("resets", "float32"), ("S_5", "bfloat16")])
def test_transformers_runs_the_checkpoint_bit_for_bit(name: str, dtype: str, tmp_path):
    """Prefill, cached steps after it, and prompts padded to the left; the loaded stack, too."""
    compiled = _compiled(name, dtype)
    compiled.save(tmp_path / "walk")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "walk", dtype=getattr(torch, dtype)).eval()
    assert type(model).__name__ == "OlmoHybridForCausalLM"
    size, n = compiled.source.language.alphabet.size, FORMS[name][0]
    ids = np.random.default_rng(1).integers(0, size, (2, 150))
    expected = torch.from_numpy(_expected(name, compiled.source, ids)).float()
    tokens = torch.from_numpy(ids)
    with torch.no_grad():
        whole = model(tokens).logits
        assert torch.equal(whole[..., :n].float(), expected)
        assert torch.equal(load(tmp_path / "walk")(tokens)[..., :n].float(), expected)
        begun = model(tokens[:, :70], use_cache=True)
        for t in range(70, 90):
            begun = model(tokens[:, [t]], past_key_values=begun.past_key_values, use_cache=True)
            assert torch.equal(begun.logits[:, 0, :n].float(), expected[:, t])
        padded = torch.nn.functional.pad(tokens[:, :70], (9, 0), value=model.config.pad_token_id)
        mask = torch.nn.functional.pad(torch.ones(2, 70, dtype=torch.long), (9, 0))
        shifted = model(padded, attention_mask=mask).logits[:, 9:]
        assert torch.equal(shifted[..., :n].float(), expected[:, :70])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_of_qwen_overwrites_bit_for_bit(dtype: str, tmp_path):
    """With β of at most 1: prefill, cached steps, padding to the left; and a part that must be silent."""
    held = memory.write(token.shift(1), token, policy="last").delete(is_b).read(token)
    circuit = Circuit("held", readout_one_hot(held, ABC), InputLanguage.everything(ABC, 1000))
    compiled = compile(circuit, "gated-deltanet-qwen", dtype)
    compiled.save(tmp_path / "held")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "held", dtype=getattr(torch, dtype)).eval()
    assert type(model).__name__ == "Qwen3_5ForCausalLM"
    ids = np.random.default_rng(2).integers(0, 3, (2, 140))
    tokens, expected = torch.from_numpy(ids), torch.from_numpy(compiled.interpret(ids)).float()
    with torch.no_grad():
        assert torch.equal(model(tokens).logits[..., :3].float(), expected)
        assert torch.equal(load(tmp_path / "held")(tokens)[..., :3].float(), expected)
        begun = model(tokens[:, :70], use_cache=True)
        for t in range(70, 80):
            begun = model(tokens[:, [t]], past_key_values=begun.past_key_values, use_cache=True)
            assert torch.equal(begun.logits[:, 0, :3].float(), expected[:, t])
        padded = torch.nn.functional.pad(tokens[:, :70], (9, 0), value=model.config.pad_token_id)
        mask = torch.nn.functional.pad(torch.ones(2, 70, dtype=torch.long), (9, 0))
        assert torch.equal(model(padded, attention_mask=mask).logits[:, 9:, :3].float(), expected[:, :70])


def test_a_part_that_is_not_silent_is_refused(tmp_path):
    for target in ("gated-deltanet", "gated-deltanet-qwen"):
        model = language_model(compile(over_abc("held", latch(token, is_b)), target))
        name = next(name for name in model.tensors if name.endswith("mlp.down_proj.weight"))
        with pytest.raises(CheckpointError, match="must be 0, for that part of the model is silent"):
            Stack.from_language_model(model.config, model.tensors | {name: model.tensors[name] + 1})


def test_a_changed_weight_is_seen_when_it_is_read_back():
    compiled = compile(over_abc("two", permute(0, token, [(0, 1), (1, 2), (2, 3)])), "gated-deltanet")
    (block,), target = compiled.blocks, target_of("gated-deltanet")
    lanes = np.arange(compiled.lanes.count)
    size = target.sizes(block, len(lanes))
    tensors = target.emit(block, size, lanes, lanes).tensors
    check_heads(tensors, size, block, lanes, lanes)
    for name, tensor in tensors.items():
        changed = tensor.clone()
        first = int(tensor.view(-1).nonzero()[0]) if tensor.any() else 0
        changed.view(-1)[first] = tensor.view(-1)[first] / 2 if tensor.view(-1)[first] else 1
        with pytest.raises(Miscompiled):
            check_heads(tensors | {name: changed}, size, block, lanes, lanes)


@pytest.mark.parametrize("target", ["gated-deltanet", "gated-deltanet-qwen"])
@pytest.mark.parametrize("name", ["product", "product beside", "keys"])
def test_a_head_that_is_silent_in_every_sequence_is_printed(name: str, target: str):
    """The gate of a product, or keys and queries, from before the start of every text that is short enough."""
    number, late = Tokens(ABC).number({"a": 4, "b": 1}), token.shift(5)
    scores = {
        "product": lambda: emit(ABC, (number.shift(5) * number.shift(2) >= 1, "a"), otherwise="b"),
        "product beside": lambda: emit(ABC, (number.shift(5) * number.shift(2) + number >= 2, "a"), otherwise="b"),
        "keys": lambda: readout_one_hot(memory.write(late, token, policy="last").read(late), ABC),
    }[name]()
    circuit = Circuit("late", scores, InputLanguage.everything(ABC, 5))
    compiled = compile(circuit, target)
    model, ids = language_model(compiled), np.array(list(product(range(3), repeat=5)))
    with torch.no_grad():
        expected = compiled.interpret(ids)
        assert np.array_equal(bare(compiled)(torch.from_numpy(ids)).numpy()[..., :3], expected)
        found = Stack.from_language_model(model.config, model.tensors)(torch.from_numpy(ids))
    assert np.array_equal(found.numpy()[..., :3], expected)


def test_swaps_on_a_conjunction_with_an_older_token():
    """Its taps add up to less than 0, and its second swap never happens, nor is its row ever anything but 0."""
    a_behind_b = np.array([[1], [0]]) @ (is_a & is_b.shift(1))
    state = permute(1, a_behind_b.retyped(OneHot(2)), [(0, 1), (1, 2)])
    compiled = compile(Circuit("late", readout_one_hot(state, ABC), InputLanguage.everything(ABC, 6)), "gated-deltanet")
    ids = np.array(list(product(range(3), repeat=6)))
    expected = np.zeros((len(ids), 6, 3))
    for row, seen in zip(ids.tolist(), expected, strict=True):
        place = 1
        for t in range(6):
            if t and row[t - 1 : t + 1] == [1, 0] and place < 2:
                place = 1 - place
            seen[t, place] = 1
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(ids)).numpy()[..., :3], expected)


def _rule(beta: float, decay: float, length: int = 200) -> torch.Tensor:
    """Reads of a state that one reflection in k moves there and back, along a sequence."""
    k = torch.tensor([0.5, 0.5, 0.5, 0.5]).expand(1, 1, length, 4)
    ones = torch.ones(1, 1, length)
    state = torch.tensor([1.0, 1.0, 0.0, 0.0]).reshape(1, 1, 4, 1)
    out, _ = delta_rule(
        k * 0 + torch.tensor([1.0, 0, 0, 0]), k, torch.zeros(1, 1, length, 1), beta * ones, decay * ones, state
    )
    return out[0, 0, :, 0]


def test_faults_of_a_runtime_are_seen():
    """β clamped at 1.99 and a decay of 1e-5 leave the orbit; the right rule stays on it for ever."""
    right = _rule(2.0, 0.0)
    assert torch.equal(right, torch.tensor([0.0, 1.0] * 100) if right[0] == 0 else torch.tensor([1.0, 0.0] * 100))
    assert not torch.equal(_rule(1.99, 0.0), right) and not torch.equal(_rule(2.0, -1e-5), right)


def test_a_constant_is_kept_beside_a_latch():
    """A latch and a constant, from before the first write on."""
    compiled = compile(over_abc("held", latch(constant(1), is_a) + 2), "gated-deltanet")
    with torch.no_grad():
        scores = bare(compiled)(torch.tensor([[1, 2, 0, 1]]))
    assert scores[0, :, 0].tolist() == [2, 2, 3, 3]


def test_a_running_sum_by_reflections_that_is_written_by_hand():
    """What docs/exactness.md says of it: (−1)^t S_t adds up, in chunks and step by step, through the norm of a head."""
    from transformers.models.olmo_hybrid import modeling_olmo_hybrid as library

    length, ballast = 3000, 2.0**48
    x = torch.randint(0, 4, (length,), generator=torch.Generator().manual_seed(0)).float()
    even = (torch.arange(length) % 2 == 0).float()
    odd = 1 - even
    values = torch.zeros(1, length, 1, 8)
    values[0, 0, 0, :2] = ballast  # 2·K/2 in two of 8 columns: 2² + 2² = 8
    values[0, :, 0, 2:6] = 32 * torch.stack([x * even, x * even, x * odd, x * odd], -1)
    key = torch.zeros(1, length, 1, 16)
    key[..., 0] = 64
    gate = torch.zeros(length, 8)
    gate[:, 2:6] = 32 * torch.stack([even, odd, even, odd], -1)
    out = torch.tensor([0.0, 0, 1, -1, -1, 1, 0, 0]) / (2 * 32 * 32)
    norm = library.OlmoHybridRMSNormGated(8, eps=1e-5)
    told = {"beta": torch.full((1, length, 1), 2.0), "g": torch.zeros(1, length, 1), "use_qk_l2norm_in_kernel": True}
    for rule in (library.torch_chunk_gated_delta_rule, library.torch_recurrent_gated_delta_rule):
        with torch.no_grad():
            norm.weight.fill_(ballast)
            read, _ = rule(key, key, values, **told, initial_state=None, output_final_state=False)
            assert torch.equal(norm(read[0, :, 0], gate) @ out, x.cumsum(0))
            wrong, _ = rule(key, key, values, **told | {"beta": told["beta"] - 2.0**-20}, initial_state=None,
                            output_final_state=False)  # fmt: skip
            assert not torch.equal(norm(wrong[0, :, 0], gate) @ out, x.cumsum(0))
