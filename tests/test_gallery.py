"""The gallery: every circuit answers as its own plain Python does, on every short string, as a real Mamba and
Mamba-2.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from compiler import bare, compile

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
PAGES = sorted(path.stem for path in GALLERY.glob("*.py"))


def _page(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", GALLERY / f"{name}.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    return page


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_gallery_is_right_on_every_short_string(name: str, target: str) -> None:
    page = _page(name)
    language, names = page.LANGUAGE, page.ALPHABET.tokens
    model = bare(compile(page.circuit(), target))
    checked, length = 0, 1
    while length <= language.max_length and checked < 2000:
        words = np.array(list(language.strings(length)))
        with torch.no_grad():
            answers = model(torch.from_numpy(words))[:, -1].argmax(-1).numpy()
        for word, answer in zip(words, answers, strict=True):
            assert names[answer] == page.plain_python([names[i] for i in word]), (length, [names[i] for i in word])
        checked, length = checked + len(words), length + 1
    longest = language.sample(20, language.max_length, seed=0)
    with torch.no_grad():
        answers = model(torch.from_numpy(longest)).argmax(-1).numpy()
    for word, row in zip(longest, answers, strict=True):
        spelled = [names[i] for i in word]
        assert [names[i] for i in row] == [page.plain_python(spelled[: t + 1]) for t in range(len(spelled))]


@pytest.mark.parametrize(("target", "blocks"), [("mamba", 3), ("mamba2", 4)])
def test_a_long_chain_of_flags_takes_few_blocks(target: str, blocks: int) -> None:
    assert len(compile(_page("flat_json").circuit(), target).blocks) <= blocks


def test_the_gallery_holds_what_its_readme_lists() -> None:
    assert len(PAGES) >= 7
    listed = (GALLERY / "README.md").read_text("utf-8")
    assert all(f"({name}.py)" in listed for name in PAGES)
