"""How many files and folders a reader enters who follows one circuit through `compile` and `build`.

    python benchmarks/files_entered.py

A call from a function of one file of the project into a function of another enters that file. Entering it again is a
return. Each pair of functions counts once: a reader does not follow a loop twice. For folders alike.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType

from compiler.driver import compile
from constructions.checkpoints.built import build
from constructions.selectivity.mqar import MQAR

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(str(ROOT / name) for name in ("compiler", "constructions", "verify"))


class Reader:
    """entered: how often each file was entered, and each folder."""

    def __init__(self) -> None:
        self.entered: dict[str, dict[str, int]] = {"files": {}, "folders": {}}
        self._seen: set[tuple[CodeType, CodeType]] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_back is None or frame.f_code.co_name == "<module>":
            return
        pair = called, caller = frame.f_code, frame.f_back.f_code
        if pair in self._seen or not called.co_filename.startswith(PACKAGES):
            return
        self._seen.add(pair)
        for what, place in (("files", lambda code: code.co_filename), ("folders", _folder)):
            if place(called) != place(caller):
                counts = self.entered[what]
                counts[place(called)] = counts.get(place(called), 0) + 1

    def told(self) -> str:
        return ", ".join(
            f"{len(counts)} {what} with {sum(counts.values()) - len(counts)} returns"
            for what, counts in self.entered.items()
        )


def _folder(code: CodeType) -> str:
    return str(Path(code.co_filename).parent)


def followed(run) -> Reader:
    reader = Reader()
    sys.setprofile(reader)
    try:
        run()
    finally:
        sys.setprofile(None)
    return reader


def main() -> None:
    construction = MQAR(kappa=4, vocab=9)
    circuit = construction.circuit()
    compile(construction.circuit())  # what is imported where it is first used is imported now
    for name, run in (("compile", lambda: compile(circuit)), ("build", lambda: build(construction))):
        print(f"{name}: {followed(run).told()}")


if __name__ == "__main__":
    main()
