"""Work for the tests of shards: each leaves a line in a file, so that a test counts how often it was done."""

from __future__ import annotations

import os
import time
from pathlib import Path


def square(number: int, log: str) -> int:
    _note(log, number)
    return number * number


def slow(number: int, log: str) -> int:
    _note(log, number)
    time.sleep(0.3)
    return number


def dies_once(number: int, log: str) -> int:
    """Kills its process the first time that it is asked for 3."""
    _note(log, number)
    if number == 3 and Path(log).read_text().split().count("3") == 1:
        os.kill(os.getpid(), 9)
    time.sleep(0.3)
    return number


def dies(number: int, log: str) -> int:
    time.sleep(0.3)  # the nanny is to know that its worker runs
    os.kill(os.getpid(), 9)
    return number


def refuses(number: int, log: str) -> int:
    raise ValueError(f"number = {number} is refused")


def finds_no_file(number: int, log: str) -> int:
    return Path(log, "none").stat().st_size


def _note(log: str, number: int) -> None:
    with open(log, "a") as file:
        file.write(f"{number}\n")
