"""Options that many commands have, with one wording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
Plot = Annotated[Path | None, typer.Option("--plot", help="also draw a picture (PNG, PDF or SVG)")]
Seed = Annotated[int, typer.Option(min=0, help="seed of everything that is drawn")]
