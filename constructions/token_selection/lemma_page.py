"""docs/selection_lemmas.md: `construct reproduce lemmas --samples 100000 --page docs/selection_lemmas.md`."""

from __future__ import annotations

from constructions.token_selection import lemma_kernels, soft_selection
from constructions.token_selection.lemmas import Row, cases

HEAD = """# The lemmas of paper D as ReLU networks

Paper D ("State Space Models are Provably Comparable to Transformers in Dynamic Token Selection") states Lemmas F.1–F.6,
H.1, H.3 and 3.3 up to constants. Here each is a network with every constant written out, in
`compiler/machines/relu_gadgets/`; the proofs are the docstrings. Weights are integers and fractions, so a network runs
exactly, in float64 and as a torch module (`compiler.machines.relu_network`).

    construct reproduce lemmas --samples 100000 --page docs/selection_lemmas.md

writes this page. L: affine maps, W: width, S: nonzero weights, B: largest magnitude. Bound: proved. Error: the largest
that was measured, corners among the points. Stated: the sizes of `verify/lemma_bounds.py`, never exceeded.

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

## What fails as it stands

| statement | what happens |
| --- | --- |
"""
FAILS = {
    "F.5, N for [0, A]": "N = max(2eA, log2 3/ε), A = log 3/ε, χ = 80, ε = 0.01: error {:.3g}. N grows with χ.",
    "H.3, key and query of the same words": "The last token matches itself in {:.0%} of cases. The key is one word "
    "behind.",
    "H.3, nothing before the start": "A cut-off context and one that does not match are {:.3g} apart, 1/(2n) = 0.167 "
    "is promised. A word of its own stands before the start.",
}
TAIL = """
Also: B of a product is max(4, C², 1/(2C)), not max(4, C²): for C = 1/16 it is 8. F.6 has (2A + 1)^d terms, exponential
in d; with the embedding of H.1, d = n·k is 28 and more, so the feature map of H.3 as the paper has it cannot be built.
The row "contexts of 2 words, as angles" is H.3 with d = n instead. The exact replacement is a one-hot for each context.

## Lower bounds

`verify/obstructions.py` says what any model of the class must have; a test holds each to all small instances.

- Information: copying N words of V takes N·log2 V bits of state, recall n_K·log2 V_v.
- Rank: a read-out for n keys takes n/4 products or more, at any precision, once √n pairs are stored.
- Delays: a filter within 1/√(2i) of a delay by i has more than i/2 states.

So no bound that is poly-logarithmic in words and length can hold for D with numbers of so many bits.
"""
COLUMNS = "| lemma | what | L | W | S | B | terms or D | stated | points | bound | error |\n"


def rows(samples: int, seed: int) -> list[Row]:
    """Every row of the page."""
    networks = [case.row(samples, seed) for case in cases()]
    return [*networks, *lemma_kernels.rows(samples, seed), *soft_selection.rows(samples, seed)]


def line(row: Row) -> str:
    """One row up to its bound: what does not depend on the points."""
    sizes = row["sizes"]
    shown = [f"{sizes[name]:.4g}" if name in sizes else "" for name in ("L", "W")]
    shown += [str(sizes["S"]) if "S" in sizes else "", f"{sizes['B']:.4g}" if "B" in sizes else ""]
    terms = row.get("terms", sizes.get("D", ""))
    stated = ", ".join(f"{name} ≤ {value:.5g}" for name, value in row["stated"].items())
    return "| " + " | ".join([row["lemma"], row["what"].replace("|", "\\|"), *shown, str(terms), stated])


def page(found: list[Row]) -> str:
    """The whole page."""
    lines = [COLUMNS + "|" + " --- |" * 11]
    lines += [f"{line(row)} | {row['points']} | {row['bound']:.3g} | {row['error']:.3g} |" for row in found]
    wrong = lemma_kernels.counterexamples()
    fails = [f"| {name} | {text.format(wrong[name])} |" for name, text in FAILS.items()]
    return HEAD + "\n".join(lines) + "\n" + SELECTION + "\n".join(fails) + "\n" + TAIL
