"""Every claim about what is proved, edited at random: who asks the programs is told what is so, whatever the files say.

    python -m tests.verify.checker.proof_edits COUNT [first case] [--json]

A checkpoint with its proof has two places that say what is proved: proof.json, a record that nobody reads, and the
guarantee in the manifest. Each case changes one value of one of them; the manifest is sealed again. Then the checker
must say what it said before, word for word, and `construct verify` must find the manifest's change; an edited
proof.json must change nothing that it says either.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from compiler.artifact.files import MANIFEST
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.command.prove import PROOF, prove
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.mqar import MQAR
from tests.artifact.hostile.built_once import built_once
from tests.artifact.hostile.damage import VALUES
from tests.artifact.hostile.originals import files_of, reseal
from tests.artifact.hostile.verdict import verdict
from verify.checker.check import check

Place = tuple[dict | list, Any]


def make(root: Path) -> list[Path]:
    """Two checkpoints with their proofs."""
    made = {
        "all": MQAR(kappa=2, vocab=3, length=16, max_length=64),
        "heads": InductionHeads(vocab=3, length=16, max_length=64),
    }
    for name, construction in made.items():
        built = build(construction)
        artifact.save(built, {}, root / name, None, proof_of(built))
        with redirect_stdout(StringIO()):
            prove(root / name, as_json=True)
    return [root / name for name in made]


def leaves(content: Any, named: str) -> list[tuple[str, Place]]:
    """Every value in a JSON object that is not an object or a list with something in it, and how to get there."""
    if isinstance(content, dict):
        inner = [(f"{named}.{key}", (content, key)) for key in content]
    else:
        inner = [(f"{named}[{i}]", (content, i)) for i in range(len(content))]
    found = []
    for name, (holder, key) in inner:
        value = holder[key]
        found += leaves(value, name) if isinstance(value, dict | list) and value else [(name, (holder, key))]
    return found


def edited(content: dict, rng: random.Random) -> str:
    """Change one value in place, and say which."""
    name, (holder, key) = rng.choice(leaves(content, ""))
    before = copy.deepcopy(holder[key])
    near: list[Any] = []
    if isinstance(before, bool):
        near = [not before]
    elif isinstance(before, int | float):
        near = [before + 1, before * 2, -before, before / 2]
    elif isinstance(before, str):
        near = [before + ".", "", before.replace("not proved", "proved").replace("tested", "proved"), before[1:]]
    choices = [v for v in [*near, *near, *near, *VALUES] if type(v) is not type(before) or v != before]  # −0.0 is 0.0
    holder[key] = rng.choice(choices)
    return f"{name} {before!r:.40} → {holder[key]!r:.40}"


def run(cases: Iterable[int]) -> tuple[Counter, list[str]]:
    """(what became of the cases, a line for each that broke the rule); the same number, the same case."""
    counts: Counter = Counter()
    broken = []
    with tempfile.TemporaryDirectory() as folder, built_once():
        originals = make(Path(folder))
        told = {good: check(good).lines() for good in originals}
        for case in cases:
            rng = random.Random(f"proof/{case}")
            good, bad = rng.choice(originals), Path(folder) / "bad"
            shutil.copytree(good, bad)
            name = rng.choice((PROOF, MANIFEST))
            content = json.loads((bad / name).read_text("utf-8"))
            how = edited(content if name == PROOF else content["guarantee"], rng)
            (bad / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")
            if name == MANIFEST:
                reseal(bad, files_of(good))
            said = verdict(bad)[0]
            outcome = "not read" if name == PROOF else "rejected"
            if check(bad).lines() != told[good]:
                broken.append(f"case {case}, {good.name}: {name}{how}: the checker says something else")
            elif (said == "accepted") != (name == PROOF):
                broken.append(f"case {case}, {good.name}: {name}{how}: construct verify: {said}")
            else:
                counts[f"{name}: {outcome}"] += 1
            shutil.rmtree(bad)
    return counts, broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.verify.checker.proof_edits", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0, help="number of the first case")
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    counts, broken = run(range(options.first, options.first + options.count))
    print(json.dumps({"claims": counts, "failures": broken}) if options.json else f"{dict(counts)} {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
