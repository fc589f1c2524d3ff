"""The papers whose statements are built here, by the names that every table prints, and whose the bounds are."""

from __future__ import annotations

import re

SELECTIVITY = "Understanding Input Selectivity in Mamba"
FREE_LUNCH = 'Can Mamba Always Enjoy the "Free Lunch"?'
EXPRESSIVITY = "On the Expressivity of Selective State-Space Layers"
TOKEN_SELECTION = "State Space Models are Provably Comparable to Transformers in Dynamic Token Selection"
KROHN_RHODES = "Algebraic Theory of Machines I (Krohn and Rhodes 1965)"


def is_ours(bound_source: str) -> bool:
    """Whether a bound, by what its source says, is ours altogether, and not an order of a paper's."""
    return bound_source.startswith(("none stated", "not legible: ours", "ours"))


def whose(bound_source: str | None) -> str:
    """The head of the bounds: the theorem's own numbers, its order with constants of ours, or ours altogether.

    None or "": of a manifest that does not say where they come from.
    """
    if not bound_source:
        return "bound, its source not recorded"
    if is_ours(bound_source) or bound_source.startswith("not legible"):
        return "our bound"
    return "bound, our constants" if re.search(r"\bours\b", bound_source) else "theorem's bound"


OF_RECALL = {"mamba": 2, "mamba2": 3, "s4d": 4}  # the theorem of paper A that recalls on each mixer
OF_PAPER_B = ("mamba",)  # the mixers that these papers are about
OF_PAPER_D = ("fnn+ssm",)
MIXERS = {
    "mamba": "unmodified Mamba",
    "mamba2": "Mamba-2",
    "s4d": "S4D in Mamba's block",
    "gated-deltanet": "Gated DeltaNet",
    "gated-deltanet-qwen": "Gated DeltaNet",
    "fnn+ssm": "fnn+ssm",
}
_STATEMENT = re.compile(r"(?=(?:Theorem|Lemma|Corollary|Proposition)s? [\w.]+)")


def after(theorem: str) -> str:
    """The same statement, as one that the circuit is built after and that is not what it is."""
    if re.search(r"\b(?:after|beside|beyond)\b", theorem):
        return theorem
    return _STATEMENT.sub("after ", theorem, count=1)


def beyond_the_paper(theorem: str, what: str) -> str:
    """That a circuit is built after a statement, and what of it the paper does not have."""
    return f"{after(theorem)}, beyond the paper: {what}"
