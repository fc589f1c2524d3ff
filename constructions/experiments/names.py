"""The experiments that `construct reproduce` knows, by name: what the command line shows without importing torch."""

from __future__ import annotations

from typing import Literal

Item = Literal[
    "figure-1",
    "figure-2",
    "figure-3",
    "table-1",
    "table-3",
    "figure-a2",
    "figure-a3",
    "figure-a4",
    "table-a1",
    "table-a2",
    "table-a3",
    "table-a4",
    "polynomial-table-1",
    "polynomial-table-2",
    "polynomial-figure-3",
    "chains",
    "every-chain",
    "graft",
    "training",
    "lemmas",
    "rates",
    "token-selection",
    "statements",
    "languages",
]
ONE_RUN = (
    "graft",
    "training",
    "lemmas",
    "rates",
    "token-selection",
    "statements",
    "languages",
)  # which are no list of rows

_BUILT = "Lemma 3.3 and Theorems 3.1, 3.2, D.1 and D.2"  # 4.5, 4.6 and what is proved for them name no circuit

WHAT: dict[str, str] = {
    "figure-1": "paper A, Figure 1: exp(−λΔ) before and from the n-th token on",
    "figure-2": "paper A, Figure 2: MQAR, 128 values",
    "figure-3": "paper A, Figure 3: induction heads",
    "table-1": "paper A, Table 1: KEEP FIFTH",
    "table-3": "paper A, Table 3: every stage of the solutions of MQAR",
    "figure-a2": "paper A, Figure A.2: MQAR, 256 and 512 values",
    "figure-a3": "paper A, Figure A.3: MQAR over the state size N",
    "figure-a4": "paper A, Figure A.4: induction heads over N",
    "table-a1": "paper A, Table A.1: KEEP FIFTH with positions, T = 10, 20",
    "table-a2": "paper A, Table A.2: the same, T = 30, 40, 50",
    "table-a3": "paper A, Table A.3: KEEP FIFTH without positions, T = 10, 20",
    "table-a4": "paper A, Table A.4: the same, T = 30, 40, 50",
    "polynomial-table-1": "paper C, Table 1: variants of the S6",
    "polynomial-table-2": "paper C, Table 2: counting in a row, and a polynomial",
    "polynomial-figure-3": "paper C, Figure 3: training curves of the variants",
    "chains": "programs after paper B, at full size, written by the models themselves",
    "every-chain": "programs after paper B, every prompt of small sizes",
    "graft": "a circuit inside a trained language model, which learns around it",
    "training": "what relative steps and AdamW make of a compiled checkpoint",
    "lemmas": "paper D: Lemmas F.1–F.6, H.1, H.3 and 3.3, built or measured, against bounds of ours",
    "rates": "paper D: the rate of estimation against samples and smoothness",
    "token-selection": f"paper D: the sizes of {_BUILT} on fnn+ssm, beside those by hand",
    "statements": f"paper D: {_BUILT} on every mixer, all small inputs and 1,000 tokens, read by transformers",
    "languages": "regular languages of the literature and random automata: what holds them, built, run and proved",
}
MIXERS = {
    "mamba": "Mamba",
    "mamba2": "Mamba-2",
    "s4d": "S4D",
    "mamba-delta-t": "Mamba-Δᵀ",
    "s6": "S6",
    "gated-deltanet": "Gated DeltaNet",
}
"""By the name that --arch has, the name in tables and figures."""
