"""Mutants of the compiler against its own comparison and the checker: does wrong code reach the weights unseen?

    python -m benchmarks.mutation_guard 300 [first] [--json]

The mutants are those of `benchmarks/mutation.py` over gadgets, targets and passes, spread evenly. Each runs in a
process of its own, without any test: circuits of the shared list that go through the changed function are compiled,
and each whose weights come out otherwise is looked at:

    comparison   the compile-time comparison found a difference (Miscompiled)
    checker      it compiled, and the checker, which proves the unchanged weights, rejects it
    refused      the compiler refuses what it took, or dies of an exception: nobody gets wrong weights
    proved       other weights, and the checker proves them too; they answer right on every sample
    sampled      other weights of a form that the checker does not read or prove, right on every sample
    HOLE         other weights, wrong on a sample of the circuit's own oracle, and nobody objected

A mutant counts as the most severe of what became of its circuits: HOLE first, then comparison, checker, refused,
proved, sampled. "same weights" and "not reached" say that no circuit of the list came out otherwise. Exit code 1 where
there is a hole.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from benchmarks.mutation import PROJECT, ROOT, Mutant, _Mutated, mutants, preload, sources, spread

SOURCES = [Path("compiler") / name for name in ("gadgets", "targets", "passes")]
MUTANTS = 300
COMPILED, LOOKED_AT = 24, 6  # circuits per mutant: compiled, and of those that changed looked at more closely
SECONDS = 120  # of processor time per mutant
TARGETS = ("mamba", "mamba2", "s4d", "mamba-delta-t")
SEVERITY = ("HOLE", "comparison", "checker", "refused", "proved", "sampled", "same weights", "not reached")
Job = tuple[str, str]
"""A circuit of the shared list and a target."""


# Inside a process that may run mutated code ----------------------------------------------------------


def compiled_weights(job: Job) -> tuple[str, str]:
    """(what came out, weights or reason) of one circuit on one target."""
    from compiler import CompileError, bare, compile
    from compiler.exactness.compare import Miscompiled
    from tests.circuits import CASES

    name, target = job
    case = next(c for c in CASES if c.name == name)
    try:
        state = bare(compile(case.build(), target)).state_dict()
    except Miscompiled as reason:
        return "comparison", str(reason)
    except CompileError as reason:
        return "refused", str(reason)
    except Exception as reason:
        return "refused", f"{type(reason).__name__}: {reason}"
    digest = hashlib.sha256()
    for key, tensor in sorted(state.items()):
        digest.update(f"{key} {tuple(tensor.shape)}".encode() + tensor.numpy().tobytes())
    return "compiled", digest.hexdigest()


def proved(job: Job) -> bool | None:
    """Whether the checker proves the language model; None where there is none."""
    from compiler import CompileError
    from tests.circuits import CASES
    from tests.verify.checker.checkpoints import write
    from verify.checker.check import check

    name, target = job
    if target not in ("mamba", "mamba2"):
        return None
    case = next(c for c in CASES if c.name == name)
    with tempfile.TemporaryDirectory() as folder:
        try:
            return check(write(Path(folder) / "made", case.build(), target)).accepted
        except CompileError:
            return None


def right(job: Job) -> bool:
    """Whether the real module says what the circuit's own oracle says, on short and long words."""
    import torch

    from compiler import bare, compile
    from tests.circuits import CASES, mistakes, words

    name, target = job
    case = next(c for c in CASES if c.name == name)
    circuit = case.build()
    stack = bare(compile(circuit, target))
    with torch.no_grad():
        for tokens in words(case, circuit):
            scores = stack(torch.from_numpy(tokens)).double().numpy()[..., : circuit.output.width]
            if mistakes(case, circuit, tokens, scores):
                return False
    return True


def fate(job: Job, before: dict) -> tuple[str, str]:
    """What became of a circuit whose compilation came out otherwise than before, and the reason."""
    what, detail = compiled_weights(job)
    if what != "compiled":
        return what, detail
    verdict = proved(job) if before["proved"] is not False else None
    if verdict is False:
        return "checker", ""
    if not right(job):
        return "HOLE", ""
    return ("proved" if verdict else "sampled"), ""


def traced(run: Callable[[], object]) -> tuple[object, set[tuple[str, int]]]:
    """What a function returns, and the (file, first line) of each function of the mutated sources that it called."""
    called: set[tuple[str, int]] = set()
    roots = tuple(str(ROOT / source) for source in SOURCES)

    def note(frame, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(roots):
            called.add((str(Path(code.co_filename).relative_to(ROOT)), code.co_firstlineno))

    sys.setprofile(note)
    try:
        return run(), called
    finally:
        sys.setprofile(None)


def unchanged() -> dict:
    """Every circuit on every target without a mutant: what came out, whether it is proved, what it called."""
    from tests.circuits import CASES

    found = {}
    for case in CASES:
        for target in TARGETS:
            job = (case.name, target)
            (what, detail), called = traced(lambda: compiled_weights(job))  # noqa: B023
            known = proved(job) if what == "compiled" else None
            found["/".join(job)] = {"what": what, "detail": detail, "proved": known, "called": sorted(called)}
    return found


def judged(mutant: Mutant, jobs: list[str], before: dict) -> dict:
    """The outcome of one mutant: (outcome, how many circuits came out otherwise, the first reason)."""
    sys.meta_path.insert(0, _Mutated(mutant))
    changed, fates, reasons = 0, [], {}
    for name in jobs:
        job = tuple(name.split("/"))
        was = before[name]
        what, detail = compiled_weights(job)
        if what == was["what"] and (what != "compiled" or detail == was["detail"]):
            continue
        changed += 1
        if changed <= LOOKED_AT:
            outcome, reason = fate(job, was)
            fates.append(outcome)
            reasons.setdefault(outcome, f"{name}: {reason}")
    outcome = min(fates, key=SEVERITY.index, default="same weights")
    return {"outcome": outcome, "circuits": changed, "reason": reasons.get(outcome, "")[:300]}


# Around it -----------------------------------------------------------------------------------------------


def in_a_process(run: Callable[[], object], seconds: float = SECONDS) -> object:
    """What a function returns in a forked process, as JSON; None where it died or took too long."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if not child:
            with suppress(BaseException):
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1), os.dup2(quiet, 2)
                resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
                signal.alarm(int(20 * seconds))  # for what waits; processor time is what counts
                answer.write(json.dumps(run()).encode())
                answer.flush()
            os._exit(0)
        os.waitpid(child, 0)
        answer.seek(0)
        text = answer.read()
    return json.loads(text) if text else None


def reached(mutant: Mutant, before: dict) -> list[str]:
    """Circuits that call the function around the mutant; around no function, those that call any of its file."""
    tree = ast.parse((ROOT / mutant.file).read_bytes())
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node.lineno <= mutant.line <= node.end_lineno
    ]
    # a decorated function's code begins at its first decorator
    lines = {min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))]) for n in around}
    found = []
    for name, known in before.items():
        called = {line for file, line in known["called"] if file == mutant.file}
        if called & lines or (called and not around):
            found.append(name)
    return found


def evenly(names: list[str], most: int) -> list[str]:
    return names if len(names) <= most else [names[i * len(names) // most] for i in range(most)]


def known_before() -> dict:
    """What `unchanged` finds, kept for the next run of the very same sources."""
    digest = hashlib.sha256()
    for path in sources([ROOT / name for name in PROJECT]):
        digest.update(path.read_bytes())
    kept = Path(tempfile.gettempdir()) / f"mutation-guard-{digest.hexdigest()[:16]}.json"
    if not kept.exists():
        before = in_a_process(unchanged, 20 * SECONDS)
        if before is None:
            raise RuntimeError("the circuits do not compile without any mutant")
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(before), "utf-8")
        partial.replace(kept)
    return json.loads(kept.read_text("utf-8"))


def run(chosen: Iterable[Mutant], tell: Callable[[str], None] = lambda line: None) -> list[dict]:
    """A record for each mutant."""
    preload()
    before = known_before()
    records = []
    for mutant in chosen:
        jobs = evenly(reached(mutant, before), COMPILED)
        found = {"outcome": "not reached", "circuits": 0, "reason": ""}
        if jobs:
            died = {"outcome": "refused", "circuits": len(jobs), "reason": "it died or took too long"}
            found = in_a_process(lambda: judged(mutant, jobs, before)) or died  # noqa: B023
        records.append({"mutant": str(mutant), **found})
        tell(f"{found['outcome']:12} {mutant}  {found['reason'][:100]}")
    return records


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=MUTANTS)
    parser.add_argument("first", type=int, nargs="?", default=0, help=f"of {MUTANTS} that are spread over the sources")
    parser.add_argument("--named", nargs="+", metavar="MUTANT", help="these instead, as they are printed")
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    every = mutants(list(sources([ROOT / source for source in SOURCES])))
    chosen = spread(every, MUTANTS)[options.first : options.first + options.count]
    if options.named:
        chosen = [mutant for mutant in every if str(mutant) in options.named]
    records = run(chosen, lambda line: None if options.json else print(line, flush=True))
    outcomes = Counter(record["outcome"] for record in records)
    kept = [r for r in records if r["outcome"] in ("HOLE", "proved", "sampled")]
    if options.json:
        holes = [r["mutant"] for r in kept if r["outcome"] == "HOLE"]
        found = {"cases": len(records), "outcomes": outcomes, "survivors": kept, "failures": holes}
        if options.named:
            found["gone"] = sorted(set(options.named) - {str(mutant) for mutant in every})
        print(json.dumps(found, ensure_ascii=False))
    else:
        print(dict(outcomes))
    return 1 if outcomes["HOLE"] else 0


if __name__ == "__main__":
    sys.exit(main())
