"""What the checker does not know it rejects: entries, kinds, versions, promises, sizes that say something else."""

import copy
import json
import re
import shutil

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, balanced, compile, readout
from compiler.language import memory
from verify.checker.check import check

CIRCUIT, MANIFEST = "circuit.json", "construction.json"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A memory of codewords, whose circuit has matrices, codebooks and declared types."""
    alphabet = Alphabet.of(k=2, v=4)
    tokens = Tokens(alphabet)
    codes = balanced(4)
    value, key = tokens.code("v", codes), tokens.one_hot("k")
    recalled = memory.write(key.shift(1), value).read(key)
    edges = [("s", "k", "k", True), ("k", "s", "v"), ("s", "q", "k")]
    language = InputLanguage.of(alphabet, "s", edges, 9, "pairs and a key")
    directory = tmp_path_factory.mktemp("schema") / "checkpoint"
    compile(Circuit("recall", readout(recalled, codes, alphabet, "v"), language)).save(directory)
    return directory


def _first(data, key):
    """The first object below the streams that has this entry."""
    if isinstance(data, dict):
        if key in data:
            return data
        data = list(data.values())
    found = (_first(part, key) for part in data) if isinstance(data, list) else ()
    return next((part for part in found if part is not None), None)


def _more(where):
    return lambda data: where(data).update(more=1)


def _promise(name, value):
    return lambda data: data["promise"].update({name: value})


EDITS = {
    "another version": (CIRCUIT, lambda c: c.update(version=2), "circuit.json has version 2, and the checker reads"),
    "no version": (CIRCUIT, lambda c: c.pop("version"), "circuit.json has version None"),
    "true for 1": (CIRCUIT, lambda c: c.update(version=True), "circuit.json has version True"),
    "another manifest": (MANIFEST, lambda m: m.update(format_version=3), "construction.json has version 3"),
    "more": (CIRCUIT, _more(lambda c: c), "circuit.json: more is missing, or nothing"),
    "more of a stream": (CIRCUIT, _more(lambda c: c["streams"][1]), r"streams\[1\]: more is missing, or nothing"),
    "a subclass": (CIRCUIT, _more(lambda c: c["streams"][1]["attributes"]), "attributes: more is missing, or nothing"),
    "more of a type": (CIRCUIT, _more(lambda c: c["streams"][0]["type"]), r"streams\[0\]: type is missing, or nothing"),
    "more of a matrix": (CIRCUIT, _more(lambda c: _first(c["streams"], "rows")), "is missing, or nothing"),
    "more of a language": (CIRCUIT, _more(lambda c: c["promise"]["language"]), "language: more is missing, or nothing"),
    "more of the promise": (MANIFEST, _more(lambda m: m["promise"]), "construction.json: promise: more is missing"),
    "more of an edge": (
        MANIFEST,
        _more(lambda m: m["promise"]["language"]["edges"][0]),
        r"edges\[0\]: more is missing",
    ),
    "another level": (
        MANIFEST,
        _promise("level", "likely"),
        "construction.json: promise: level is missing, or nothing",
    ),
    "another length": (CIRCUIT, _promise("length", 10), "circuit.json promises another length than construction.json"),
    "other words": (CIRCUIT, _promise("description", ""), "circuit.json promises another description"),
    "a wider language": (
        CIRCUIT,
        lambda c: c["promise"]["language"]["edges"][0].update(distinct=False),
        "circuit.json promises another language",
    ),
    "an unknown type": (CIRCUIT, lambda c: c["streams"][0]["type"].update(kind="Any"), "type is missing, or nothing"),
    "two types": (CIRCUIT, lambda c: _first(c["streams"], "width").update(width=9), r"streams\[\d\] has two types"),
    "more lanes of a one-hot": (
        CIRCUIT,
        lambda c: next(s for s in c["streams"] if s["operation"] == "Shift")["type"].update(n=5),
        r"streams\[\d\] makes 2 lanes, and its type says 5",
    ),
    "a taller matrix": (
        CIRCUIT,
        lambda c: _grow(_first(c["streams"][::-1], "rows"), 0),
        r"streams\[\d\] makes 7 lanes, and its type says 6",
    ),
    "a table of one row": (  # once for all letters in one reading, and for the first one alone in the other
        CIRCUIT,
        lambda c: _first(c["streams"], "table")["table"].update(shape=[1, 4], rows=[[]]),
        "has a table of 1 rows for 6 letters",
    ),
    "a table of no dimensions": (
        CIRCUIT,
        lambda c: _first(c["streams"], "table")["table"].update(shape=[]),
        "table is missing, or nothing",
    ),
    "a codebook of no dimensions": (
        CIRCUIT,
        lambda c: c["codebooks"][0].update(shape=[]),
        r"codebooks\[0\] is missing, or nothing",
    ),
    "an entry that is no pair": (
        CIRCUIT,
        lambda c: _first(c["streams"], "rows")["rows"].__setitem__(0, [[0]]),
        "is missing, or nothing",
    ),
    "an output that is none": (CIRCUIT, lambda c: c.update(output=99), "circuit.json has the output 99, and"),
    "a table of no shape": (
        CIRCUIT,
        lambda c: _first(c["streams"], "table").update(table={"diagonal": 1, "size": 4}),
        "has a table of 4 rows for 6 letters",
    ),
    "a wider matrix": (
        CIRCUIT,
        lambda c: _grow(_first(c["streams"][::-1], "rows"), 1),
        r"streams\[\d\] has operands of 4 lanes, not such as it takes",
    ),
    "a stream from the end": (CIRCUIT, lambda c: _reads(c, -len(c["streams"])), r"inputs\[0\] is missing, or nothing"),
    "a stream that comes later": (CIRCUIT, lambda c: _reads(c, 1), r"streams\[\d+\] reads stream \d+, which does not"),
    "what is to come": (CIRCUIT, lambda c: _first(c["streams"], "k").update(k=-1), "attributes: k is missing, or"),
    "an operation that is a list": (CIRCUIT, lambda c: c["streams"][0].update(operation=[]), "operation is missing"),
}


def _reads(circuit, further):
    """The output reads a stream that stands so many places further than it did."""
    circuit["streams"][circuit["output"]]["inputs"][0] += further


def _grow(matrix, axis):
    matrix["shape"][axis] += 1


@pytest.mark.parametrize(("file", "edit", "said"), EDITS.values(), ids=EDITS)
def test_what_is_not_known_is_rejected(saved, tmp_path, file, edit, said):
    directory = shutil.copytree(saved, tmp_path / "edited")
    content = json.loads((saved / file).read_text("utf-8"))
    before = copy.deepcopy(content)
    edit(content)
    assert content != before or file == CIRCUIT and content["version"] is True
    (directory / file).write_text(json.dumps(content), "utf-8")
    verdict = check(directory)
    assert verdict.reason is not None and re.search(said, verdict.reason), verdict.reason


def test_what_was_saved_is_accepted(saved):
    assert check(saved).accepted
