"""Blocks of one position as gated MLPs: the same numbers in the IR, and to the bit on mamba_ssm's own model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from compiler import CompileError, compile
from compiler.analysis.affine_form import ONE
from compiler.compiled import run_blocks
from compiler.export.mamba_ssm_mlp import gated_language_model, paired
from compiler.ir.block import UnsafePreactivation
from compiler.ir.feed_forward import feed_forward_of
from compiler.runtime import has_mamba_ssm
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction
from tests.circuits.case import is_a, is_b, over_abc, token

SELECTION = TokenSelection("angle", 3, 2, 4)


def small(construction, arch: str = "mamba"):
    return compile(replace(construction, arch=arch).circuit(), arch)


def prompts(construction, count: int) -> np.ndarray:
    (task,) = construction.tasks()
    return next(iter(task.random(count, 0))).tokens


def test_a_block_without_a_state_is_a_gated_mlp_number_by_number():
    """All blocks of a selection but the first: what each adds to the stream, at every position."""
    compiled = small(SELECTION)
    streams = run_blocks(compiled, prompts(SELECTION, 12))
    one = int(compiled.lanes.index[ONE][0])
    layers = [feed_forward_of(block, one) for block in compiled.blocks]
    assert layers[0] is None and all(layers[1:])
    for stream, block, layer in zip(streams[1:], compiled.blocks[1:], layers[1:], strict=False):
        assert (layer.run(stream) == block.run(stream)).all()
        assert block.run(stream).any() and layer.names["hidden"]
        assert (np.abs(layer.value @ stream[0].T) <= (abs(layer.value) @ np.abs(stream[0]).max(0))[:, None]).all()


def test_what_is_no_function_of_one_position_stays_a_block():
    counted = compile(over_abc("counts", (is_a.cumsum() - is_b.cumsum()).relu()), "mamba")
    looking_back = compile(over_abc("back", token.shift(2)), "mamba")
    gated = compile(over_abc("product", is_a.cumsum() * is_b.cumsum()), "mamba")
    one = [int(c.lanes.index[ONE][0]) for c in (counted, looking_back, gated)]
    assert feed_forward_of(counted.blocks[0], one[0]) is None
    assert feed_forward_of(looking_back.blocks[0], one[1]) is None
    assert all(feed_forward_of(block, one[2]) is None for block in gated.blocks)  # it gates by what it reads
    assert feed_forward_of(counted.blocks[-1], None) is None
    with pytest.raises(CompileError, match="no block of this circuit is a function of one position"):
        gated_language_model(looking_back)


def test_an_unsafe_gate_is_found():
    compiled = small(SELECTION)
    layer = feed_forward_of(compiled.blocks[1], int(compiled.lanes.index[ONE][0]))
    stream = run_blocks(compiled, prompts(SELECTION, 2))[1]
    with pytest.raises(UnsafePreactivation):
        layer.run(stream / 8)
    with pytest.raises(ValueError, match="out of a gated MLP has shape"):
        replace(layer, out=layer.out[1:]).verify()


@pytest.mark.parametrize(
    ("construction", "arch", "blocks", "layers", "mlps"),
    [
        (SELECTION, "mamba", 6, 3, 3),
        (AssociativeRecall(3, 2, 3), "mamba", 2, 1, 1),
        (UniqueInduction(4, 6), "mamba2", 2, 1, 1),
        (Copy(n=3, vocab=2), "mamba2", 4, 3, 1),
        (SelectiveCopy(n=2, vocab=2, length=4), "mamba2", 4, 3, 1),
        (Copy(n=3, vocab=2), "mamba", 2, 2, 0),
        (AssociativeRecall(3, 2, 3, distinct=True), "mamba", 1, 1, 0),
        (CopyNgram(1, 2, 3), "mamba", 1, 1, 0),
    ],
)
def test_how_many_layers_the_statements_take(construction, arch, blocks, layers, mlps):
    compiled = small(construction, arch)
    found = paired(compiled)
    assert (len(compiled.blocks), len(found), sum(mlp is not None for _, mlp in found)) == (blocks, layers, mlps)


@pytest.mark.skipif(not has_mamba_ssm(), reason="mamba_ssm is not installed")
@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("construction", [SELECTION, AssociativeRecall(3, 2, 3)], ids=lambda c: c.name)
def test_mamba_ssms_own_model_is_exact(construction, arch, tmp_path):
    """`MambaLMHeadModel.from_pretrained` with `d_intermediate`: every score is the interpreter's, by steps too."""
    from compiler.runtime import mamba_classes

    compiled = small(construction, arch)
    made = gated_language_model(compiled)
    compiled.save(tmp_path / "model", format="mamba-ssm-mlp")
    classes = mamba_classes()
    model = classes.MambaLMHeadModel.from_pretrained(str(tmp_path / "model"), device="cpu", dtype=torch.float32)
    assert type(model.backbone.layers[0].mlp).__name__ == "GatedMLP"
    assert len(model.backbone.layers) < len(compiled.blocks)
    tokens = prompts(construction, 6)
    expected = made.plain.over_vocabulary(compiled.interpret(tokens))
    with torch.no_grad():
        assert (model(torch.from_numpy(tokens)).logits.numpy() == expected).all()
        state = classes.InferenceParams(max_seqlen=tokens.shape[1], max_batch_size=len(tokens))
        for t in range(tokens.shape[1]):
            state.seqlen_offset = t
            found = model(torch.from_numpy(tokens[:, t : t + 1]), inference_params=state).logits
            assert (found[:, 0].numpy() == expected[:, t]).all()
        for name, parameter in model.named_parameters():  # the MLP is what computes it
            if name.endswith("mlp.fc2.weight"):
                parameter.zero_()
        assert not (model(torch.from_numpy(tokens)).logits.numpy() == expected).all()
