"""The data of a circuit as Parquet: sequences, right answers, and labels for every named variable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from compiler.artifact.files import GENERATOR
from compiler.artifact.plain_files import fresh_file
from compiler.language.circuit import Circuit
from constructions.zoo.entry import Answered, Entry
from constructions.zoo.labels import Variable, labels, variables

OF_THE_TEXT = ("text", "tokens", "answers")
"""Columns beside the variables: the tokens in one line, as a list, and the right answer behind each (null: none)."""
_AT_ONCE = 64
_FEW = 20  # draws in a row that bring nothing new


def write_data(entry: Entry, directory: Path, train: int, test: int, seed: int) -> dict[str, int]:
    """DIRECTORY/train.parquet and test.parquet; returns how many sequences each holds.

    No sequence of the test stands in train. Where the language has fewer sequences, both get fewer, in the
    same proportion; one alone is for train, and there is no test.parquet, for nothing opens a file without rows.
    The same arguments give the same bytes, by one version of pyarrow: it writes its version into each file.
    """
    parquet = _library()
    circuit = entry.circuit()
    named = variables(circuit)
    drawn = list(islice(_distinct(entry, seed), train + test))
    last = min(test, max(1, len(drawn) * test // (train + test)), len(drawn) - 1)
    learned, held = drawn[: len(drawn) - last], drawn[len(drawn) - last :]
    directory.mkdir(parents=True, exist_ok=True)
    for name, sequences in (("train", learned), ("test", held)):
        file = directory / f"{name}.parquet"
        if not sequences:
            file.unlink(missing_ok=True)  # of an earlier run
            continue
        with fresh_file(file) as place:
            parquet.write_table(_table(circuit, named, sequences), place, compression="zstd")
    return {"train": len(learned), "test": len(held)}


def _library() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError("data are written by pyarrow, which is not installed: pip install '.[zoo]'") from None
    return parquet


def _distinct(entry: Entry, seed: int) -> Iterator[Answered]:
    """Different sequences in the order in which they are drawn, until nothing new comes."""
    seen: set[tuple[str, ...]] = set()
    barren = 0
    for batch in count():
        new = 0
        for word, answers in entry.sequences(_AT_ONCE, (seed << 20) + batch):
            if tuple(word) not in seen:
                seen.add(tuple(word))
                new += 1
                yield word, answers
        barren = 0 if new else barren + 1
        if barren == _FEW:
            return


def _table(circuit: Circuit, named: list[Variable], sequences: list[Answered]) -> Any:
    import pyarrow

    columns = {variable.name: [] for variable in named}
    for row in labels(circuit, [word for word, _ in sequences]):
        for name, values in row.items():
            columns[name].append(values)
    texts = [" ".join(word) for word, _ in sequences], [w for w, _ in sequences], [a for _, a in sequences]
    strings = pyarrow.list_(pyarrow.string())
    fields = [pyarrow.field(name, kind) for name, kind in zip(OF_THE_TEXT, (pyarrow.string(), strings, strings))]
    fields += [_field(variable, _column(variable.name, named)) for variable in named]
    return pyarrow.table([*texts, *columns.values()], schema=pyarrow.schema(fields, metadata={"generator": GENERATOR}))


def _column(name: str, named: list[Variable]) -> str:
    """What the column of a variable is called: its name; where one beside the variables is called so, the first of
    "text#2", "text#3", … that no variable has.
    """
    if name not in OF_THE_TEXT:
        return name
    taken = {variable.name for variable in named}
    return next(column for number in count(2) if (column := f"{name}#{number}") not in taken)


def _field(variable: Variable, column: str) -> Any:
    """A list with an entry for each position; of several lanes each entry is a list. Its metadata say what it is."""
    import pyarrow

    each = pyarrow.float64() if variable.kind.startswith("number") else pyarrow.int64()
    kind = pyarrow.list_(pyarrow.list_(each) if variable.kind.endswith("s") else each)
    return pyarrow.field(column, kind, metadata={"variable": json.dumps(variable.to_json())})
