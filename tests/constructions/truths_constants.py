"""Other constants for each counterexample of `construct truths`.

other:  another value for each constant: some number that is measured must change with it.
stands: constants under which the printed statement does not fail.
breaks: constants under which what is said to hold instead does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Others:
    other: Mapping[str, Any]
    stands: Mapping[str, Any]
    breaks: Mapping[str, Any]


OTHERS: dict[str, Others] = {
    "sensitivity-bound": Others(
        {"first": 1.0, "second": 0.5, "tail": -3.0, "rate": 0.5, "counted": 0.5}, {"first": 0.0}, {"counted": 0.0}
    ),
    "attention-bound": Others(
        {"ends": 2.0, "between": 0.5, "length": 500, "numerator": 0.5},
        {"ends": 0.0, "between": 1.0},
        {"numerator": 0.0},
    ),
    "haar-neighbourhood": Others(
        {"j": 1, "k": 2, "near": 2.0, "epsilon": 0.01, "width": 3.0, "slopes": (1e4, 1e5)},
        {"near": 6.0},
        {"width": 1.0},
    ),
    "haar-discrete-step": Others(
        {"length": 32, "middle": 0.25, "slope": 300.0, "in_front": False, "orthonormal": True},
        {"in_front": False},
        {"orthonormal": True},
    ),
    "rate-squared": Others(
        {"jump": "1/5", "wavelets": 8, "slopes": (1e1, 1e2, 1e3, 1e4, 1e5), "frequencies": 100},
        {"jump": "1/2"},
        {"slopes": (1e5, 1e4)},
    ),
    "count-stops": Others(
        {"stop": 2**24 + 2, "dtype": "float64", "longest": 2**30, "length": 2**20}, {"stop": 2**23}, {"length": 2**20}
    ),
    "keep-sign": Others({"n": 2, "x": (5, -2, 8, 4), "order": (0, 2)}, {"order": (1, 0)}, {"order": (0, 2)}),
    "step-needs-a-shift": Others(
        {"weight": 128.0, "shift": 0.1, "tokens": 10, "absent": 0.1}, {"absent": -1.0}, {"shift": 0.01}
    ),
    "independent-keys": Others(
        {"kappa": 4, "vocab": 16, "independent": False, "distinct": False, "write": "first"},
        {"independent": False},
        {"write": "first"},
    ),
    "codes-through-relu": Others(
        {"kappa": 48, "vocab": 16, "entries": 96, "epsilon": 0.45, "sequences": 100, "sigma": "silu"}
        | {"halves": False},
        {"sigma": "silu"},
        {"halves": False},
    ),
    "logarithmic-codes": Others(
        {"kappas": (1024, 512, 128, 8), "vocab": 924, "epsilon": 0.45, "delta": 0.3, "draws": 1, "least": 3}
        | {"longer": 0.3, "wanted": 0.1, "smaller": 0.35, "more": 4096, "asked": 100},
        {"kappas": (8, 16, 32, 64)},
        {"longer": 0.1},
    ),
    "ones-and-codes": Others(
        {
            "vocab": 32,
            "epsilon": 0.45,
            "delta": 0.3,
            "k": 11.0,
            "c0": 9.0,
            "c1": 2.0,
            "b": 99.0,
            "beta": 0.2,
            "sigma": "silu",
        }
        | {"balance": False},
        {"beta": 0.12},
        {"balance": False},
    ),
    "copy-index": Others(
        {"decays": (0.01, 0.01, 0.5), "mismatch": 0.05, "rho": 0.99, "delta": 0.05, "included": False},
        {"decays": (0.9, 0.9, 0.01)},
        {"included": False},
    ),
    "copy-clause": Others(
        {"decay": 0.2, "window": 4, "delta": 0.16, "epsilon": 0.3, "reached": 0.999}, {"delta": 1e-6}, {"delta": 0.3}
    ),
    "product-scale": Others(
        {"largest": 2.0, "epsilon": 1e-2, "dtype": "float64", "better": 64.0, "gate": 1.0},
        {"dtype": "float64"},
        {"gate": 1.0},
    ),
    "indicators-jump": Others(
        {"scales": (1e3, 1e5), "nearest": 1e-3, "gap": 1e-7, "epsilon": 0.1},
        {"nearest": 0.5},
        {"scales": (1e2, 1e4, 1.0)},
    ),
    "copy-state": Others(
        {"places": (4, 8), "arch": "mamba2", "other": "mamba", "vocab": 4}, {"arch": "mamba2"}, {"other": "mamba"}
    ),
    "needed-entries": Others(
        {"sizes": (2, 5), "outside": ("LIS",), "within": "knapsack"}, {"outside": ("edit distance",)}, {"within": "LIS"}
    ),
    "powers-are-gated": Others({"x": 3, "exponent": 2, "length": 7, "kept": 5}, {"exponent": 1}, {"kept": 5}),
    "transitions-reach": Others(
        {"degree": 3, "reach": 0.5, "affine": "squashed", "others": ("squashed",)},
        {"degree": 3},
        {"affine": "squashed"},
    ),
    "approximation-needs-less": Others(
        {"length": 32, "tolerance": 0.1}, {"tolerance": 1e-60}, {"length": 3, "tolerance": 0.1}
    ),
    "one-channel": Others({"d": 4, "length": 2, "seed": 1, "compared": 1}, {"d": 1}, {"compared": 1}),
    "differences-cancel": Others(
        {"x": 0.8, "exponent": 20, "dtype": "float64", "bits": 20}, {"dtype": "float64"}, {"bits": 40}
    ),
    "gates-multiply": Others({"gate": 2, "values": 2, "length": 100}, {"gate": 0}, {"gate": 0}),
    "words-in-order": Others(
        {"words": 5, "length": 32, "pad": 0.0, "known": 4, "failure": 0.5, "strings": 10, "ordered": 0} | {"larger": 6},
        {"pad": 0.0},
        {"words": 2, "ordered": 1},
    ),
}
