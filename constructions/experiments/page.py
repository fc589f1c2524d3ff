"""Markdown pages of kept rows: the programs after paper B, and the experiments of papers A and C."""

from __future__ import annotations

from collections.abc import Sequence

from constructions.experiments.catalogue import EXPERIMENTS
from constructions.experiments.kept_rows import KeptRows, order
from constructions.experiments.run import Row, chosen, row_key
from constructions.experiments.tables import columns, notes

_PAPERS = """# The papers' experiments

Written by `construct reproduce` from `{source}`; it is not edited by hand. For each experiment:

    construct reproduce ITEM --samples 32 [--plot FILE] [--train] [--keep {source}]

`--list` names all items. `--train` trains what has no result yet (a minute each on one core; three seeds at once).
Without `--keep` everything that is built is built again. *right*: answers of the built model, on adversarial and random
sequences, each the strict maximum; all scores equal the interpreter's bit for bit (on real numbers: within the proved
bound). *bound* and *built*: d_model·d_inner·N, the largest over the blocks; no bound where the paper states none.
*needed*: bits that any state must hold to answer every question of the promised inputs, where all counts that is
carried from token to token, windows of convolutions too (for induction heads and KEEP n-th log2 of the exact number of
states, rounded up).
*trained*: the best of the seeds on 1,000 fresh sequences; what was trained stands at the end, with its budget.

[The programs after paper B](chains.md) have a page of their own. So have [statements that do not stand as they
are](truths.md).
"""

_PROGRAMS = """# The programs built after paper B: what was run

Written by `construct reproduce` from `{source}`; it is not edited by hand. `--keep {source}` runs only what is not
there yet, `--only "edit-distance mamba2"` only some models, `--page` writes this page. Without the file all runs again.

Each model is compiled and run on prompts with their chains, forced token by token (*queries*: answers that were asked
for, each the strict argmax over the whole vocabulary, all scores equal to the interpreter's). Then its saved
checkpoint writes by itself, against an independent solver: the tokens of `step`, of transformers' `generate()` with
its cache and without it, and of the longest chain in one pass. [dp.md](dp.md) tells why that is a proof of
generation. *CPU s* are seconds of the processor from the circuit to the last token. Parameters have the names of
construction.json; `construct` asks for `amount` as `--length`.
"""


def page(kept: KeptRows) -> str:
    """All rows that a file has: a table for each experiment."""
    programs = any(kept.of(name) for name, experiment in EXPERIMENTS.items() if experiment.written)
    parts = [(_PROGRAMS if programs else _PAPERS).format(source=kept.path.name)]
    for name, experiment in EXPERIMENTS.items():
        rows = kept.of(name)
        if rows and experiment.written:
            table = _program_table(sorted(rows, key=order), _missing(name, rows))
            parts.append(f"## {experiment.title}\n\n`construct reproduce {name}`\n\n{table}")
        elif rows:
            parts.append(_paper_table(name, rows, kept))
    if kept.trained:
        parts.append(_trained(kept.trained))
    return "\n".join(parts)


def _paper_table(name: str, rows: Sequence[Row], kept: KeptRows) -> str:
    experiment = EXPERIMENTS[name]
    place = {row_key(entry): number for number, entry in enumerate(chosen(name))}
    rows = sorted((row for row in rows if row.key in place), key=lambda row: place[row.key])
    heads, cells = columns(rows, kept.trained)
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}", *(f"| {' | '.join(row)} |" for row in cells)]
    missing = len(place) - len(rows)
    told = [f"- {note}" for note in notes(experiment, rows, heads)]
    told += [f"- {missing} rows were not run."] if missing else []
    text = "\n".join([*lines, "", *told])
    drawn = (
        f"![{experiment.title}](figures/{name}.png)\n\n" if (kept.path.parent / f"figures/{name}.png").exists() else ""
    )
    return f"## {experiment.title}\n\n`construct reproduce {name}`\n\n{drawn}{text}\n"


def _trained(trained: dict[str, dict]) -> str:
    """Every control with its budget and its curve."""
    lines = [
        "## What was trained\n",
        "Adam with a cosine schedule, gradients clipped to norm 1 for each seed, 20,000 fixed sequences, one thread;",
        "the curve is the best seed's, after each fifth of the steps. Accuracy, or squared error over the",
        "variance (err).\n",
        "| model, task and budget | each seed | curve | parameters |",
        "| --- | --- | --- | ---: |",
    ]
    for name, result in sorted(trained.items()):
        curve = result["curve"]
        points = [curve[len(curve) * i // 5 - 1][2] for i in range(1, 6)]
        unit = " err" if result["measure"] == "error" else ""
        seeds = " ".join(f"{q:.2f}" for q in result["quality"]) + unit
        lines.append(f"| {name} | {seeds} | {' '.join(f'{p:.2f}' for p in points)} | {result['parameters']:,} |")
    return "\n".join(lines) + "\n"


def _missing(experiment: str, rows: Sequence[Row]) -> list[str]:
    """The models of an experiment that have no row."""
    run = {row.key for row in rows}
    built = [entry.built for entry in chosen(experiment) if entry.built and row_key(entry) not in run]
    return [f"{c.name} {c.target} {c.dtype}" for c in built]


def _program_table(rows: Sequence[Row], missing: Sequence[str]) -> str:
    right, refused = sum(row.good and not row.refused for row in rows), sum(bool(row.refused) for row in rows)
    lines = [
        f"{len(rows)} of {len(rows) + len(missing)} models were run: {right} right, {refused} refused, "
        f"{len(rows) - right - refused} wrong.\n",
        *([f"Not run: {'; '.join(missing)}.\n"] if missing else []),
        "| model | mixer | dtype | right of queries | bits | channels · columns | tokens written | CPU s |",
        "| --- | --- | --- | ---: | --- | ---: | ---: | ---: |",
        *map(_line, rows),
        "",
    ]
    reasons = [f"- {row.parameters}, {row.arch}, {row.dtype}: {row.refused}." for row in rows if row.refused]
    return "\n".join([*lines, *(["Refused:\n", *reasons, ""] if reasons else [])])


def _line(row: Row) -> str:
    told = f"| {row.parameters} | {row.arch} | {row.dtype} |"
    if row.refused:
        return f"{told} refused | | | | {row.cpu_seconds:,.0f} |"
    right = f"{round(row.accuracy * row.queries):,} of {row.queries:,}"
    wrong = [f"WRONG ({run['runtime']}) after {run['wrong']}" for run in row.written if run["wrong"]]
    wrote = ", ".join(wrong or (f"{run['tokens']:,}" for run in row.written))
    bits, used = "equal" if row.bit_exact else "DIFFER", row.used
    return f"{told} {right} | {bits} | {used['d_inner']} · {used['d_state']} | {wrote} | {row.cpu_seconds:,.0f} |"
