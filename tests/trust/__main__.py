"""`python -m tests.trust`: run what docs/trust.md counts, and write the page; it can be stopped and goes on.

python -m tests.trust                      what neither docs/trust.json nor out/trust.parquet has
python -m tests.trust --share 0.01         a hundredth of each
python -m tests.trust fuzz hostile         these parts only, then the page of all results
python -m tests.trust "again refusals"     of what is run again, this only
python -m tests.trust --workers 8          eight chunks at once; with --scheduler ADDRESS on other machines
python -m tests.trust --page               only the page, from what is there
python -m tests.trust --page --store A --store B   the same, with what two other tables have
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.trust.page import page
from tests.trust.parts import PARTS
from tests.trust.process import ROOT
from tests.trust.store import AGAIN, again, collect, collect_again, opened, read, run

NUMBERS, PAGE = ROOT / "docs" / "trust.json", ROOT / "docs" / "trust.md"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.trust", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join((*PARTS, *map(repr, AGAIN))))
    parser.add_argument("--share", type=float, default=1.0, help="of the cases of every part")
    parser.add_argument("--store", type=Path, action="append", help="a Parquet table; results go to the first")
    parser.add_argument("--workers", type=int, help="so many chunks at once, each in a process of its own")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="by the workers of dask.distributed there")
    parser.add_argument("--page", action="store_true", help="run nothing")
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS and name not in AGAIN:
            parser.error(f"{name!r} is none of {', '.join((*PARTS, *AGAIN))}")
    tell = lambda line: print(line, flush=True)
    record = json.loads(NUMBERS.read_text("utf-8"))
    wanted = [PARTS[name] for name in options.parts or PARTS if name in PARTS]
    try:
        stores = [opened(path) for path in options.store or [ROOT / "out" / "trust.parquet"]]
        if taken := read(stores, PARTS):
            tell(taken)
        run([] if options.page else wanted, stores, record, options.share, tell, options.workers, options.scheduler)
        found = collect(stores, PARTS, record)
    except (ValueError, OSError) as reason:  # of the cluster or of a table; what came before is kept
        parser.error(str(reason))
    if not options.page:
        again(stores, found, tell, [name for name in options.parts if name in AGAIN] or AGAIN)
    write(found | collect_again(stores, record))
    return 0


def write(numbers: dict) -> None:
    """docs/trust.json and the page that is written from it."""
    text = json.dumps(numbers, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    NUMBERS.write_text(text, "utf-8")
    PAGE.write_text(page(json.loads(text)), "utf-8")  # in the order of the file


if __name__ == "__main__":
    sys.exit(main())
