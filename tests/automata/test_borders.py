"""The attacks on lengths and on entries of config.json: a part of each, and what each must be able to find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.automata import entries, lengths


@pytest.fixture(scope="module")
def parity() -> lengths.Case:
    return lengths.cases()["parity"]("float32")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "WHOLE", (1, 64, 65))
    monkeypatch.setattr(lengths, "BORDERS", (63,))
    monkeypatch.setattr(lengths, "RAGGED", (1, 64, 66))


def test_parity_is_right_at_borders(parity: lengths.Case) -> None:
    found = lengths.attacked("parity", parity, "float32")
    assert found["wrong"] == []
    assert found["asked"] == {"whole": 260, "steps": 134, "pieces": 134, "padded": 131, "padded,": 143, "generated": 24}


@pytest.mark.parametrize("kind", ["whole 65", "steps after 63", "pieces of 63 and 4", "padded", "padded, then steps"])
def test_one_wrong_answer_behind_a_border_is_found(parity: lengths.Case, kind: str) -> None:
    """Whatever answers wrong at letter 65 alone, the oracle or a model, differs there in each form of text."""

    def wrong_once(text: list[str]) -> list[str | None]:
        said = parity.answers(text)
        return [{"yes": "no", "no": "yes"}[str(w)] if at == 64 else w for at, w in enumerate(said)]

    found = lengths.attacked("parity", replace(parity, answers=wrong_once), "float32")
    assert f"{kind}: position" in " ".join(found["wrong"])


def test_entries_are_changed_in_every_way_and_a_wrong_answer_is_told(tmp_path: Path) -> None:
    changed = [
        said for said, _ in entries.changes({"layer_types": ["linear_attention", "full_attention"], "eps": 1e-6})
    ]
    assert {"eps left out", "eps = 0", "layer_types = ['full_attention', 'linear_attention']"} <= set(changed)
    assert "rope_theta = 0.0 added" in changed
    circuit, answers, letters = entries.circuit_of("parity")
    directory = entries.write(tmp_path / "at", circuit, "gated-deltanet")
    places = {token: i for i, token in enumerate(circuit.token_alphabet.tokens)}
    assert entries.answered_wrong(directory, letters, places, answers) is None
    swapped = lambda text: [{"yes": "no", "no": "yes"}[str(w)] for w in answers(text)]
    assert "is right" in str(entries.answered_wrong(directory, letters, places, swapped))
    (directory / "config.json").write_text('{"model_type": "nonsense"}')
    assert "is not opened" in str(entries.answered_wrong(directory, letters, places, answers))
