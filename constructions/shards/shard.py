"""A shard: a piece of work that comes out the same wherever and whenever it is done."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

PACKAGES = ("compiler", "conformance", "constructions", "verify")
ROOT = Path(__file__).resolve().parents[2]

Place = tuple[str, int, int]
"""What tells a shard from the others of its run: part, first case, number of cases."""


@dataclass(frozen=True)
class Shard:
    """`count` cases of a part of the work from number `first` on.

    job: "module:function", which takes the arguments and gives plain values, as JSON holds them.
    """

    part: str
    first: int
    count: int
    job: str
    arguments: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def place(self) -> Place:
        return self.part, self.first, self.count

    def __str__(self) -> str:
        return f"{self.part} {self.first:,}–{self.first + self.count - 1:,}"


@cache
def code() -> str:
    """The version of the package and a sum of its source: the same only where every line is."""
    try:
        version = metadata.version("mamba-constructions")
    except metadata.PackageNotFoundError:
        version = "unknown"
    found = hashlib.sha256()
    for path in sorted(p for name in PACKAGES for kind in ("py", "cpp") for p in (ROOT / name).rglob(f"*.{kind}")):
        found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{version}+{found.hexdigest()[:12]}"


def done(job: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    """(the code that did it, what came out), on a worker."""
    module, name = job.split(":")
    work: Callable[..., Any] = getattr(import_module(module), name)
    return code(), work(**arguments)
