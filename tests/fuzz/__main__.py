"""`python -m tests.fuzz`: run random programs; exit code 0 if each is exact or refused, 1 if not."""

from __future__ import annotations

import argparse
import json
import sys
import time

import torch

from tests.fuzz.device import SECONDS, prepare
from tests.fuzz.report import fuzz
from tests.fuzz.run import DTYPES, FORMS, TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=300, help="how many programs")
    parser.add_argument("--start", type=int, default=0, help="the seed of the first; the others follow it")
    parser.add_argument("--seeds", nargs="+", type=int, help="these programs instead")
    parser.add_argument("--refused", action="store_true", help="with --json: the reasons of each program as well")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=["mamba", "mamba2"])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=["bare"])
    parser.add_argument(
        "--device", choices=SECONDS, default="cpu", help="where the models run; cuda: on the real kernels"
    )
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    arguments = parser.parse_args()
    try:
        prepare(arguments.device)
    except RuntimeError as reason:
        parser.error(f"--device {arguments.device}: {reason}")
    torch.set_num_threads(1)
    started = time.perf_counter()
    seeds = arguments.seeds or range(arguments.start, arguments.start + arguments.programs)
    report = fuzz(
        seeds,
        arguments.targets,
        arguments.dtypes,
        arguments.forms,
        lambda failure: None if arguments.json else _tell(failure),
        arguments.device,
    )
    if arguments.json:
        refused = {"refused": report.refused} if arguments.refused else {}
        found = {"start": arguments.start} | report.to_json() | refused
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        _print(report, time.perf_counter() - started)
    return 1 if report.failures else 0


def _tell(failure: dict) -> None:
    where = " ".join(failure["where"])
    print(
        f"seed {failure['seed']}: {failure['verdict']} {where}: {failure['reason']}\n{failure['program']}", flush=True
    )


def _print(report, seconds: float) -> None:
    found = report.to_json()
    print(f"{found['programs']} programs in {seconds:.0f} s, {found['compiled']} exact somewhere")
    for where, count in found["verdicts"].items():
        print(f"{count:8}  {where}")
    print("the most frequent refusals, each with the seed of a program:")
    for entry in found["reasons"][:40]:
        print(f"{entry['count']:8}  {entry['reason']}  (seed {entry['seed']})")
    print(f"{len(found['failures'])} failures")


if __name__ == "__main__":
    sys.exit(main())
