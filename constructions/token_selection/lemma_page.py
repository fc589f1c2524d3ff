"""docs/selection_lemmas.md and its rows: `construct reproduce lemmas --samples 100000 --keep … --page …`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compiler.artifact.plain_files import text_of, write_whole
from compiler.digits import at_most
from constructions.token_selection import context_rows, lemma_kernels, soft_selection
from constructions.token_selection.lemmas import Row, cases

HEAD = """# The lemmas of paper D as ReLU networks

Paper D ("State Space Models are Provably Comparable to Transformers in Dynamic Token Selection") states Lemmas F.1–F.6,
H.1, H.3 and 3.3. The text that we read has lost their formulas, so the bounds and sizes here are ours, after its words:
each lemma is a network with every constant written out, in `constructions/token_selection/relu_gadgets/`; the proofs
are the docstrings. What F.4 (y/x), F.1 (the soft maximum) and H.1 (±1/√k, 1/2) are about is restored as well. Weights
are integers and fractions, so a network runs exactly, in float64 and as a torch module
(`compiler.machines.fnn_ssm.relu_network`).

    construct reproduce lemmas --samples 100000 --keep docs/selection_lemmas.json --page docs/selection_lemmas.md

writes this page (two minutes of a processor). A test builds every row again.

## Errors

Bound: proved. Error: the largest that was measured, corners among the points. x² is no item of F.3: our
products are made of it. *ours*: copying after Theorem 3.1 by random features, which is no lemma of the paper.

"""
SIZES = """
## Sizes

L: affine maps, W: width, S: nonzero weights, B: largest magnitude, D: channels between two networks, or terms of a
kernel. Built, and behind the stroke what is stated (`verify/lemma_bounds.py`) and never exceeded.

"""
SELECTION = """
## A selection

![scores, soft weights and the token that is chosen](figures/soft-selection.png)

`construct soft-selection --plot picture.png` draws it. f_1 makes products of waves of the key with the value, the
filter h = 1 adds them up, the skip lets the query pass, f_2 multiplies by the query's waves and divides. The weights of
the networks are the softmax's up to 10⁻⁵ here; below 10⁻⁶ the axis is linear.

- Keys are angles, unit vectors, vectors of any norm up to 1 (then e^(|k|²/2) is made by squares and the network of
  e^−x), or contexts of two words.
- The error against the softmax and the error against the chosen value are both held to their bounds.
- Without the skip the sum of all queries arrives: a test shows the wrong answer.

## Contexts of words

**H.3.** A context is n words of k signs, d' = nk. The tensor feature map of d' coordinates has 2^d' features on signs,
not (2A + 1)^d': cos is constant and sin odd there, so the waves of each coordinate collapse into 1 and the sign. The
features are products of signs, which networks make without an error; only the division errs. The bound is
2(T − 1)ρ^⌈k/4⌉ + ε/2 for T tokens. ε < 1 is enough to read the signs off; which error the lemma asks for is lost.

**After Theorem 3.1, features of ours.** F random signs bind a context, F = ⌈(28/3)(2N + 1)·ln(2N·d_v/ε')⌉, here for N =
6, V = 4, n = 3, ε' = 0.05, d_v = 3 (of four words and the separator). Three rows: how far a number of the answer is
from its sign (the bound holds but for a probability of 10⁻⁶, by Bernstein); the strings without a repeated context that
go wrong (ε'); and those of all strings (N²V^−n/2 + ε'). Nothing is divided, and every network is exact.

## What the words leave open

What a reader might fill in for the lost formulas, and what comes of it:

| filled in | what happens |
| --- | --- |
"""
FAILS = {
    "F.5, N for [0, A]": "N = max(2eA, log2 3/ε), A = log 3/ε, χ = 80, ε = 0.01: error {:.3g}. N grows with χ.",
    "H.3, key and query of the same words": "The last token matches itself in {:.0%} of cases. The key is one word "
    "behind.",
    "H.3, nothing before the start": "A cut-off context and one that does not match are {:.3g} apart; whole contexts "
    "1/(2n) = 1/6. A word of its own stands before the start.",
}
TAIL = """
Also: B of a product is max(4, C², 1/(2C)), not max(4, C²): for C = 1/16 it is 8. F.6 has (2A + 1)^d terms, and H.3's
map 2^(nk): exponential. H.1's k is lost; with ours, ⌈8(2 ln V − ln 2)⌉ = 28 signs for 8 words, H.3 cannot be built. Up
to k = 4 all 2^k vectors of signs are words with products of at most k/2, so H.3 is built for 4 words in contexts of 3
and 16 in contexts of 2. The row "contexts of 2 words, angles" has d' = n instead. The exact replacement is a one-hot
for each context.

## Lower bounds

`verify/obstructions.py` says what any exact model must have (information), and any that reads its memory
out by products (rank) or tells places apart by fixed filters (delays). A test holds each to all small instances.

- Information: copying N words of V takes N·log2 V bits of state, recall n_K·log2 V_v if all n_K keys are shown.
- Rank: a read-out for n keys takes l products or more for l stored pairs, and n/2 for √n + 1 of them, at any precision.
- Delays: a filter nearer than 1/√(2i) to a delay by i has more than i/2 states.

So no bound that is poly-logarithmic in words and length can hold for D with numbers of so many bits.
"""
LETTERS = ("L", "W", "S", "B", "D")


def rows(samples: int, seed: int) -> list[Row]:
    """Every row of the page."""
    networks = [case.row(samples, seed) for case in cases()]
    others = (lemma_kernels, context_rows, soft_selection)
    return [*networks, *(row for family in others for row in family.rows(samples, seed))]


def kept_rows(path: Path, samples: int, seed: int) -> list[Row]:
    """Those of a file where it has them for as many samples and this seed; otherwise they are run and written there."""
    told = {"samples": samples, "seed": seed}
    if path.exists():
        content = _content(path)
        if {name: content[name] for name in told} == told:
            return list(content["rows"])
    found = rows(samples, seed)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found)
    write_whole(path, json.dumps(told)[:-1] + f', "rows": [\n{lines}\n]}}\n')
    return found


def _content(path: Path) -> dict[str, Any]:
    """The file's; ValueError, in one sentence, for a file that is none of ours."""
    try:
        content = json.loads(text_of(path))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or {"samples", "seed", "rows"} - content.keys():
        raise ValueError(f"--keep {path}: it holds no rows of lemmas; give another file.")
    return content


def name(row: Row) -> str:
    """The first cells of a row."""
    return f"| {row['lemma']} | {row['what'].replace('|', chr(92) + '|')} |"


def error_line(row: Row) -> str:
    """A row of the table of errors up to its bound and, behind that, what was measured."""
    return f"{name(row)} {at_most(row['bound'])} | {row['points']} | {row['error']:.3g} |"


def size_line(row: Row) -> str:
    """A row of the table of sizes: built/stated."""
    return f"{name(row)} {' | '.join(_size(row, letter) for letter in LETTERS)} |"


def _size(row: Row, letter: str) -> str:
    built = row["sizes"].get(letter, row.get("terms") if letter == "D" else None)
    if built is None:
        return ""
    stated = row["stated"].get(letter)
    return _number(built) + (f"/{_number(stated)}" if stated is not None else "")


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4g}"


def page(found: list[Row]) -> str:
    """The whole page."""
    errors = ["| lemma | what | bound | points | error |", "|" + " --- |" * 5, *map(error_line, found)]
    sized = [row for row in found if row["sizes"] or "terms" in row]
    sizes = [f"| lemma | what | {' | '.join(LETTERS)} |", "|" + " --- |" * 7, *map(size_line, sized)]
    wrong = lemma_kernels.counterexamples()
    fails = [f"| {what} | {text.format(wrong[what])} |" for what, text in FAILS.items()]
    tables = HEAD + "\n".join(errors) + "\n" + SIZES + "\n".join(sizes) + "\n"
    return tables + SELECTION + "\n".join(fails) + "\n" + TAIL
