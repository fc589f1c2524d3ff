"""docs/automata.md and `construct reproduce languages`: named languages and random automata, and what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from constructions.command.display import console, progress
from constructions.command.reporting import strict_json, table_of, verdict
from constructions.experiments.names import WHAT
from constructions.experiments.table_files import TableFiles

HEAD = """# Every regular language

    construct automaton --regex '(a|b)*abb' --explain
    4 states, 7 elements, star-free (Schützenberger 1965), 2 resets (Krohn and Rhodes 1965).
    Mamba: 3 blocks, every length. Mamba-2: at most 5 blocks, every length.
    …
    construct automaton --regex '(a|b)*abb' --out out/abb

The first says what the language is, and which mixer can hold it for how long. The second writes the checkpoint, which
answers `yes` or `no` behind every letter, and proves it: from the weights, for every sequence of every length.

## An automaton of your own

A language is a regular expression, a table, or a name (`--name tomita-4`; all names stand in the table below). Letters
of an expression are single characters; `--letters abc` adds some that it does not name.

```json
{"start": "low", "classes": {"low": "L", "high": "H"},
 "transitions": {"low": {"up": "high", "down": "low"}, "high": {"up": "high", "down": "low"}}}
```

`construct automaton --table FILE` takes this. With `"accept": ["high"]` in the place of `classes` the answers are `yes`
and `no`. `--length 1000` promises less than every length, `--arch mamba2` takes another mixer.

In a circuit the state is a stream like any other:

```python
from compiler import Alphabet, Tokens, automaton, count

x = Tokens(Alphabet.of("a", "b", "c", "yes", "no"))
alternates = automaton("(ab)*", x)  # a flag; c is no letter of it and leaves it as it is
door = {"shut": {"a": "open", "b": "shut"}, "open": {"a": "open", "b": "shut"}}
state = automaton(door, x, start="shut")  # a OneHot: state[1] is 1 while the door is open
through = count(x.is_in("c") & state[1], reset=state[0])  # how often c since it opened
```

## What a monoid is

Every word maps each state to the state behind it. The maps of all words, of which there are finitely many, are the
*transition monoid*. Some words put different states together: a *reset* puts all of them into one. Others permute
states around a circle, as `a` does with the states *even* and *odd* of "an even number of a's". Such a word and its
powers are a *group*. An automaton whose monoid holds no group (but {1}) is **star-free** (Schützenberger 1965): its
language can be written with ∪, · and complement, without the star.

Krohn and Rhodes (1965) take every automaton apart into a *cascade*: levels, each of which reads those above it. Without
groups each level is a reset: it keeps a small number until the letter, and what stands above, set it anew.

    letter ──┬────────────┬────────────┬───────────┐
             ▼            ▼            ▼           ▼
          level 0 ──▶  level 1 ──▶  level 2 ──▶  answer
          a latch      a latch      a latch      a table

A reset is what a state of Mamba keeps exactly and for ever: h ← exp(−Δ)·h + Δ·B·x̂ with Δ = 0, which leaves h bit for
bit, or Δ = 128, which erases it. What a level sets, and whether, are tables of one number, the letter and the levels
above, and tables are sums of ramps relu(x − k). A latch is linear in what it stores, so each ramp is latched by itself,
in the block that makes it: **one block for each level, and one for the answer**. On Mamba-2 no rectified number reaches
Δ within a block, so a level takes two.

![The states of the levels over time](figures/automaton-state.png)

A group would need a state that turns: an eigenvalue below 0, or a complex one. Mamba and Mamba-2 have none, so

- **star-free**: compiled, and proved for every length. At fixed precision a diagonal non-negative state-space model
  holds exactly these (Sarrof, Veitsman and Hahn 2024).
- **letters that permute all states and commute** (parity holds C_2): a count of each, modulo a number. That takes a
  threshold for each multiple, so the length is bounded: `--length 500`, three blocks, proved.
- **another group that can be solved** (S_3, or C_2 beside resets): refused. It needs other eigenvalues (Grazzi et al.
  2024), or a length that is bounded and more blocks than are tried here.
- **a group that cannot** (A_5): refused. Its word problem is complete for NC^1 (Barrington 1989; Merrill, Petty and
  Sabharwal 2024).

## What is proved

That the weights compute the circuit exactly, that the circuit answers what the automaton answers, and that every
special token scores below; all of it for every length, as [the proofs](proofs.md) tell (*latches of one flag*, *every
length*). The checker knows the table as you gave it and nothing of its decomposition: it walks circuit and automaton
side by side over all that can be reached.

Caps, each with a sentence: 4,096 states; 65,536 elements of the monoid (beyond, groups that were met are told); 4,096
sets of states that words lead to; 2^18 states × levels × letters of a cascade; 4,096 situations of the proof.

## Languages of the literature

    construct reproduce languages --keep docs/automata.json --page docs/automata.md

writes this page. *Blocks / d_model*: of the bare model. *Wrong*: answers of the language model on 8 random words of 500
letters and one of 10,000. *Proved*: weights and answers, for every length, or to 500 letters where there is a group.

"""
RANDOM = """
## Random automata

{count} automata of 2 to 8 states over two or three letters, drawn uniformly: {star_free} are star-free and compile
for Mamba in {blocks} blocks or fewer, {solvable} hold groups that can all be solved, {hard} hold one that cannot. The
blocks of the star-free ones answered 20 words of 200 letters each: {wrong} wrong.
"""


def page(rows: list[dict[str, Any]], drawn: list[dict[str, Any]]) -> str:
    """The whole page."""
    return HEAD + _table(rows) + _random(drawn)


def _table(rows: list[dict[str, Any]]) -> str:
    archs = list(dict.fromkeys(row["arch"] for row in rows))
    columns = ["language", "source", "states", "monoid", "groups", "levels"]
    columns += [column for arch in archs for column in (f"{arch}: blocks / d_model", "wrong", "proved")]
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    names = list(dict.fromkeys(row["name"] for row in rows))
    for name in names:
        own = {row["arch"]: row for row in rows if row["name"] == name}
        first = next(iter(own.values()))
        cells = [f"`{name}`: {first['what'].replace('|', chr(92) + '|')}", first["source"], first["states"]]
        cells += [first["monoid"] or "–", ", ".join(first["groups"]) or "none", _shown(first["levels"])]
        for arch in archs:
            cells += _built(own.get(arch))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _shown(value: object) -> object:
    return "–" if value is None else value


def _built(row: dict[str, Any] | None) -> list[object]:
    if row is None:
        return ["–", "", ""]
    if "blocks" not in row:
        return ["refused", "", ""]
    proved = row.get("proved")
    said = "not asked" if proved is None else "yes" if all(proved.values()) else _parts(proved)
    length = "" if row["length"] is None else f", to {row['length']} letters"
    return [f"{row['blocks']} / {row['d_model']}{length}", sum(row["wrong"].values()), said]


def _parts(proved: dict[str, bool]) -> str:
    left = [part for part, held in proved.items() if not held]
    return "weights, not the answers" if left == ["task"] else f"not {', '.join(left)}"


def _random(drawn: list[dict[str, Any]]) -> str:
    if not drawn:
        return ""
    built = sorted(row["blocks"] for row in drawn if "blocks" in row)
    return RANDOM.format(
        count=len(drawn),
        star_free=len(built),
        blocks=built[-1],
        solvable=sum(1 for row in drawn if row["groups"] and row["solvable"]),
        hard=sum(1 for row in drawn if not row["solvable"]),
        wrong=sum(row.get("wrong", 0) for row in drawn),
    )


def reproduce(
    only: list[str], seed: int, keep: Path | None, page_at: Path | None, files: TableFiles, as_json: bool
) -> None:
    """Run what the file of results does not hold, and show or write all of it; exit code 1 where an answer is wrong."""
    from constructions.automata.reproduce import RANDOM as COUNT
    from constructions.automata.reproduce import Run, kept_random, kept_rows, names

    with progress(quiet=as_json) as bars:
        advance, rows = bars("languages", len(only or names())), []
        for row in kept_rows(keep, only, Run(seed)):
            rows.append(row)
            advance(1)
        with bars.stage("random automata"):
            drawn = [] if only else kept_random(keep, COUNT)
    if page_at:
        page_at.write_text(page(rows, drawn), "utf-8")
    files.write_records(WHAT["languages"], rows)
    good = all(row["good"] for row in rows) and not any(row.get("wrong") for row in drawn)
    if as_json:
        typer.echo(strict_json({"rows": rows, "random": drawn, "good": good}))
    else:
        shown = ("name", "arch", "states", "monoid", "levels", "blocks", "d_model")
        console.print(table_of([dict.fromkeys(shown) | row for row in rows], shown, tight=True))
    verdict(good)
