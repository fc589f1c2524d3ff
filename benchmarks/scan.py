"""Times the CPU selective scan against mamba_ssm's reference and Hugging Face's PyTorch path, and checks exactness.

    python benchmarks/scan.py [--json] [--repeats 3]

Every row is one size with random float32 inputs and everything on: step bias, softplus, skip and gate. The paths take
turns within each repeat, so that a busy machine slows all of them; each time is the least over the repeats, after one
untimed run. The last column compares outputs with int64 arithmetic on lattice data of the same size.
"""

import argparse
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch
from rich.console import Console
from rich.table import Table

from compiler.runtime import mamba_classes, native, selective_scan, torch_only_transformers
from tests.runtime.lattice import exact_scan, scan_inputs

SIZES = [  # batch, d_inner, d_state, length
    (1, 8, 4, 4096),
    (1, 64, 16, 512),
    (1, 128, 64, 2048),
    (8, 64, 1024, 64),
    (8, 512, 16, 512),
    (8, 512, 16, 2048),
]


def paths():
    """Returns {name: scan}, all with the arguments of `selective_scan`."""
    mamba_classes()
    from mamba_ssm.ops.selective_scan_interface import selective_scan_ref

    theirs = torch_only_transformers().mamba.mamba_selective_scan
    hugging_face = lambda u, delta, **rest: theirs(u, delta, **rest)  # other names for the first two arguments
    return {"ours": selective_scan, "ref": selective_scan_ref, "hf": hugging_face}


def random_inputs(batch, channels, d_state, length):
    """Returns keyword arguments for a scan of this size: standard normal, A uniform in -4..0."""
    g = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=g)
    u, delta, z = (draw(batch, channels, length) for _ in range(3))
    B, C = (draw(batch, d_state, length) for _ in range(2))
    A = -4 * torch.rand(channels, d_state, generator=g)
    D, delta_bias = draw(channels), draw(channels)
    return dict(u=u, delta=delta, A=A, B=B, C=C, D=D, z=z, delta_bias=delta_bias, delta_softplus=True)


def seconds(scans, inputs, repeats):
    """Returns {name: least wall-clock seconds}."""
    best = dict.fromkeys(scans, float("inf"))
    for repeat in range(repeats + 1):
        for name, scan in scans.items():
            start = time.perf_counter()
            scan(**inputs)
            if repeat:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def is_exact(size):
    """Returns whether our scan of lattice data of this size gives exactly the integers that int64 does."""
    inputs = scan_inputs(0, *size)
    y, last = selective_scan(*inputs, return_last_state=True)
    expected_y, expected_last = (torch.from_numpy(m) for m in exact_scan(*inputs))
    return torch.equal(y.long(), expected_y) and torch.equal(last.long(), expected_last)


@torch.no_grad()
def measure(size, scans, repeats):
    """Returns one row of the result."""
    inputs = random_inputs(*size)
    best = seconds(scans, inputs, repeats)
    expected = scans["ref"](**inputs)
    error = ((scans["ours"](**inputs) - expected).abs().max() / expected.abs().max()).item()
    ratios = {"ref_over_ours": best["ref"] / best["ours"], "hf_over_ours": best["hf"] / best["ours"]}
    return {"size": size, "seconds": best, **ratios, "relative_error": error, "exact": is_exact(size)}


def show(rows, path):
    """Prints the rows as a table of at most 80 columns."""
    table = Table(title=f"Selective scan on one CPU thread, {path} path; times in ms")
    for heading in ("b, d, n, l", "ours", "reference", "Hugging Face", "error", "exact"):
        table.add_column(heading, justify="left" if heading == "b, d, n, l" else "right", no_wrap=True)
    for row in rows:
        ours, ref, hf = (1000 * row["seconds"][name] for name in ("ours", "ref", "hf"))
        table.add_row(
            ", ".join(map(str, row["size"])),
            f"{ours:.2f}",
            f"{ref:.0f} ({row['ref_over_ours']:.0f}x)",
            f"{hf:.0f} ({row['hf_over_ours']:.0f}x)",
            f"{row['relative_error']:.0e}",
            "yes" if row["exact"] else "NO",
        )
    Console(width=80).print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--repeats", type=int, default=3, help="timed repeats of each size (default 3)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    scans = paths()
    rows = [measure(size, scans, options.repeats) for size in SIZES]
    path = "native" if native.is_native() else "PyTorch"
    if options.json:
        print(json.dumps({"path": path, "torch": torch.__version__, "rows": rows}))
    else:
        show(rows, path)
    if not all(row["exact"] for row in rows):
        sys.exit("a scan of lattice data was not exact")


if __name__ == "__main__":
    main()
