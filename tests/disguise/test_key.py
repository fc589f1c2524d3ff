"""A key is read entry by entry: what is of another kind is told, and nothing is computed with it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from compiler.disguise.errors import DisguiseError
from compiler.disguise.key import read_key
from tests.json_places import at, places


@pytest.mark.parametrize("value", ["x", None, True, -1, 10**30, 1e999, [1], {}, 1.5])
@pytest.mark.parametrize("kind", ["permute", "scale", "mix", "patch"])
def test_a_key_with_any_entry_of_another_kind_is_refused_in_a_sentence(kind, value, tmp_path) -> None:
    legs = [["weight", 0, 0, 1]]
    steps: dict[str, dict[str, Any]] = {
        "permute": {"legs": legs, "order": [1, 0]},
        "scale": {"legs": legs, "exponents": [1, 2], "signs": [1, -1]},
        "mix": {"legs": legs, "to": 0, "of": 1, "factor": 2.0},
        "patch": {"legs": [], "what": {}, "entries": [["weight", 0, 1.0, 2.0]]},
    }
    weights = {"weight": np.array([2.0, 3.0], dtype=np.float32)}
    for path in filter(None, places(steps[kind])):
        step = json.loads(json.dumps(steps[kind] | {"kind": kind}))
        place = at(step, path[:-1])
        if place[path[-1]] == value and type(place[path[-1]]) is type(value):
            continue
        place[path[-1]] = value
        content = {"format": "disguise-key", "version": 1, "level": 1, "weights": "", "files": {}, "steps": [step]}
        (tmp_path / "key").write_text(json.dumps(content))
        try:  # or it is another key of the same form
            assert np.isfinite(read_key(tmp_path / "key").plain(weights)["weight"]).all()
        except DisguiseError as told:
            assert "Error" not in str(told) and "object" not in str(told).replace("an object is needed", "")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"steps": None}, "steps has None, where a list is needed"),
        ({"files": {"a": 1}}, "files has 1, where a text is needed"),
        ({"level": True}, "level has True, where a whole number below 2^31 is needed"),
        ({"steps": [3]}, "step 1 has none of the kinds permute, scale, mix, patch"),
        ({"steps": [{"kind": []}]}, "step 1 has none of the kinds permute, scale, mix, patch"),
        ({"steps": [{"kind": "permute", "order": [0]}]}, "step 1 (permute), legs is not there"),
        ({"steps": [{"kind": "permute", "order": [0], "legs": [["w", 0, 0]]}]}, "where a list of four is needed"),
    ],
)
def test_what_is_damaged_is_told_with_its_place(change, told, tmp_path) -> None:
    content = {"format": "disguise-key", "version": 1, "level": 1, "weights": "", "files": {}, "steps": []}
    (tmp_path / "key").write_text(json.dumps(content | change))
    with pytest.raises(DisguiseError) as raised:
        read_key(tmp_path / "key")
    assert str(raised.value).endswith(f"{told}.")
