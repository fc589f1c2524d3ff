"""The limits that docs/proofs.md tells are those of both readers."""

from __future__ import annotations

import re
from pathlib import Path

from compiler.artifact.plain_files import LARGEST_FILE
from compiler.language.data import budget as ours
from constructions.checkpoints import saved
from verify.checker import budget as checkers

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"
COUNTS = {
    "operations of a circuit": "OPERATIONS",
    "lanes of all its streams together": "LANES",
    "letters of an alphabet": "LETTERS",
    "groups of letters": "GROUPS",
    "edges of an input language": "EDGES",
    "letters on all edges together": "LETTERS_ON_EDGES",
    "numbers that a circuit lists, or a short form stands for": "NUMBERS",
}


def test_the_limits_on_the_page_are_those_of_both_readers():
    text = PAGE.read_text("utf-8")
    table = text[text.index("| of | at most |") :].split("\n\n")[0]
    said = dict(re.findall(r"^\| (.+) \| (.+) \|$", table, re.MULTILINE))
    for words, name in COUNTS.items():
        exponent = int(said[words].removeprefix("2^"))
        assert getattr(ours, name) == getattr(checkers, name) == 1 << exponent, words
    assert said["bytes of a JSON file"] == "2^25" and LARGEST_FILE == checkers.JSON_BYTES == 1 << 25
    assert said["digits of a number"].endswith("4,096 bits") and checkers.BITS == 4096
    work = f"{checkers.LEAST_WORK:,} and a unit for each {checkers.BYTES_OF_WEIGHTS} bytes of weights"
    assert said["work"] == work
    assert (ours.LEAST_WORK, ours.BYTES_OF_WEIGHTS) == (checkers.LEAST_WORK, checkers.BYTES_OF_WEIGHTS)
    parameters = f"2^{saved.LEAST_PARAMETERS.bit_length() - 1}, or {saved.PARAMETERS_A_BYTE} for each byte of weights"
    assert said["parameters of the model that is compiled again"] == parameters
