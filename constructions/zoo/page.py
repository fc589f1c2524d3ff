"""docs/zoo.md, written from the rows of a directory, which come from one run of `construct zoo build` or several.

    construct zoo build --all --out out/zoo
    construct zoo build --all --arch mamba2 --out out/zoo2
    python -m constructions.zoo.page out/zoo/zoo.json out/zoo2/zoo.json docs/zoo.md

keeps the rows beside the circuits (measured.json) and writes the page from them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from constructions.zoo.collection import FAMILIES, entries
from constructions.zoo.entry import Family
from constructions.zoo.measured import MAMBA2, MEASURED, total
from constructions.zoo.row import ASKED, Row, read_rows, write_rows

HEAD = """# The zoo

{count} small circuits whose inner workings are known: each is a model in which every lane has a name and a
meaning. Use them to test a method that looks for algorithms in state-space models.

    construct zoo list
    construct zoo show count-since-b-to-8
    construct zoo build count-since-b-to-8 'tomita-*' --out out/zoo
    construct zoo data count-since-b-to-8 --out out/zoo-data

Arguments are names, families, or globs; `--all` takes every circuit, `--json` prints for machines. `build`
compiles each circuit, writes its checkpoint, lets the [checker](proofs.md) prove it from the files, and asks
the saved model {asked} random sequences. The checkpoint loads in plain transformers and holds the circuit's
[causal graph](ground_truth.md); the same circuit gives the same bytes each time. What stands in
DIR/NAME is replaced only where it is as an earlier run left it (`zoo.json` knows that by a hash), else it is left
alone with a sentence. The exit code is 1 if a circuit is left alone or refused, a score is not exact, an answer is
wrong, or the weights are not proved.
`--arch mamba2` builds circuits as Mamba-2; one that cannot be built so is told with the reason, and the exit code
is 1. `show` prints the circuit's code and the plain Python that answers beside it; `construct report --zoo --out
zoo.html` puts all circuits on one page to look at.

## Data with labels

`data` writes `train.parquet` and `test.parquet` for each circuit:

```python
from datasets import load_dataset

rows = load_dataset("out/zoo-data/count-since-b-to-8", split="train")
```

Each row is a sequence: `text`, `tokens`, `answers` (the right token behind each, null where nobody asks), and a
column for **every named variable** of the circuit, with a label at every position. A *flag* is 0 or 1, a
*choice* the number of the alternative (−1: none there); variables of several lanes have a list at each position.
A variable that is itself called `text`, `tokens` or `answers` has the column `text#2`, and so on. The labels come
from the interpreter in exact arithmetic. The Parquet schema says of each variable its name, kind, width and source
line. Train and test share no sequence; a circuit with one sequence has no test. The same arguments give the same
bytes by one version of pyarrow, which writes its version into each file. `pip install '.[zoo]'` brings pyarrow and
datasets.

## What is proved

*weights and answers*: for every input of the promise, every score is the circuit's, bit for bit, and every
answer is right. *weights*: every score is the circuit's; the answers are tested against plain Python, which
shares no code with the circuit, on all short sequences and on random ones. A circuit whose weights are not
proved fails `build`. `construct prove DIR --certificate FILE` writes the steps of a proof for
[the small kernel](proofs.md#the-small-kernel-what-it-proves-today), where it proves the circuit, and says so where
it does not.

## Which brackets are which

`dyck-K-D` (family *languages*) says whether the text is well nested, with K kinds of brackets and at most D
open; `d-D` is the same language as `dyck-1-D`, with `a` and `b` for the brackets. Where at most D are open,
`stack-K-kinds-D-deep` answers the bracket that closes the innermost open one, `right-kinds-K-D` whether each bracket
closed one of its kind, `depth-D` how many are open, and `deepest-D` the most that were. `whole-N` has no bound on
the depth, and one on the length.

## The circuits

Written by `python -m constructions.zoo.page` from `construct zoo build --all`, which built {built} of
the {count} circuits in {cpu:,.0f} CPU seconds: {exact} exact; weights and answers proved of {answers}, weights of
{scores}; {right:,} of {questions:,} answers right. *Size*: blocks / lanes / memories / lags, where *lanes* are
numbers of the residual stream, *memories* keyed memories, and *lags* the positions that the longest shift looks
back.

With `--arch mamba2` it built {built2} circuits in {cpu2:,.0f} CPU seconds: {exact2} exact; {right2:,} of
{questions2:,} answers right; weights and answers proved of {answers2}, weights of {scores2}{unproved2}.
*Mamba-2*: blocks / lanes of these, and what is proved where that is not the same.
"""
PROVED = {"answers": "weights and answers", "scores": "weights", "": "nothing"}
Rows = Mapping[str, Row]


def page(rows: Rows, second: Rows) -> str:
    """The page; circuits without a row are told as such. second: the rows of Mamba-2."""
    numbers = _numbers(rows) | {f"{key}2": value for key, value in _numbers(second).items()}
    head = HEAD.format(count=len(entries()), asked=ASKED, **numbers)
    return head + "".join(_table(family, rows, second) for family in FAMILIES)


def _numbers(rows: Rows) -> dict[str, Any]:
    """What the head says of a run."""
    ordered = [rows[name] for name in entries() if name in rows]
    found, failed = total(ordered), [f"`{row.name}`" for row in ordered if not row.proof]
    return {
        "built": len(ordered),
        "cpu": found["cpu_seconds"],
        "exact": found["exact"],
        "answers": found["proved"]["answers"],
        "scores": found["proved"]["scores"],
        "unproved": f", nothing of {', '.join(failed)}" if failed else "",
        "right": found["right"],
        "questions": found["questions"],
    }


def _table(family: Family, rows: Rows, second: Rows) -> str:
    lines = [
        f"\n### {family.name}: {family.title}\n",
        "| circuit | answers behind each token | size | proved | Mamba-2 |",
    ]
    lines.append("| --- | --- | --- | --- | --- |")
    for entry in family.entries:
        row, says = rows.get(entry.name), entry.says.replace("|", "\\|")
        size, proved = "–", "not measured"
        if row is not None:
            size = " / ".join(str(row.difficulty[name]) for name in ("blocks", "lanes", "memories", "lags"))
            proved = PROVED[row.proof]
        lines.append(f"| `{entry.name}` | {says} | {size} | {proved} | {_second(row, second.get(entry.name))} |")
    return "\n".join(lines) + "\n"


def _second(first: Row | None, row: Row | None) -> str:
    if row is None:
        return "–"
    size = f"{row.difficulty['blocks']} / {row.difficulty['lanes']}"
    return size if first and row.proof == first.proof else f"{size}, {PROVED[row.proof]}"


def main(kept: Path, second: Path, out: Path) -> None:
    """Keep the rows of both files, and write the page; rows of circuits that have changed since are left out."""
    from constructions.zoo.build import circuit_hash  # not at the top: it starts PyTorch

    def of(path: Path) -> dict[str, Row]:
        found = read_rows(path)
        return {n: found[n] for n, entry in entries().items() if n in found and found[n].circuit == circuit_hash(entry)}

    rows, others = of(kept), of(second)
    text = page(rows, others)
    write_rows(MEASURED, circuits=list(rows.values()), **{MAMBA2: list(others.values())})
    out.write_text(text, "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
