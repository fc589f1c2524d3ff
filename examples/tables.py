"""The measured tables of the pages on paper A: `python examples/tables.py` prints them, with `docs` it writes them into
the pages.

Each table stands between two comments that name it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from math import ceil, log2
from pathlib import Path

import numpy as np
import torch

from compiler.artifact.package import bare, bare_sizes
from compiler.digits import at_most
from compiler.driver import compile
from compiler.language.codebook import balanced, balanced_length, drawn
from constructions.checkpoints.artifact import module_scores
from constructions.construction import Construction
from constructions.gadgets import copy_decay, costs, lemmas
from constructions.selectivity.approximation_rate import rate_report
from constructions.selectivity.haar import build_haar
from constructions.selectivity.haar_bases import theorem_report
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from verify.bounds import induction_heads_information_bits
from verify.check import check
from verify.random_codes import mean_interval, measured_failures, simpler_formula
from verify.task_states import whole_bits
from verify.tasks.mqar import BenchmarkLayout
from verify.tasks.task import IGNORED

SAMPLES = 16


def markdown(header: Sequence[str], rows: Sequence[Sequence]) -> str:
    """A table in Markdown, where a bar would begin another cell, within `code` too."""
    lines = [header, ["---"] * len(header), *([str(cell) for cell in row] for row in rows)]
    lines = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def accuracy(construction: Construction, samples: int = SAMPLES) -> tuple[float, bool]:
    """(the share of right answers, whether all scores equal the interpreter's) of the bare real module on its first
    task.
    """
    compiled = compile(construction.circuit(), construction.target)
    stack, right, asked, exact = bare(compiled), 0, 0, True
    for batch in construction.tasks()[0].random(samples, seed=0, batch_size=16):
        with torch.no_grad():
            scores = stack(torch.from_numpy(batch.tokens)).numpy()
        wanted = batch.labels != IGNORED
        right += int((scores.argmax(-1) == batch.labels)[wanted].sum())
        asked += int(wanted.sum())
        exact &= bool(np.array_equal(scores, compiled.interpret(batch.tokens)))
    return right / asked, exact


def sizes_row(construction: Construction) -> tuple[str, str, str]:
    """The paper's bound, "none" where it states none; the built size of the widest block, and accuracy."""
    sizes = bare_sizes(compile(construction.circuit(), construction.target))
    bound = construction.bound()
    built = {name: max(getattr(s, name) for s in sizes) for name in ("d_model", "d_inner", "d_state")} | {
        "layers": len(sizes)
    }
    told = lambda values: " · ".join(str(values.get(name, "–")) for name in ("d_model", "d_inner", "d_state", "layers"))
    share, exact = accuracy(construction)
    return told(bound) if bound else "none", told(built), f"{share:.3f}{', bit-exact' if exact else ''}"


def induction_heads() -> str:
    """Figure 3 of the paper: V = 5 … 40, T = 100, with the hard setting of Appendix D.4."""
    kinds = [("mamba", False), ("mamba", True), ("mamba2", False), ("mamba-delta-t", False)]
    rows = []
    for vocab in (5, 10, 20, 40):
        for arch, codes in kinds:
            bits = whole_bits(induction_heads_information_bits(vocab))
            rows.append(
                [
                    vocab,
                    arch + (" --codes" if codes else ""),
                    *sizes_row(InductionHeads(vocab=vocab, arch=arch, codes=codes)),
                    bits,
                ]
            )
    return markdown(
        ["V", "arch", "the paper's bound d · d_inner · N · layers", "built", "accuracy", "bits to hold"], rows
    )


def keep_nth() -> str:
    """Table 1 of the paper: T = 50, V = 128, n = 5; and n = 1 (KEEP FIRST)."""
    rows = [[n, arch, *sizes_row(KeepNth(n=n, arch=arch))[1:]] for n in (1, 5) for arch in ("mamba", "mamba2")]
    return markdown(["n", "arch", "built d · d_inner · N · layers", "accuracy"], rows)


def upward(bound: float, digits: int) -> float:
    """The least number of so many digits that the bound is within."""
    return float(at_most(bound, digits))


def haar_errors() -> str:
    """Theorem 1: the errors of ψ(2,1) against |w|."""
    rows = [
        [
            f"{r['slope']:g}",
            f"{r['neighbourhood']:.3f}",
            f"{r['error']:.1e}",
            f"{upward(r['bound'], 2):.1e}",
            f"{r['grid_error']:.1e}" if r["grid_error"] else "0",
        ]
        for r in theorem_report()["rows"]
    ]
    return markdown(
        ["slope |w|", "left out before each jump", "largest error elsewhere", "bound", "error on 64 bins"], rows
    )


def haar_layers() -> str:
    """The transform layer: sizes, and errors against float64 for standard normal samples."""
    rows = []
    for levels in (2, 4, 6):
        for form in ("steps", "bumps"):
            layer = build_haar(levels, form)
            (size,) = bare_sizes(layer.compiled)
            samples = np.float32(np.random.default_rng(0).standard_normal((64, layer.length))).astype(float)
            exact = samples @ _orthonormal(levels).T
            error = np.abs(layer(samples) - exact).max()
            rows.append([layer.length, form, size.d_inner, size.d_state, size.dt_rank, f"{error:.0e}"])
    return markdown(["T", "form", "d_inner", "N", "dt_rank", "largest error"], rows)


def _orthonormal(levels: int) -> np.ndarray:
    """The orthonormal Haar matrix in float64, by its definition."""
    rows = [np.ones(2**levels)]
    for j in range(levels):
        pulse = np.repeat([1.0, -1.0], 2 ** (levels - j - 1))
        rows += [
            np.concatenate([np.zeros(k * len(pulse)), pulse, np.zeros((2**j - 1 - k) * len(pulse))])
            for k in range(2**j)
        ]
    return np.array([row / np.linalg.norm(row) for row in rows])


def rates() -> str:
    """Corollary 1: fitted slopes of the squared errors."""
    cases = [(["1/3"], [1, -1]), (["1/3", "0.7"], [0, 1, "1/2"]), (["1/7", "1/3", "5/7"], [1, 0, 2, -1])]
    rows = []
    for breaks, values in cases:
        report = rate_report(breaks, values)
        fitted, stated = report["slopes"], report["corollary"]
        rows.append(
            [
                ", ".join(breaks),
                f"{fitted['mamba']:.3f}",
                f"{stated['mamba']:.3f}",
                f"{fitted['s4d']:.2f}",
                f"{stated['s4d']:.0f}",
            ]
        )
    return markdown(["jumps at", "Mamba: log2 error² per base", "−1/(3m)", "S4D: log error² per log N", "−1"], rows)


def mqar_sizes() -> str:
    """Theorems 2, 3 and 4 and what goes beyond them, at κ = 16, V = 512."""
    kinds = [("mamba", "sum"), ("mamba2", "sum"), ("s4d", "sum"), ("mamba", "first"), ("mamba", "last")]
    kinds.append(("gated-deltanet", "last"))
    rows = [[arch, write, *sizes_row(MQAR(arch=arch, write=write))] for arch, write in kinds]
    return markdown(["arch", "write", "the paper's bound d · d_inner · N · layers", "built", "accuracy"], rows)


def mqar_benchmark() -> str:
    """The public layout: κ = 255, V = 256, L = 256, 16 pairs, filler from the whole vocabulary.

    100 sequences on real Mamba.
    """
    task = BenchmarkLayout(kappa=255, vocab=256, length=256, pairs=16, filler="vocabulary")
    rows = []
    for write in ("sum", "last", "first"):
        circuit = compile(MQAR(kappa=255, vocab=256, write=write).circuit())
        scores = module_scores(bare(circuit))
        result = check(scores, circuit.interpret, task.random(100, seed=0, batch_size=10))
        if not result.bit_exact:
            raise AssertionError(f"--write {write}: the module leaves the circuit")
        rows.append(
            [write, f"{100 * result.exact_sequences / result.sequences:.1f} %", f"{100 * result.accuracy:.1f} %"]
        )
    return markdown(["write policy", "sequences right", "queries right"], rows)


def mqar_codes() -> str:
    """Theorem 3's key codes at V = 512: wrong answers of the real module with one draw (100 sequences), the mean over
    200 draws with its 95 % interval, the estimate for all codes, the proved bound, and the simpler formula."""
    rows, values = [], balanced(512).words
    for kappa in (4, 8, 16, 32):
        for factor in (4, 8, 16):
            n = factor * ceil(log2(kappa))
            construction = MQAR(kappa=kappa, arch="mamba2", guarantee="random", key_code=n, max_length=1000)
            share, _ = accuracy(construction, samples=100)
            rates = measured_failures(
                values, lambda i, k=kappa, n=n: drawn("balanced", k, n, seed=i).book.words, kappa, 200, 25
            )
            low, high = mean_interval(rates)
            wrong = f"{rates.mean():.3f} ({max(low, 0):.3f}–{high:.3f})"
            law, simpler = construction.average_failure(), simpler_formula(balanced_length(512), n, kappa)
            proved = "1" if law.at_most is None else at_most(law.at_most, 2)
            told = (f"{1 - share:.3f}", wrong, f"{law.rate:.2g}", proved, f"{simpler:.2g}")
            rows.append([kappa, f"{factor}⌈log2 κ⌉ = {n}", *told])
    return markdown(
        [
            "κ",
            "key code",
            "wrong, one draw, real module",
            "wrong, mean over 200 draws",
            "estimate",
            "at most",
            "(p/2)²·Q",
        ],
        rows,
    )


def gadgets_on_integers() -> str:
    """Lemmas 1–5 of paper B on all integers up to 64."""
    rows = [lemmas.on_integers(word, 64) for word in lemmas.ON_INTEGERS]
    told = [[row[key] for key in ("lemma", "word", "blocks", "channels", "cases", "wrong")] for row in rows]
    return markdown(["Lemma", "word", "blocks", "channels", "cases", "wrong"], told)


def bound_of(row: dict) -> str:
    return f"{upward(row['bound'], 1):.0e}"


def gadgets_on_reals() -> str:
    """The same on real numbers of at most 1, errors beside their bounds."""
    rows = [lemmas.on_reals(word, 10_000) for word in lemmas.ON_REALS]
    told = [[row["lemma"], row["word"], row["blocks"], f"{row['error']:.0e}", bound_of(row)] for row in rows]
    return markdown(["Lemma", "word", "blocks", "largest error", "bound"], told)


def silu_products() -> str:
    """Lemma 1's product against λ; the rows of the paper's rule name their ε."""
    rows = lemmas.silu_products(10_000)
    kept = [row for row in rows if row["scale"] in (4, 16, 64, 128, 256, 512, 2048) or row["of_epsilon"]]
    told = [
        [
            row["scale"],
            f"{row['of_epsilon']:g}" if row["of_epsilon"] else "–",
            f"{row['error']:.0e}",
            {None: "–", True: "yes", False: "no"}[row["within"]],
            bound_of(row),
        ]
        for row in kept
    ]
    return markdown(["λ", "the paper's for ε =", "largest error", "within ε", "bound"], told)


def copy_by_decay() -> str:
    """Theorem 1 on the built module, 10,000 instances each."""
    rows = copy_decay.report()["rows"]
    told = [
        [
            row["decay"],
            row["instances"],
            row["violations"],
            f"{row['largest_error']:.2f}",
            f"{upward(row['largest_bound'], 3):.2f}",
        ]
        + [f"{row['tightness']:.3f}", f"{row['module_off']:.0e}", f"{upward(row['module_bound'], 1):.0e}"]
        for row in rows
    ]
    head = ["decay", "instances", "violations", "largest error", "largest bound", "largest share of the bound"]
    return markdown([*head, "rounding of the module", "its bound"], told)


def table_1() -> str:
    """State and parameters against T; time is in the figure."""
    rows = costs.rows(timed=False)
    told = [
        [
            row["model"],
            f"{row['length']:,}",
            row["how"],
            *(f"{row[key]:,}" for key in ("state", "parameters", "nonzero")),
        ]
        for row in rows
    ]
    return markdown(["model", "T", "sizes", "state", "parameters", "of them not 0"], told)


def times() -> str:
    """Milliseconds for a token at the end of T tokens: the built modules beside a Transformer of stated sizes."""
    timed = [row for row in costs.rows(by_place=(), digits=()) if row["seconds"]]
    told = [[row["model"], f"{row['length']:,}", f"{1000 * row['seconds']:.2g}"] for row in timed]
    return markdown(["model", "T", "milliseconds"], told)


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "mqar.md": {"mqar-sizes": mqar_sizes, "mqar-benchmark": mqar_benchmark, "mqar-codes": mqar_codes},
    "induction-heads.md": {"induction-heads": induction_heads},
    "keep-nth.md": {"keep-nth": keep_nth},
    "gadgets.md": {
        "gadgets-integers": gadgets_on_integers,
        "gadgets-reals": gadgets_on_reals,
        "silu-products": silu_products,
        "copy-decay": copy_by_decay,
        "costs": table_1,
        "times": times,
    },
    "haar.md": {"haar-errors": haar_errors, "haar-layers": haar_layers, "rates": rates},
}


def written(text: str, name: str, table: str) -> str:
    """The page with the table between its two comments replaced; ValueError where they are missing."""
    pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"the page has no place for table {name}")
    return pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)


def main(folder: Path | None) -> None:
    for page, tables in TABLES.items():
        made = {name: make() for name, make in tables.items()}
        if folder is None:
            print("\n\n".join(f"{page}, {name}\n{table}" for name, table in made.items()), end="\n\n")
            continue
        text = (folder / page).read_text()
        for name, table in made.items():
            text = written(text, name, table)
        (folder / page).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
