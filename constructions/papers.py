"""The papers whose statements are built here, by the names that every table prints, and whose the bounds are."""

from __future__ import annotations

import re

SELECTIVITY = "Understanding Input Selectivity in Mamba"
FREE_LUNCH = 'Can Mamba Always Enjoy the "Free Lunch"?'
EXPRESSIVITY = "On the Expressivity of Selective State-Space Layers"
TOKEN_SELECTION = "State Space Models are Provably Comparable to Transformers in Dynamic Token Selection"
KROHN_RHODES = "Algebraic Theory of Machines I (Krohn and Rhodes 1965)"


def whose(bound_source: str) -> str:
    """The head of the bounds: the paper's own numbers, or its order with constants of ours."""
    return "bound, our constants" if re.search(r"\bours\b", bound_source) else "the paper's bound"


def is_told_no_more(bound_source: str | None) -> bool:
    """Whether a manifest has a bound that no paper states, or that it does not say the source of, as earlier versions
    wrote them: nobody compares or shows it now.
    """
    return bound_source is None or _OURS.match(bound_source) is not None


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
_OURS = re.compile(
    r"none stated|not legible|ours\b|.*\bbeyond the paper\b|Theorem 1, three bases for each of T|"
    r"after Theorem 3, (?:beyond its Assumption 2|with places that depend on the input), |"
    r"after Theorem 2, size .* token of the longest book$"
)
_STATEMENT = re.compile(r"(?=(?:Theorem|Lemma|Corollary|Proposition)s? [\w.]+)")


def after(theorem: str) -> str:
    """The same statement, as one that the circuit is built after and that is not what it is."""
    if re.search(r"\b(?:after|beside|beyond)\b", theorem):
        return theorem
    return _STATEMENT.sub("after ", theorem, count=1)


def beyond_the_paper(theorem: str, what: str) -> str:
    """That a circuit is built after a statement, and what of it the paper does not have."""
    return f"{after(theorem)}, beyond the paper: {what}"
