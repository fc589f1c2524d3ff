"""What it would take to put the checker's rules behind the kernel's boundary, counted for docs/proofs.md.

python -m tests.verify.kernel.cost writes the table. Each file has one role, given here by what its docstring says it
does; a file that proves and chooses in one stands with the rules, since whoever reads it must trust it as a whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.verify.checker.size import FOLDER, lines_of_code
from tests.verify.kernel.page import put, said

READING = "files, limits and words"
ROLES: dict[str, str] = {
    READING: "__main__ budget check configs delta_family families files formats operands schema text unexpected "
    "meaning/entries meaning/told tasks/listing tasks/names",
    "rules: what a float operation gives": "arithmetic/delta arithmetic/factors arithmetic/heads arithmetic/lengths "
    "arithmetic/mamba arithmetic/mamba2 arithmetic/model arithmetic/norms arithmetic/pads arithmetic/perturbed "
    "arithmetic/running arithmetic/states arithmetic/sums",
    "rules: what a value can be, and add up to": "arithmetic/columns arithmetic/memories arithmetic/moves "
    "arithmetic/once arithmetic/totals values/apart values/bent values/bounds values/exact values/followed "
    "values/joint values/language values/latches values/machines values/tables values/together values/values "
    "values/windows",
    "rules: what an operation of a circuit gives": "meaning/circuit meaning/compare meaning/conditions meaning/rules",
    "rules: tasks": "tasks/answered tasks/hulls tasks/letters tasks/machine tasks/matches tasks/paths "
    "tasks/questions tasks/reached tasks/readout tasks/scores tasks/task tasks/task_chains tasks/task_copies "
    "tasks/task_forms tasks/task_matches tasks/task_pairs tasks/task_recall tasks/task_steps tasks/witness",
    "search: when two values are equal": "meaning/breakpoints meaning/cases meaning/flags meaning/items meaning/moved "
    "meaning/normal_form meaning/packed meaning/quotient meaning/relations meaning/rings values/effort",
}
_REFUSALS = {"Rejected", "Unproved", "TooLarge", "Split", "Unfit", "Nobody"}


def files() -> dict[str, str]:
    """The role of each file, by its path in the folder."""
    return {f"{name}.py": role for role, names in ROLES.items() for name in names.split()}


def functions(text: str) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def goes_on(function: ast.FunctionDef) -> bool:
    """Whether it tries something, and something else where that is refused: a choice, and so search."""
    for node in ast.walk(function):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            names = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)}
            if names & _REFUSALS and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
                return True
    return False


def makes_facts(function: ast.FunctionDef) -> bool:
    """Whether later steps believe what it returns: `kept` stores it as a fact of the proof, or it makes a new root and
    says what that can be (`World.root`).
    """
    stored = any(isinstance(d, ast.Name) and d.id == "kept" for d in function.decorator_list)
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return stored or any(isinstance(f, ast.Attribute) and f.attr == "root" for f in calls)


def table() -> str:
    """The page's rows: of each role the files, lines of code, functions, those that make facts and that choose."""
    heads = ["role", "files", "lines of code", "functions", "make facts", "try again"]
    lines = [f"| {' | '.join(heads)} |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    counted = {role: [0] * 5 for role in ROLES}
    for name, role in files().items():
        text = (FOLDER / name).read_text("utf-8")
        held = list(functions(text))
        these = [1, lines_of_code(text), len(held), sum(map(makes_facts, held)), sum(map(goes_on, held))]
        counted[role] = [a + b for a, b in zip(counted[role], these, strict=True)]
    counted["all"] = [sum(column) for column in zip(*counted.values(), strict=True)]
    return "\n".join(
        [*lines, *(f"| {role} | {' | '.join(f'{n:,}' for n in found)} |" for role, found in counted.items())]
    )


TABLE = ("| role | files | lines of code |", "\n\n<!-- end of the cost -->")

if __name__ == "__main__":
    put(said(*TABLE), table())
