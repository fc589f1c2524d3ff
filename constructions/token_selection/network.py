"""A construction on fnn+ssm: compiled, run in exact numbers and as a torch module, its sizes beside those by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from compiler.artifact.records import right_answers
from compiler.digits import percent
from compiler.driver import compile
from compiler.machines.fnn_ssm import CompiledNetwork
from constructions.checkpoints.guarantee import NOT_ASKED
from constructions.checkpoints.judged import right_of
from constructions.command.display import rate_line
from constructions.command.reporting import strict_json
from constructions.command.requests import check_exhaustive
from constructions.construction import CircuitFamily
from verify.check import Verification, check
from verify.obstructions import Capacity, Obstruction, summary
from verify.samples import Cost, chosen_batches

MODULE_SEQUENCES = 256  # that the torch module is run on as well
MODULE = ", as a torch module"
_COUNTS = ("queries", "sequences")
NEAR = 1e-6  # how far its scores may be from the exact ones: cosines are rounded, and so are their sums
LETTERS = ("M", "U", "D", "L", "W", "S", "B")


@dataclass(frozen=True, eq=False)
class BuiltNetwork:
    """A construction and its network."""

    construction: CircuitFamily
    compiled: CompiledNetwork


def build(construction: CircuitFamily) -> BuiltNetwork:
    """Compile for fnn+ssm; CompileError with every reason where that cannot be.

    ValueError for an arithmetic or a number of columns, of which it has none, and whatever `build` raises for a
    construction.
    """
    construction.check_sizes()
    circuit = construction.circuit()
    construction.check_lengths(circuit.max_length)
    return BuiltNetwork(construction, compile(circuit, "fnn+ssm", construction.dtype, construction.columns()))


def verify(
    built: BuiltNetwork, mode: str, samples: int, progress: Callable[[str, int], Callable[[int], None]]
) -> dict[str, Verification]:
    """Every task in exact numbers, and the start of it by the torch module, whose scores need only be near."""
    construction, compiled = built.construction, built.compiled
    check_exhaustive(construction, mode)  # type: ignore[arg-type]
    dtype = np.float64 if compiled.fits_float64 else object
    module = compiled.module()
    hard = construction.promise() != "random"
    results = {}

    def by_module(ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return module(torch.from_numpy(ids)).numpy()

    for task in construction.tasks():
        cost = Cost(compiled.source.token_alphabet.size)
        chosen = chosen_batches(task, mode, samples, construction.seed, cost, hard)
        exact = lambda ids: compiled.run(ids, dtype)
        found = check(exact, compiled.interpret, chosen.batches, progress(task.name, chosen.count))
        results[task.describe()] = replace(found, left_out=chosen.left_out, not_drawn=chosen.not_drawn)
        if mode != "none":
            some = chosen_batches(task, "random", min(samples, MODULE_SEQUENCES), construction.seed, cost, hard).batches
            near = check(by_module, exact, some, bound=NEAR)
            results[f"{task.describe()}{MODULE}"] = replace(near, share=None)
    return results


def passed(built: BuiltNetwork, results: dict[str, Verification]) -> bool:
    """Exact where it is said to be, near in floats, and every answer right where that is promised."""
    total = sum(results.values(), start=Verification())
    return total.within and (built.construction.promise() == "random" or total.passed)


def report(built: BuiltNetwork, results: dict[str, Verification]) -> dict[str, Any]:
    """The JSON object of the command."""
    construction, needs = built.construction, obstructions(built)
    return {
        "construction": construction.title(),
        "theorem": construction.statement(),
        "params": construction.params(),
        "arch": "fnn+ssm",
        "sizes": asdict(built.compiled.sizes),
        "by_hand": construction.by_hand(),
        "information_bits": construction.information_bits(),
        "obstructions": [str(one) for one in needs],
        "needed": summary(needs, built.compiled.sizes.D) if needs else "",
        "answers": right_of(construction, NOT_ASKED, results),
        "expected_failure": construction.expected_failure(),
        "domain": built.compiled.source.token_language.description,
        "verification": {name: result.to_json() for name, result in results.items()},
    }


def obstructions(built: BuiltNetwork) -> list[Obstruction]:
    """Lower bounds for any exact network, or any of its kind, beside what this one has."""
    sizes = built.compiled.sizes
    return built.construction.obstructions(Capacity.of_network(sizes.D, sizes.M, sizes.U))


def run(construction: CircuitFamily, mode: str, samples: int, as_json: bool) -> bool:
    """Build, verify and show; whether it came out as promised."""
    from constructions.command import display

    with display.progress(quiet=as_json) as bars:
        with bars.stage("compile"):
            built = build(construction)
        results = verify(built, mode, samples, bars.form("fnn+ssm"))
    told = report(built, results)
    if as_json:
        display.say(strict_json(told))
    else:
        _show(told)
    return passed(built, results)


def _show(told: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from constructions.command.display import BOLD, console

    console.print(Text.assemble((told["construction"], BOLD), f" on fnn+ssm  {told['theorem']}"))
    by_hand = [told["by_hand"]] if told["by_hand"] else []
    table = Table("", *LETTERS)
    table.add_row("built", *(f"{told['sizes'][name]:,g}" for name in LETTERS))
    for sizes in by_hand:
        table.add_row("by hand", *(f"{sizes[name]:,}" if name in sizes else "" for name in LETTERS))
    console.print(table)
    rows = told["verification"].items()  # the module runs some of the sequences again
    total = {count: sum(row[count] for name, row in rows if not name.endswith(MODULE)) for count in _COUNTS}
    right = right_answers({"answers": told["answers"], "certificate": None}, total)
    console.print(f"domain: {told['domain']}; answers right: {right}")
    for sentence in filter(None, (*told["obstructions"], told["needed"])):
        console.print(sentence)
    if told["answers"] == "random":
        console.print(rate_line(told["expected_failure"], 4))
    checked = Table("verified", "sequences", "queries", "right", "wrong sequences", "exact")
    tasks = list(dict.fromkeys(name.removesuffix(MODULE) for name in told["verification"]))
    for name, row in told["verification"].items():
        number = tasks.index(name.removesuffix(MODULE)) + 1
        form = f"task {number}{', in torch' if name.endswith(MODULE) else ''}"
        right = "" if row["accuracy"] is None else f"{percent(row['accuracy'], 6)} %"
        wrong = row["sequences"] - row["exact_sequences"]
        exact = {True: "yes", False: "near", None: "not run"}[row["bit_exact"]]
        checked.add_row(form, f"{row['sequences']:,}", f"{row['queries']:,}", right, f"{wrong:,}", exact)
    console.print(checked)
    for number, task in enumerate(tasks, start=1):
        console.print(f"task {number}: {task}")
