"""What is refused of the files that a run would write: two that are one, one in place of what no run of ours wrote,
one in a model's directory, and a directory in place of what the run reads.

A file that is written anew is known by a mark of ours in it, or by a form that only ours have: `Kind`.
"""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

from compiler.artifact.files import CONFIG, GENERATOR, MANIFEST, is_harmless
from compiler.artifact.place import check_place
from compiler.artifact.plain_files import check_replaced

_END = 1 << 16  # bytes at its beginning, and at its end, that tell what a file is
_PICTURES = (".png", ".pdf", ".svg")
_WEIGHTS = (".safetensors", ".bin", ".onnx", ".npz")


@dataclass(frozen=True)
class Kind:
    """name: such as "Markdown page of ours"; is_ours: whether a file with these bytes, those between its beginning and
    its end left out, is one."""

    name: str
    is_ours: Callable[[bytes], object]


def _beginning(pattern: bytes) -> Callable[[bytes], object]:
    return re.compile(rb"(\xef\xbb\xbf)?\s*" + pattern, re.DOTALL).match


def _is_csv(beginning: bytes) -> bool:
    """Whether the first two rows have one number of cells, and more than one; other formats have commas too."""
    text = beginning.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "[", "<", "\\", "%", "#"):
        return False
    try:
        widths = {len(row) for row in islice(csv.reader(io.StringIO(text)), 2)}
    except csv.Error:
        return False
    return len(widths) == 1 and min(widths) > 1


_MARK = re.escape(GENERATOR.encode())
_OUR_TITLES = (
    b"Every program of paper B: what was run",  # of earlier versions
    b"Every regular language",
    b"The lemmas of paper D as ReLU networks",
    b"The programs built after paper B: what was run",
    b"The papers' experiments",
)
CSV = Kind("CSV table", _is_csv)  # which has no place for a mark: `check_csv`
HTML = Kind(
    "HTML page of ours", _beginning(rb'(?i:<!doctype html>).{0,200}<meta name="generator" content="%b">' % _MARK)
)
JUNIT = Kind("JUnit report of ours", _beginning(rb'(<\?xml[^>]*>\s*)?<testsuites name="conformance"[\s>/]'))
LATEX = Kind("LaTeX table of ours", _beginning(rb"%% %b\n" % _MARK))
PARQUET = Kind("Parquet table of ours", re.compile(rb"PAR1.*%b" % _MARK, re.DOTALL).match)
MARKDOWN = Kind("Markdown page of ours", _beginning(rb"# (%b)\r?\n" % b"|".join(_OUR_TITLES)))
PICTURE = Kind(
    "picture of ours",
    re.compile(
        rb"\x89PNG.*tEXtCreator\0%b|%%PDF-.*/Creator \(%b\)|<\?xml.*<dc:creator>\s*<cc:Agent>\s*<dc:title>%b<"
        % (_MARK, re.escape(GENERATOR.replace("(", "\\(").replace(")", "\\)").encode()), _MARK),
        re.DOTALL,
    ).match,
)
VECTORS = Kind("file of vectors", re.compile(rb'.{8}\{"__metadata__":\{"cases":', re.DOTALL).match)


def file_path(path: Path, option: str) -> Path:
    """The path, where a file can be written there; ValueError in one sentence otherwise."""
    if path.is_dir():
        raise ValueError(f"{option} {path} is a directory, and a file is needed.")
    check_replaced(path, f"{option} {path}")
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{option} {path} may not be written.")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: there is no directory {path.parent}.")
    if not path.exists():
        check_place(path)
    check_outside(path, option)
    return path


def check_outside(path: Path, option: str) -> None:
    """ValueError where the path, through links as well, lies in a model's directory and is nothing that `verify` lets
    stand there, such as a picture: programs that load the model might read it.
    """
    for place in (Path(os.path.abspath(path)), Path(os.path.realpath(path))):
        for inner, outer in zip((place, *place.parents), place.parents, strict=False):
            if not is_harmless(inner.name) and _holds_a_model(outer):
                raise ValueError(f"{option} {path} lies in {outer}, which would hold a file that is none of its own.")


def check_spared(out: Path, inputs: Mapping[str, Path | None]) -> None:
    """ValueError where an input, by what it is called, is the directory that would be replaced, or lies in it."""
    for what, path in inputs.items():
        if path is not None and os.path.lexists(path) and lies_in(path, out):
            raise ValueError(
                f"--out {out} would be replaced, and {what} {path}, which this run reads, would be lost with it; "
                "name another directory."
            )


def lies_in(path: Path, directory: Path) -> bool:
    """Whether the path is the directory or anything below it, as it is written or through links."""
    places = (Path(os.path.abspath(path)), Path(os.path.realpath(path)))
    return any(_same(each, directory) for place in places for each in (place, *place.parents))


def _holds_a_model(directory: Path) -> bool:
    """Whether these are the files of a checkpoint or an export of ours, or of any model."""
    try:
        names = set(os.listdir(directory))
    except OSError:
        return False
    weights = any(name.endswith(_WEIGHTS) for name in names)
    return MANIFEST in names or (weights and not names.isdisjoint((CONFIG, "export.json")))


def path_of_kind(path: Path, option: str, kind: Kind | None) -> Path:
    """The path, where a file of this kind can be written there; ValueError, in one sentence, otherwise."""
    file_path(path, option)
    check_kind(path, option, kind)
    return path


def picture_path(path: Path, option: str) -> Path:
    """The path, where a picture can be written there; ValueError in one sentence otherwise."""
    if path == Path():
        raise ValueError(f"{option} is empty or a directory, and a picture needs a file, such as {option} picture.png.")
    if os.path.splitext(path)[1].lower() not in _PICTURES:  # to which "..svg" has no ending, as to matplotlib
        raise ValueError(f"{option} {path}: a picture ends in {', '.join(_PICTURES)}.")
    return path_of_kind(path, option, PICTURE)


def check_csv(path: Path, option: str, force: bool) -> None:
    """ValueError where a table stands there, which may be anybody's; force: whether a table is replaced."""
    path_of_kind(path, option, CSV)
    if not force and path.exists() and path.stat().st_size:
        raise ValueError(f"{option} {path} exists already, and no mark says whose table it is: --force replaces it.")


def check_kind(path: Path, option: str, kind: Kind | None) -> None:
    """ValueError where a file stands there that is none of ours of this kind, or what is no file; None: any kind."""
    if kind is None or not path.exists():
        return
    check_replaced(path, f"{option} {path}")
    with path.open("rb") as file:
        told = file.read(_END)
        file.seek(max(len(told), path.stat().st_size - _END))
        told += file.read(_END)
    if told and not kind.is_ours(told):
        raise ValueError(
            f"{option} {path} is there already, and no {kind.name}: it would be lost. Name another file, or remove it."
        )


def check_apart(outputs: Mapping[str, Path | None]) -> None:
    """ValueError where two outputs of one run, by their options, are one file, or one is where the standard output
    goes: the later would replace the earlier.
    """
    given = [(f"{option} {path}", path) for option, path in outputs.items() if path is not None]
    for (one, first), (other, second) in combinations(given, 2):
        if _same(first, second):
            raise ValueError(f"{one} and {other} are one file, and one would replace the other; name two files.")
    for one, path in given:
        if _is_standard_output(path):
            raise ValueError(f"{one} and the standard output are one file, and both would be lost; name two files.")


def _same(first: Path, second: Path) -> bool:
    """Through links of both sorts as well."""
    if os.path.realpath(first) == os.path.realpath(second):
        return True
    return first.exists() and second.exists() and first.samefile(second)


def _is_standard_output(path: Path) -> bool:
    with suppress(OSError, ValueError, AttributeError):  # not there, or no file of the system
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    return False
