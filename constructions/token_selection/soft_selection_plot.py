"""The picture of a selection: scores, soft weights and the token that is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from compiler import digits


def draw(found: dict[str, Any], path: str | Path) -> None:
    """found: of `soft_selection.one_selection`; scores, weights (of the softmax and of the networks) and values."""
    from matplotlib.figure import Figure

    from constructions.pictures.page import save

    figure = Figure(figsize=(9.5, 3.4), dpi=150, layout="constrained")
    scores, weights, values = figure.subplots(1, 3)
    place, chosen = np.arange(len(found["keys"])), found["chosen"]
    colors = ["C1" if j == chosen else "C0" for j in place]
    scores.bar(place, found["scores"], color=colors)
    scores.set_title(f"scores <k, q>, the query is key {found['query']}", fontsize=9)
    weights.bar(place - 0.2, found["softmax"], 0.4, color="0.7", label=f"softmax, χ = {found['chi']:.3g}")
    weights.bar(place + 0.2, np.maximum(found["networks"], 0), 0.4, color=colors, label="networks")
    weights.set_yscale("symlog", linthresh=1e-6)
    weights.set_ylim(0, 2)
    weights.set_title("soft weights", fontsize=9)
    weights.legend(fontsize=7)
    for b, output in enumerate(found["output"]):
        values.plot(place, [value[b] for value in found["values"]], "o", color=f"C{b + 2}", label=f"v[{b}]")
        values.axhline(output, color=f"C{b + 2}", linewidth=1)
    values.axvspan(chosen - 0.4, chosen + 0.4, color="C1", alpha=0.2, label="chosen")
    values.set_title(f"values, output (lines) within {digits.at_most(found['bound'], 2)}", fontsize=9)
    values.legend(fontsize=7)
    for axes in (scores, weights, values):
        axes.set_xticks(place, [f"{k}" for k in found["keys"]])
        axes.set_xlabel("key of the token")
    save(figure, path)
