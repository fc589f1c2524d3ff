"""The table of docs/scores.md: each method on circuits of the zoo, plain, disguised, as a twin, and as Mamba-2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.artifact.json_files import shown
from compiler.artifact.schema import parse
from constructions.scoring.methods.named import METHODS, ORACLE, found_by
from constructions.scoring.problem import NothingFound, Problem

if TYPE_CHECKING:
    from constructions.scoring.evaluate import Score

CIRCUITS = ("count-a-to-24", "last-name", "at-least-3", "both-since-reset")
TWINS = (
    *CIRCUITS,
    *("count-since-b-to-24", "which-leads-16", "count-ab-to-8", "thermostat-0-3", "toggle-32", "initial"),
)
MAMBA2 = "plain, Mamba-2"
KINDS = ("plain", "disguised", "twin", MAMBA2)
COLUMNS = {
    "area": "area",
    "faithfulness": "faithful",
    "edges": "edges",
    "interchange": "interchange",
    "matched": "matched",
}
_MOST = 1 + 2**-40  # of a share: a correlation is rounded
Row = dict[str, Any]
START, END = "<!-- the table of scores -->", "<!-- its end -->"


def plain(place: Path, name: str, arch: str = "mamba") -> Path:
    """The checkpoint of a circuit of the zoo, built where it is not there."""
    from constructions.zoo.collection import entries

    out = place / f"{name}-{arch}"
    if not out.exists():
        entries()[name].write(out, arch)
    return out


def twin_of(place: Path, name: str, seed: int, steps: int) -> Path:
    """Its twin, trained where it is not there."""
    from constructions.checkpoints.saved import rebuild
    from constructions.scoring.asked import inputs_of
    from constructions.scoring.truth import Truth
    from constructions.scoring.twin import trained
    from constructions.scoring.twins_saved import write_twin

    out, source = place / f"{name}-twin", plain(place, name)
    if not out.exists():
        built = rebuild(source)
        write_twin(trained(Truth(built.compiled, inputs_of(built)), seed, steps), source, out)
    return out


def directories(place: Path, seed: int, steps: int) -> Iterator[tuple[str, str, Path, Any]]:
    """(circuit, kind, directory, key) of every problem."""
    from compiler.disguise.key import read_key
    from constructions.checkpoints.disguised import disguise_checkpoint

    for name in CIRCUITS:
        hidden, key = place / f"{name}-disguised", place / f"{name}.key.json"
        if not key.exists():
            disguise_checkpoint(plain(place, name), hidden, 3, seed + 1, key_file=key)
        yield name, "plain", plain(place, name), None
        yield name, "disguised", hidden, read_key(key)
        yield name, "twin", twin_of(place, name, seed, steps), None
        yield name, MAMBA2, plain(place, name, "mamba2"), None


def check_row(row: Any) -> None:
    """ValueError for what is no row of a run."""
    from constructions.scoring.evaluate import Score

    if not isinstance(row, dict):
        raise ValueError(f"a row is {shown(row)}")
    place = {name: row[name] for name in ("circuit", "kind", "method", "seed") if name in row}
    if [type(value) for value in place.values()] != [str, str, str, int]:
        raise ValueError("a row lacks its circuit, kind, method or seed")
    found = parse(Score, {name: value for name, value in row.items() if name not in place}, "a row")
    if found.answers < 0 or any(not 0 <= (getattr(found, name) or 0) <= _MOST for name in COLUMNS):
        raise ValueError(f"a row of {shown(row['circuit'])} has a score that is none")


def rows(place: Path, seed: int, steps: int, known: list[Row], told: Callable[[int], None]) -> Iterator[Row]:
    """A row for each problem and method. known: rows of an earlier run, which are not run again."""
    from constructions.scoring.build import problem_of

    for name, kind, directory, key in directories(place, seed, steps):
        there = {r["method"]: r for r in known if (r["circuit"], r["kind"], r["seed"]) == (name, kind, seed)}
        problem = None
        for method in (ORACLE, *METHODS):
            if method not in there:
                problem = problem or problem_of(directory, key, seed)
                found = asdict(_scored(method, problem))
                there[method] = {"circuit": name, "kind": kind, "method": method, "seed": seed} | found
            yield there[method]
            told(1)


def _scored(method: str, problem: Problem) -> Score:
    """Without a number where the method does not speak of such a model."""
    from constructions.scoring.evaluate import Score, score

    try:
        return score(problem, found_by(method, problem))
    except NothingFound:
        return Score()


def twin_rows(place: Path, seed: int, steps: int) -> list[Row]:
    """What the twins measured of themselves when they were trained."""
    from constructions.scoring.twins_saved import read_twin

    found = {name: read_twin(twin_of(place, name, seed, steps))[0].record() for name in TWINS}
    return [{"circuit": name, "seed": seed, "steps": one["steps"]} | one["measured"] for name, one in found.items()]


def markdown(found: dict[str, Any]) -> str:
    """The tables as they stand on the page."""
    lines = []
    for kind in KINDS:
        of = [row for row in found["rows"] if row["kind"] == kind]
        lines += [f"**{kind}**, mean over {', '.join(CIRCUITS)}", ""]
        lines += ["| method | " + " | ".join(COLUMNS.values()) + " |", "| --- |" + " --- |" * len(COLUMNS)]
        for method in (ORACLE, *METHODS):
            cells = [_mean([row[c] for row in of if row["method"] == method]) for c in COLUMNS]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += ["**twins**, measured on inputs that were not trained on", ""]
    lines += ["| circuit | accuracy | interchange | strict | through block 2 | past it | sequences |"]
    lines += ["| --- |" + " --- |" * 6]
    for row in found["twins"]:
        shares = [_shares(row[key]) for key in ("interchange", "through", "past")]
        numbers = [f"{row['accuracy']:.2f}", shares[0], f"{row['strict']:.2f}", *shares[1:], str(row["sequences"])]
        lines.append(f"| {row['circuit']} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def _shares(by_variable: dict[str, float]) -> str:
    """A share for each variable."""
    return ", ".join(f"{share:.2f}" for share in by_variable.values())


def _mean(values: list[float | None]) -> str:
    """Over the circuits where it is defined."""
    there = [value for value in values if value is not None]
    return f"{sum(there) / len(there):.2f}" if there else ""


def check_page(text: str) -> None:
    """ValueError for a page without a place for the table."""
    if text.count(START) != 1 or END not in text.partition(START)[2]:
        raise ValueError(f"the page has no place for the table; put the lines {START} and {END} there.")


def on_page(text: str, found: dict[str, Any]) -> str:
    """The page with this table in the place of its own."""
    check_page(text)
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{markdown(found)}\n\n{END}{after}"
