"""How many lines the kernel and its search have, for docs/proofs.md: python -m tests.verify.kernel.size writes them."""

from __future__ import annotations

from pathlib import Path

from tests.verify.checker.size import lines_of_code
from tests.verify.kernel.page import put, said

VERIFY = Path(__file__).parents[3] / "verify"
KERNEL, PROVER = VERIFY / "kernel", VERIFY / "prover"
OF_TASKS = ("machines.py", "readout.py", "recall.py", "situations.py", "tasks.py", "texts.py")


def sizes() -> str:
    """How many lines of code stand on either side of the boundary, and how many were to."""
    kernel, prover = (
        {path.name: lines_of_code(path.read_text("utf-8")) for path in folder.glob("*.py")}
        for folder in (KERNEL, PROVER)
    )
    tasks = sum(kernel[name] for name in OF_TASKS)
    whole = sum(kernel.values())
    return (
        f"The kernel has {whole:,} lines of code and the search {sum(prover.values()):,}. Of the kernel's, {tasks:,} "
        f"are situations and tasks,\nwhere 600 were allowed, and {whole - tasks:,} the rest; the aim was 1,600."
    )


def where() -> str:
    """Which files of the kernel are the longest."""
    rules, *others = (
        lines_of_code((KERNEL / f"{name}.py").read_text("utf-8"))
        for name in ("rules", "terms", "mixers", "circuit", "cases", "files")
    )
    terms, mixers, circuit, cases, files = others
    return (
        f"The rules themselves have {rules} lines. Longer is what they stand on: exact terms ({terms}), float "
        f"operations\n  ({mixers}), the operations of circuits ({circuit}), cases in which relus are compared "
        f"({cases}), files read without trust ({files})."
    )


SIZES = ("The kernel has ", " Its files import")
WHERE = ("The rules themselves have ", "\n- *What was not needed*")

if __name__ == "__main__":
    put(said(*SIZES), sizes())
    put(said(*WHERE), where())
