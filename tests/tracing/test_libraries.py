"""docs/ground_truth.md: its code runs as printed, with the libraries; and the states of TransformerLens are exact."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import compiler.artifact.save
import compiler.graft.directory
from compiler import compile as compile_circuit
from compiler import load
from examples.programs import two_brackets
from tests.tracing.models import MIXERS

PAGE = (Path(__file__).parents[2] / "docs" / "ground_truth.md").read_text("utf-8")
LIBRARIES = {"nnsight": "nnsight", "pyvene": "pyvene", "TransformerLens": "transformer_lens"}


def sections() -> dict[str, str]:
    """The Python code of the page, by the heading that it stands under."""
    parts = re.split(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)
    code = {
        title: "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
        for title, text in zip(parts[1::2], parts[2::2])
    }
    return {title: text for title, text in code.items() if text}


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What the page has made before it comes to the libraries."""
    place, names = tmp_path_factory.mktemp("page"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for title, text in sections().items():
            if title not in LIBRARIES and title != "PyTorch":
                exec(compile(text, title, "exec"), names)
    names["place of the page"] = place
    return names


@pytest.mark.parametrize("title", ["PyTorch", *LIBRARIES])
def test_each_library_patches_the_model_as_printed(title: str, scope: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    if title in LIBRARIES:
        pytest.importorskip(LIBRARIES[title])
    text = sections()[title]
    assert "assert torch.equal(" in text and len(text.splitlines()) <= 20
    monkeypatch.chdir(scope["place of the page"])
    if title == "nnsight":  # it reads the source of its with-block from a file
        script = Path("nnsight_page.py")
        script.write_text(text)
        exec(compile(text, str(script.absolute()), "exec"), dict(scope))
    else:
        exec(compile(text, title, "exec"), dict(scope))


def test_save_is_ours_beside_nnsight() -> None:
    """It gives every object of Python a method `save`; what a package imports late must not be taken for it."""
    pytest.importorskip("nnsight")
    assert hasattr(object, "save")
    assert compiler.save is compiler.artifact.save.save and compiler.graft.save is compiler.graft.directory.save


@pytest.mark.parametrize("mixer", MIXERS)
def test_the_states_of_transformer_lens_are_exact(mixer: str, tmp_path: Path) -> None:
    bridges = pytest.importorskip("transformer_lens.model_bridge")
    compile_circuit(two_brackets.circuit(3, 100), mixer).save(tmp_path / "two")
    model = load(tmp_path / "two")
    bridge = bridges.TransformerBridge.boot_transformers(str(tmp_path / "two"), dtype=torch.float32)
    word = model.truth.compiled.source.token_language.sample(1, 50, 0)
    with torch.no_grad():
        _, cache = bridge.run_with_cache(torch.from_numpy(word), use_cache=False)
    with pytest.raises(RuntimeError, match="conv1d.hook_out"):
        bridge.blocks[0].mixer.compute_ssm_state(cache, 0)
    for block in bridge.blocks:
        block.mixer.eager_scan = True
    with torch.no_grad():
        scores, cache = bridge.run_with_cache(torch.from_numpy(word), use_cache=False)
    trace = model.trace(word[0].tolist())
    assert np.array_equal(scores[0].double().numpy(), trace.scores)
    for i in range(len(bridge.blocks)):
        mixer_ = bridge.blocks[i].mixer
        used = sorted(model.truth.layout.axes[f"backbone.layers.{i}.mixer.out_proj.weight"][1].places)
        hooked = cache[f"blocks.{i}.mixer.hook_ssm_state"].detach()
        computed = mixer_.compute_ssm_state(cache, i).detach()
        block = trace.block(i + 1)
        expected = block.states()
        attention = mixer_.compute_effective_attention(cache, i, include_dt_scaling=True).detach()[0].double().numpy()
        attention = attention.repeat(len(expected[0]) and model.blocks[i].d_inner // len(attention), axis=0)[used]
        assert np.array_equal(np.einsum("cij,jc->ic", attention, block.x), np.einsum("tcn,tn->tc", expected, block.C))
        assert np.array_equal(_by_time(computed, 2)[:, used], expected)
        assert np.array_equal(_by_time(hooked, 2 if mixer == "mamba" else 1)[:, used], expected)


def _by_time(states: torch.Tensor, time: int) -> np.ndarray:
    """States of one sequence as (time, channels, columns), from the axis on which time stands."""
    return states.movedim(time, 1)[0].flatten(1, -2).double().numpy()
