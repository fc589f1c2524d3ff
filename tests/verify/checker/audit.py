"""Which checkpoints need each rule of the checker: python -m tests.verify.checker.audit [rule ...]

Each rule is taken away by itself; a checkpoint that is proved with it and not without it needs it. The checkpoints have
the least ballast: what rules on bounds are for shows there, and with the margin at larger sizes only. The table in
docs/proofs.md names one for each rule for which one was found, which is asked first; `test_audit.py` asks for every
line. Exit code 1 if some rule is needed by none.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

from compiler.errors import CompileError
from tests.verify.checker.checkpoints import least_ballast, write
from tests.verify.checker.evidence import jobs
from verify.checker import files
from verify.checker.arithmetic import columns, mamba, memories, model, norms, once, states, sums, totals
from verify.checker.check import check
from verify.checker.formats import Rejected
from verify.checker.meaning import circuit, items, normal_form
from verify.checker.values import bent, bounds, language, latches
from verify.checker.values.values import Root, Value, World, of_root

PAGE = Path(__file__).parents[3] / "docs" / "proofs.md"


def witnesses() -> list[tuple[str, str]]:
    """The lines of the table in docs/proofs.md: (rule, checkpoint that needs it)."""
    table = PAGE.read_text("utf-8").split("| rule | not proved without it |")[1].split("\n\n")[0]
    return re.findall(r"^\| (.+) \| `(.+)` \|$", table, flags=re.MULTILINE)


def _refused(*_args: object, **_kwargs: object) -> None:
    raise Rejected("a rule that was taken away")


def _edges(**changed: bool) -> tuple:
    """Languages whose edges say less."""

    def parse(promise: dict) -> language.Language:
        found = language.parse(promise)
        return replace(found, edges=tuple(replace(e, **changed) for e in found.edges))

    return files, "parse", parse


def _one_state() -> property:
    """Where paths lead, if every edge began and ended at one state."""
    graph = language.Language.graph.func  # type: ignore[attr-defined]
    alike = lambda edges: tuple(replace(e, source="", target="") for e in edges)
    return property(lambda self: graph(replace(self, start="", edges=alike(self.edges))))


def _unbent(world: object) -> list[normal_form.Meaning]:
    return [normal_form.Meaning(world, paths=paths) for paths in (False, True)]


def _without_paths(world: World) -> list[normal_form.Meaning]:
    return [normal_form.Meaning(world, breakpoints) for breakpoints in (False, True)]


_ANY_MEMORY = once._memories


def _of_memories(world: World, root: Root) -> list[once.Memory]:
    return _ANY_MEMORY(world, root) if root.kind == "memory" else []


def _behind_a_gate(self: items.Items, root: Root, slope: Fraction, gate: Value, lag: int) -> None:
    self.products.setdefault((lag, None), []).append((slope, (gate, of_root(root, Fraction(1)))))


def _mirrored(_step: states.Step, columns: Sequence[states.Column]) -> tuple[list[states.Column], list]:
    return list(columns), []


NOTHING: Callable = lambda *_: None
RULES: dict[str, tuple] = {
    "edges: bounds along paths": (language.Language, "graph", _one_state()),
    "counts since: a sum less its latch is a count": (latches, "_difference_of_sums", NOTHING),
    "forms": (bounds, "_folded", lambda *_: iter(())),
    "totals: distinct letters": _edges(distinct=False),
    "totals: edges that are taken once": _edges(repeats=True),
    "windows: rectified forms of letters": (totals, "_of_form", lambda *_: iter(())),
    "writes that stop themselves": (once, "_one", NOTHING),
    "writes that stop themselves: running sums": (once, "_memories", _of_memories),
    "decay: counts that are reset": (states, "counted", _refused),
    "decay: huge steps may round": (mamba, "_loose", _refused),
    "latches": (states, "latch", _refused),
    "latches of one flag": (bent, "joined", lambda _, value: value),
    "counts that outgrow the format": (sums, "_falling_sum", _refused),
    "other memories' columns": (states, "_direct_sum", _refused),
    "other memories' columns: columns that cancel": (states, "_without_mirrors", _mirrored),
    "pieces": (bounds, "_MOST_BREAKPOINTS", 0),
    "memories: of one operand": (model, "joined", lambda _, value: value),
    "memories: products behind gates of one root": (bounds, "_gate", NOTHING),
    "memories: queries of one integer": (memories, "_of_one_integer", lambda *_: False),
    "memories: queries that are latches of one flag": (memories, "latched", lambda _, query: (None, query, 0)),
    "memories: columns that share what is stored": (memories, "_MOST_TOGETHER", 0),
    "memories: columns written once for each count": (columns, "_by_count", NOTHING),
    "norms: bounds by pieces": (norms, "tight", bounds.bounds),
    "norms: several constants": (norms, "_MOST_BALLAST", 1),
    "two values": (normal_form.Meaning, "_gated", NOTHING),
    "edges by themselves": (circuit, "zero_at_all_edges", lambda *_: False),
    "what paths leave": (
        circuit,
        "normal_forms",
        lambda world: [normal_form.Meaning(world, b) for b in (False, True)],
    ),
    "rings": (normal_form, "delayed", lambda _, value: value),
    "memories behind gates": (items.Items, "_gated_memory", _behind_a_gate),
    "common factors": (normal_form.Meaning, "_cancel", lambda self, terms: not terms),
    "sums that decide: dependent queries": (normal_form.Meaning, "queries", NOTHING),
    "differences: sums of differences": (normal_form, "ended", NOTHING),
    "factors in breakpoints": (circuit, "normal_forms", _unbent),
}


@contextmanager
def without(rule: str) -> Iterator[None]:
    """The checker as it is without a rule."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(*RULES[rule]))
        yield


def needing(rule: str, checkpoints: list[Path]) -> Path | None:
    """The first of these proved checkpoints that is not proved without the rule."""
    with without(rule):
        return next((c for c in checkpoints if not check(c).accepted), None)


def main() -> int:
    names, known, found = sys.argv[1:] or list(RULES), dict(witnesses()), {}
    with tempfile.TemporaryDirectory() as root:
        made = []
        for name, build, target, dtype in jobs():
            try:
                with least_ballast():
                    made += (
                        [write(Path(root) / f"{name}-{target}", build(), target, dtype)] if dtype == "float32" else []
                    )
            except (CompileError, TypeError):
                continue
        proved = [c for c in made if check(c).accepted]
        for rule in names:
            witness = needing(rule, sorted(proved, key=lambda c: c.name != known.get(rule)))
            found[rule] = witness is not None
            print(f"| {rule} | {f'`{witness.name}`' if witness else '**none**'} |", flush=True)
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
