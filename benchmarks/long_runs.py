"""Groups for long: automata of groups on Gated DeltaNet, built and proved, then run by transformers alone.

    python -m benchmarks.long_runs STORE [--only "s5 float32" …] [--length N] [--write]

Each checkpoint is made by `construct automaton` in STORE, and run by benchmarks/plain_run.py, which imports nothing of
ours and has an oracle of its own. A run that is stopped goes on from STORE. --write: put what was measured into
docs/long_runs.json and the table of docs/groups.md; rows that were not run stay.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

from compiler.artifact.plain_files import write_whole
from compiler.automata.permutations import swaps

ROOT = Path(__file__).parents[1]
DATA, PAGE = ROOT / "docs" / "long_runs.json", ROOT / "docs" / "groups.md"
BEGIN, END = "<!-- table long runs -->", "<!-- end long runs -->"
LENGTHS = {"float32": 1_000_000, "bfloat16": 100_000}
CONSTRUCT = [sys.executable, "-m", "constructions", "automaton"]


_ORDERS = list(permutations(range(5)))
_TEXT = {order: "p" + "".join(map(str, order)) for order in _ORDERS}
LETTERS = {
    "parity": ["a", "b"],
    "mod-5": [f"n{i}" for i in range(5)],
    "a5": [_TEXT[order] for order in _ORDERS if len(swaps(order)) % 2 == 0],
    "s5": [_TEXT[order] for order in _ORDERS],
}
"""Of a group all of its elements are letters, and its states, which answer their own names."""

ROWS = [f"{name} {dtype}" for name in LETTERS for dtype in LENGTHS]


def table(name: str) -> dict[str, Any]:
    """The table of a group for `construct automaton`: letters act behind each other."""
    if name == "mod-5":
        behind = {(g, x): f"n{(int(g[1:]) + int(x[1:])) % 5}" for g in LETTERS[name] for x in LETTERS[name]}
    else:
        orders = {_TEXT[order]: order for order in _ORDERS if _TEXT[order] in LETTERS[name]}
        behind = {(g, x): _TEXT[tuple(b[i] for i in a)] for g, a in orders.items() for x, b in orders.items()}
    rows = {g: {x: behind[g, x] for x in LETTERS[name]} for g in LETTERS[name]}
    return {"start": LETTERS[name][0], "transitions": rows, "classes": {g: g for g in LETTERS[name]}}


def made(row: str, store: Path) -> dict[str, Any]:
    """The checkpoint of a row, in STORE: its blocks and what is proved of it, or why it is refused."""
    name, dtype = row.split()
    said = store / f"{name}-{dtype}.json"
    if not said.exists():
        given = store / f"{name}.table.json"
        given.write_text(json.dumps(table(name)) if name != "parity" else "", "utf-8")
        what = ["--regex", "(b*ab*a)*b*"] if name == "parity" else ["--table", str(given)]
        options = ["--arch", "gated-deltanet", "--dtype", dtype, "--samples", "5", "--force", "--json"]
        command = [*CONSTRUCT, *what, *options, "--out", str(store / f"{name}-{dtype}")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            refused = " ".join(done.stderr.split())
            if done.returncode != 2:
                raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}: {refused}")
            return {"refused": refused}
        report = json.loads(done.stdout)
        proved = report["guarantee"]["certificate"]
        every = proved["holds"] and "of every length" in proved["domain"]
        write_whole(said, json.dumps({"blocks": report["sizes"]["layers"], "proved": every}))
    return json.loads(said.read_text("utf-8"))


def measure(row: str, store: Path, length: int | None) -> dict[str, Any]:
    """One row: built, proved and run, or refused with the reason."""
    name, dtype = row.split()
    found = {"name": name, "dtype": dtype, **made(row, store)}
    if "refused" in found:
        return found
    place, most = store / f"{name}-{dtype}", length or LENGTHS[dtype]
    command = [sys.executable, "-I", str(Path(__file__).with_name("plain_run.py")), str(place), "--oracle", name]
    command += ["--letters", ",".join(LETTERS[name]), "--length", str(most), "--dtype", dtype]
    command += ["--keep", str(store / f"{name}-{dtype}.run")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
    return found | json.loads(done.stdout.splitlines()[-1])


def shown(rows: list[dict[str, Any]]) -> str:
    """The table of the page."""
    lines = ["| letters | dtype | blocks | proved | tokens | wrong answers | CPU s |", "| --- " * 7 + "|"]
    for row in rows:
        begin = f"| {row['name']} | {row['dtype']} | "
        if "refused" in row:
            lines.append(f"{begin}refused | | | | |")
            continue
        proved = "every length" if row["proved"] else "no"
        lines.append(f"{begin}{row['blocks']} | {proved} | {row['done']:,} | {row['wrong']} | {row['cpu_s']:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_runs", description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--length", type=int, help="tokens of each run [default: 10^6, in bfloat16 10^5]")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    asked.store.mkdir(parents=True, exist_ok=True)
    for row in asked.only:
        found = measure(row, asked.store, asked.length)
        print(json.dumps(found, ensure_ascii=False), flush=True)
        if asked.write:
            held = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {}
            held[row] = found
            write_whole(DATA, json.dumps({name: held[name] for name in ROWS if name in held}, indent=1) + "\n")
            begin, rest = PAGE.read_text("utf-8").split(BEGIN)
            rows = shown([held[name] for name in ROWS if name in held])
            write_whole(PAGE, f"{begin}{BEGIN}\n{rows}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
