"""The table of an experiment, for a terminal and for a Markdown page: columns that no row fills are left out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Column, Table

from compiler.digits import at_most, percent
from constructions.command.display import console
from constructions.experiments.entry import Experiment
from constructions.experiments.names import MIXERS
from constructions.experiments.run import Row
from verify.task_states import whole_bits

NARROW = 110  # columns of a terminal; below, a table leaves out what --json tells
LETTERS = {"kappa": "κ", "vocab": "V", "n": "n", "largest": "counts to", "key_code": "code", "max_d_state": "split"}
_FULL = ("d_model", "d_inner", "d_state")
Trained = Mapping[str, dict]


def show(name: str, experiment: Experiment, rows: Sequence[Row], trained: Trained) -> None:
    """Print the table and what its letters mean."""
    narrow = console.width < NARROW
    heads, cells = columns(rows, trained, narrow)
    wide = ("model", "written", "trained", "paper")
    style = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)} if narrow else {}
    table = Table(*(Column(head, overflow="fold", no_wrap=head not in wide) for head in heads), title=name, **style)
    for row in cells:
        table.add_row(*row)
    console.print(table)
    for line in notes(experiment, rows, heads):
        for part in textwrap.wrap(line, console.width, subsequent_indent="  "):
            console.print(part)


def columns(rows: Sequence[Row], trained: Trained, narrow: bool = False) -> tuple[list[str], list[list[str]]]:
    """(heads, the cells of every row)."""
    shown = _FULL[1:] if narrow else _FULL
    found = {
        "model": [label(row) for row in rows],
        "paper": [row.paper for row in rows],
        "right": [_right(row) for row in rows],
        "bound": [_sizes(row.bound, shown) for row in rows],
        "built": [_sizes(row.used, shown) for row in rows],
        "state": [_state(row) for row in rows],
        "needed": [f"{whole_bits(row.information_bits)} bit" if row.information_bits else "" for row in rows],
        "parameters": [f"{row.parameters_of_model:,}" if row.parameters_of_model else "" for row in rows],
        "written": [_written(row) for row in rows],
        "trained": [" ".join(_trained(trained[name]) for name in row.controls if name in trained) for row in rows],
    }
    if narrow:
        found["state"] = found["state"] if any("state" in row.bound for row in rows) else []
        found["needed"] = found["parameters"] = []
    used = {head: cells for head, cells in found.items() if any(cells)}
    return list(used), [list(row) for row in zip(*used.values(), strict=True)]


def label(row: Row) -> str:
    """The paper's model, or ours: mixer, parameters, and a dtype other than float32."""
    words = [row.model + (":" if row.model and row.arch else "")]
    if row.arch:
        mixer = MIXERS[row.arch] if MIXERS[row.arch] not in row.model else ""
        words += [mixer, parameters(row), row.dtype if row.dtype != "float32" else ""]
    if all(row.room):
        words.append(f"in {row.room[0]}·{row.room[1]}")
    return " ".join(word for word in words if word)


def parameters(row: Row) -> str:
    """ "kappa=4 vocab=128" as "κ 4 V 128"."""
    words = [word.split("=") for word in row.parameters.split()]
    return " ".join(" ".join([LETTERS.get(word[0], word[0]), *word[1:]]) for word in words)


def _right(row: Row) -> str:
    if row.refused:
        return "refused"
    if not row.arch:
        least = f" (≤ {at_most(100 * row.ceiling)} %)" if row.ceiling < 1 else ""
        return f"cannot{least}" if row.cannot else "none"
    right = f"{percent(row.accuracy, 4)} %"
    bits = "" if row.bit_exact else ", bits DIFFER"
    return right + bits + ("" if row.fits else ", wider")


def _sizes(sizes: Mapping[str, int], names: Sequence[str]) -> str:
    told = "·".join(str(sizes.get(name, "–")) for name in names)
    return told if told.strip("·–") else ""


def _state(row: Row) -> str:
    if "state" not in row.bound or not row.used:
        return str(row.state_entries or "")
    used, bound = row.used["state"], row.bound["state"]
    return f"{used} of {bound}" + (" (above)" if used > bound else "")


def _written(row: Row) -> str:
    """How many tokens each runtime wrote, or the first prompt after which one was wrong; why there is no model."""
    wrong = [f"WRONG ({run['runtime']}) after {run['wrong']}" for run in row.written if run["wrong"]]
    wrote = ", ".join(wrong or (f"{run['tokens']:,}" for run in row.written))
    return wrote or (textwrap.shorten(row.refused, 60, placeholder="…") if row.refused and not row.model else "")


def _trained(result: dict) -> str:
    """The best of the seeds; squared errors over the variance are marked."""
    error = result["measure"] == "error"
    best = min(result["quality"]) if error else max(result["quality"])
    return f"{best:.2f}{' err' * error}"


def notes(experiment: Experiment, rows: Sequence[Row], heads: Sequence[str]) -> list[str]:
    """What the columns are, where bounds come from, and why rows have no model: a sentence each."""
    sizes = "d_model·d_inner·N" if any(row.used for row in rows) else ""
    told = [experiment.note] if experiment.note else []
    if sizes and "bound" in heads:
        told.append("bound, built: d_model·d_inner·N, or d_inner·N; state: numbers carried; needed: bits of any state.")
    if any(row.arch and not row.fits for row in rows):
        told.append("wider: all is right, with more channels or columns than the paper's model has.")
    if "written" in heads and any(row.written for row in rows):
        told.append("written: tokens by step, and by transformers' generate() (three ways).")
    if "trained" in heads:
        told.append("trained: the best of three seeds, at the small size (experiments.md tells sizes and curves).")
    for head, values in (
        ("bound", [row.bound_source for row in rows]),
        ("cannot", [row.cannot for row in rows]),
        ("refused", [row.refused for row in rows if row.model]),
        ("none", [row.absent for row in rows]),
    ):
        told += [f"{head}: {value}" for value in dict.fromkeys(values) if value]
    return told
