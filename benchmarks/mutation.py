"""Mutation: change one place of a source file at a time and see whether the tests notice.

    python benchmarks/mutation.py verify/checker/tasks/readout.py --tests tests/verify/checker/test_task.py
    python benchmarks/mutation.py compiler/gadgets compiler/targets compiler/passes --limit 200 --tests tests/...

Mutants: numbers (0 ↔ 1, n ± 1, halves, other sign), comparisons (< ↔ ≤, > ↔ ≥, = ↔ ≠), + ↔ −, · ↔ /, and ↔ or, any ↔
all, min ↔ max, `not` left out, conditions of a `raise` or an early end never true, and statements that are calls left
out. Annotations, decorators and the texts of errors are let be. Same files, same mutants, in the same order; `--limit`
takes them evenly.

Each mutant runs in a forked process: third-party modules are imported once, the project's own anew, with the mutated
text in place of the file. Nothing is written. A mutant is killed where a test fails, an import fails, or time runs out;
the others survive and are listed. Exit code 1 where one survives.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ("compiler", "verify", "constructions", "tests")
COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPERATED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
RENAMED = {"any": "all", "all": "any", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """file: relative to the repository; line: 1-based; start, stop: byte offsets in the file.

    before, after: the texts.
    """

    file: str
    line: int
    start: int
    stop: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.before}  →  {self.after}"

    def applied(self) -> bytes:
        """The file's bytes with this change."""
        data = (ROOT / self.file).read_bytes()
        return data[: self.start] + self.after.encode() + data[self.stop :]


class _Finder(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, file: Path):
        self.file, self.data = str(file.relative_to(ROOT)), file.read_bytes()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _replace(self, node: ast.AST, after: str) -> None:
        self._put(node.lineno, *self._span(node), after)

    def _put(self, line: int, start: int, stop: int, after: str) -> None:
        before = self.data[start:stop].decode()
        if before != after:
            self.found.append(Mutant(self.file, line, start, stop, before, after))

    def _between(self, left: ast.AST, right: ast.AST, before: str, after: str) -> None:
        """The operator between two operands."""
        start, stop = self._span(left)[1], self._span(right)[0]
        at = self.data[start:stop].decode().find(before)
        if at >= 0:
            place = start + len(self.data[start:stop].decode()[:at].encode())
            self._put(left.end_lineno, place, place + len(before), after)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, {0: "1", 1: "0"}.get(node.value, str(node.value + 1)))
            if node.value > 1:
                self._replace(node, str(node.value - 1))
        elif isinstance(node.value, float):
            self._replace(node, repr(node.value / 2) if node.value else "1.0")
            self._replace(node, repr(node.value * 1.25 + 0.01))

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, operands[1:]):
            if type(operator) in COMPARED:
                self._between(left, right, SIGNS[type(operator)], COMPARED[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in OPERATED:
            self._between(node.left, node.right, *OPERATED[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        before, after = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:]):
            self._between(left, right, before, after)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub | ast.Not):
            start, stop = self._span(node)
            self._put(node.lineno, start, self._span(node.operand)[0], "" if isinstance(node.op, ast.Not) else "+")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func
        if isinstance(name, ast.Name) and name.id in RENAMED:
            self._replace(name, RENAMED[name.id])
        elif isinstance(name, ast.Attribute) and name.attr in RENAMED:
            stop = self._span(name)[1]
            self._put(name.end_lineno, stop - len(name.attr), stop, RENAMED[name.attr])
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if len(node.body) == 1 and isinstance(node.body[0], ast.Raise | ast.Return | ast.Continue):
            self._replace(node.test, "False")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        return  # the texts of errors

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in node.body:  # not the decorator's options
            self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.body]:
            self.visit(part)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        return


def mutants(files: list[Path]) -> list[Mutant]:
    """All mutants of these files, in the order of the text."""
    found: list[Mutant] = []
    for file in files:
        finder = _Finder(file)
        finder.visit(ast.parse(finder.data))
        found += sorted(set(finder.found), key=lambda m: (m.start, m.stop, m.after))
    return found


def spread(all_of_them: list[Mutant], limit: int) -> list[Mutant]:
    """At most `limit` of them, evenly."""
    if not limit or len(all_of_them) <= limit:
        return all_of_them
    return [all_of_them[i * len(all_of_them) // limit] for i in range(limit)]


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutated text for one module and leaves all others to Python."""

    def __init__(self, mutant: Mutant):
        self.name = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.path, self.data = ROOT / mutant.file, mutant.applied()

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        package = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=package
        )

    def exec_module(self, module) -> None:
        exec(compile(self.data, str(self.path), "exec", dont_inherit=True), module.__dict__)


def _run(mutant: Mutant | None, tests: list[str]) -> int:
    """The exit status of the tests in this process, under the mutant."""
    import pytest

    if mutant is not None:
        sys.meta_path.insert(0, _Mutated(mutant))
    return int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))


def survives(mutant: Mutant | None, tests: list[str], seconds: float) -> bool:
    """Whether all tests pass under the mutant, in a process of its own."""
    child = os.fork()
    if not child:
        status = 1
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1), os.dup2(quiet, 2)
            signal.alarm(int(seconds) + 1)
            status = _run(mutant, tests)
        finally:
            os._exit(1 if status else 0)
    return os.waitpid(child, 0)[1] == 0


def preload() -> None:
    """Import what is not ours, once, and forget what is."""
    sys.path.insert(0, str(ROOT))
    import hypothesis  # noqa: F401
    import networkx  # noqa: F401
    import pytest  # noqa: F401
    import scipy.sparse  # noqa: F401
    import sympy  # noqa: F401
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    for name in [name for name in sys.modules if name.split(".")[0] in PROJECT]:
        del sys.modules[name]


def sources(paths: list[Path]) -> Iterator[Path]:
    """The Python files, folders gone through by name."""
    for path in paths:
        path = path.resolve()
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, help="files or folders to mutate")
    parser.add_argument("--tests", nargs="+", default=[], help="what pytest runs, fastest first")
    parser.add_argument("--limit", type=int, default=0, help="so many mutants, spread evenly; 0: all")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first mutant to run")
    parser.add_argument("--until", type=float, default=float("inf"), help="start no mutant after so many seconds")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--json", type=Path, help="also write the survivors there")
    options = parser.parse_args()
    chosen = spread(mutants(list(sources(options.sources))), options.limit)[options.first :]
    if options.list:
        print("\n".join(map(str, chosen)))
        return 0
    preload()
    begin = time.monotonic()
    if not survives(None, options.tests, 600):
        print("the tests fail without any mutant", file=sys.stderr)
        return 2
    allowed = 10 + 3 * (time.monotonic() - begin)
    survivors, done = [], 0
    for mutant in chosen:
        if time.monotonic() - begin > options.until:
            break
        done += 1
        if survives(mutant, options.tests, allowed):
            survivors.append(mutant)
            print(mutant, flush=True)
    print(f"{done} of {len(chosen)} mutants run, {done - len(survivors)} killed, {len(survivors)} survived")
    if options.json:
        options.json.write_text(
            json.dumps([asdict(mutant) for mutant in survivors], indent=1, ensure_ascii=False) + "\n"
        )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
