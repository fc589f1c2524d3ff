"""Options that many commands have, with one wording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="print one JSON document")]
Plot = Annotated[Path | None, typer.Option("--plot", help="also draw a picture (PNG, PDF or SVG)")]
LARGEST_SEED = 2**64 - 1  # of torch's generators
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="seed of everything that is drawn")]
Samples = Annotated[int, typer.Option(min=1, max=10**9, help="random sequences per task")]
Certify = Annotated[bool, typer.Option(help="prove weights and answers for every input")]
Workers = Annotated[int | None, typer.Option(min=1, max=1024, help="processes of this machine to share the work")]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="a dask.distributed scheduler whose workers share the work")
]
Shards = Annotated[
    Path | None,
    typer.Option("--table", metavar="FILE", help="keep what is done in this Parquet table, and go on from it"),
]
