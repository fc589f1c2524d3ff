"""docs/trust.md from its numbers: what was asked, what was run, what came out, what fell short."""

from __future__ import annotations

from typing import Any

from tests.trust.parts import PARTS
from tests.trust.reasons import REASONS_OF_MUTANTS
from tests.trust.refusals import SHOWN, TODAY, refusals, today
from tests.trust.store import AGAIN, UNPROVED, failed
from tests.verify.checker.faults import UNCHANGED

HEAD = """# What was tried against it

`make trust` runs what is counted here and writes this page from `docs/trust.json`; it is not edited by hand. Cases are
numbered: at one commit the same number is the same case on every machine, and of random programs a test keeps it so at
later ones. `docs/trust.json` says which were run. So it can be stopped and goes on where it was, on another machine
too; `make trust SHARE=0.01` runs a hundredth of everything.

What is *proved* of a checkpoint, and on what the proof rests, stands in [proofs](proofs.md). This page is about the
programs themselves: does the compiler ever give weights that say something else, and would the checker believe them?
"""
WHAT = {
    "fuzz": "random programs over the whole language, on Mamba and Mamba-2, float32",
    "forms": "random programs on four targets, three dtypes, four forms of a model",
    "joined": "random programs that read some numbers of joined streams, on Mamba and Mamba-2, float32",
    "sizes": "random programs with numbers of any size, on Mamba and Mamba-2, float32",
    "hostile": "checkpoints with one file damaged at random",
    "numbers": "checkpoints of models over numbers with one file damaged at random",
    "oversized": "checkpoints with a file that asks for too much",
    "proofs": "claims of what is proved, each edited at random",
    "answers": "circuits of token selection with one place edited, compiled, and asked for their task",
    "blind": "kernels by one who had seen no case of the conformance suite: 21 wrong, 5 right",
    "certificates": "one weight of a Mamba-Δᵀ module changed, and its certificate asked",
    "kills": "processes killed while they replace a checkpoint",
    "plants": "one weight of a checkpoint changed",
    "programs": "random programs of which the checker is asked, with changed weights and claims",
    "automata": "one thing changed in the checkpoint of an automaton",
    "kernel": "one weight changed, and the small kernel asked with old, forged and new claims",
    "mutation": "one place of the compiler's source changed",
    "defaults": "constructions of their default size proved but for answers, on Mamba and Mamba-2, float32",
    "times": "checkpoints proved within the time that is promised",
}
OUTCOMES = {
    "comparison": "found by the comparison at compile time",
    "checker": "compiled, and rejected by the checker",
    "refused": "the compiler refuses what it took, or stops with an error",
    "proved": "other weights, which the checker proves as well",
    "sampled": "other weights, right on every sample; there is no proof of the unchanged ones either",
    "HOLE": "other weights, wrong on a sample, and nobody objected",
    "same weights": "no circuit that goes through it has other weights",
    "not reached": "no circuit of the list goes through it",
}
UNSETTLED = ("4053d9f", "07cfd2c5c1")
ASKED = {"plants": 5000, "mutation": 200}  # where there are more cases, not all of which come to anything


def page(numbers: dict[str, Any]) -> str:
    """The text of docs/trust.md."""
    sections = [HEAD, _summary(numbers), _short(numbers)]
    sections += [write(numbers[name]["result"], numbers) for name, write in PROGRAMS.items() if name in numbers]
    sections += [write(numbers[name]["result"]) for name, write in SECTIONS.items() if name in numbers]
    return "\n".join(sections)


def table(head: tuple[str, ...], rows: list[tuple]) -> str:
    """A table; what is a number in the first row is set to the right."""
    sides = [" ---: |" if isinstance(cell, int | float) else " --- |" for cell in rows[0]] if rows else []
    lines = ["| " + " | ".join(head) + " |", "|" + "".join(sides or [" --- |"] * len(head))]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|").replace("\n", " ")


def _summary(numbers: dict) -> str:
    rows = []
    for name, part in PARTS.items():
        found = numbers.get(name, {"cases": 0, "commits": [], "result": {}})
        failures = len(found["result"].get("failures", ()))
        asked = ASKED.get(name, part.cases)
        rows.append((WHAT[name], asked, _ran(name, found), failures, ", ".join(found["commits"])))
    return table(("what", "asked", "run", "failures", "at commit"), rows)


def _ran(name: str, found: dict) -> int:
    """Plants count where they were planted: on a checkpoint that is proved, and where they changed something."""
    if name != "plants":
        return found["cases"]
    return sum(count for outcome, count in found["result"].get("plants", {}).items() if outcome != UNCHANGED)


def _short(numbers: dict) -> str:
    """What was not run, what failed, what is not proved: from the numbers alone."""
    lines = []
    for name, part in PARTS.items():
        ran, asked = _ran(name, numbers[name]) if name in numbers else 0, ASKED.get(name, part.cases)
        if ran < asked:
            lines.append(f"- {WHAT[name]}: {asked - ran:,} of {asked:,} were not run.")
        for failure in numbers.get(name, {}).get("result", {}).get("failures", ()):
            lines.append(f"- {WHAT[name]}: {_failure(failure)}")
    lines += [line for name in AGAIN if name not in (UNPROVED, *TODAY) for line in _again(name, numbers)]
    lines += [
        f"- run again, {_failure(f)}" for name in TODAY if name in numbers for f in numbers[name]["result"]["failures"]
    ]
    lines += _asked_again(numbers)
    lines += [
        f"- not proved at {u['commit']}: `{name}`: {u['reason']}" for name, u in sorted(_unproved(numbers).items())
    ]
    return "## What fell short\n\n" + ("\n".join(lines) or "Nothing.") + "\n"


def _unproved(numbers: dict) -> dict[str, dict]:
    """The checkpoints that are not proved, each with what was said of it last."""
    found = dict(numbers.get("plants", {"result": {}})["result"].get("not proved", {}))
    last = numbers.get(UNPROVED, {"result": {}})["result"]
    for name in last.get("ran", ()):
        if name not in last.get("not proved", {}):
            found.pop(name, None)
        elif name in found:
            found[name] = last["not proved"][name]
    return found


def _asked_again(numbers: dict) -> list[str]:
    """How many checkpoints that were not proved are proved by now, and what became of their plants."""
    if UNPROVED not in numbers:
        return []
    found, commits = numbers[UNPROVED]["result"], ", ".join(numbers[UNPROVED]["commits"])
    became, rejected = found["checkpoints"], found.get("plants", {}).get("rejected", 0)
    refused = became.get("refused by the compiler", 0)
    now = f"{became.get('proved', 0)} are proved now" + (f", the compiler refuses {refused} by now" if refused else "")
    line = f"- The {len(found['ran'])} {AGAIN[UNPROVED]} were checked again at commit {commits}: {now},"
    failures = [f"- {AGAIN[UNPROVED]}: {_failure(failure)}" for failure in found["failures"]]
    return [f"{line} and {rejected:,} plants of theirs that change a score were rejected.", *failures]


def _again(name: str, numbers: dict) -> list[str]:
    """What became of failures when they were run again, and how many were not."""
    failing, found = failed(numbers)[name], numbers.get(name, {"commits": [], "result": {"failures": []}})
    ran = set(failing) & set(found["result"].get("ran", ()))
    lines = []
    if ran:
        still = [_failure(failure) for failure in found["result"]["failures"]]
        told = f"{len(still)} still fail: {'; '.join(still)}" if still else "none fails any more"
        where = ", ".join(found["commits"])
        lines.append(f"- The {len(ran)} {AGAIN[name]} were run again at commit {where}: {told}.")
    if gone := ran & set(found["result"].get("gone", ())):
        lines.append(f"- Of these {len(gone)} are no longer in the source: {'; '.join(sorted(gone))}.")
    if len(ran) < len(failing):
        lines.append(f"- {len(failing) - len(ran)} {AGAIN[name]} were not run again.")
    return lines


def _failure(failure: str | dict) -> str:
    if isinstance(failure, str):
        return failure
    return f"seed {failure['seed']}: {failure['verdict']} ({' '.join(failure['where'])}): {failure['reason']}"


def _programs(title: str, note: str, result: dict, numbers: dict) -> str:
    verdicts: dict[str, dict[str, int]] = {}
    for key, count in result["verdicts"].items():
        where, verdict = key.rsplit(": ", 1)
        verdicts.setdefault(where, {})[verdict] = count
    names = sorted({verdict for counts in verdicts.values() for verdict in counts})
    rows = [(where, *(counts.get(name, 0) for name in names)) for where, counts in sorted(verdicts.items())]
    found = refusals(result)
    told = [
        (refusal.count, f"seed {refusal.seed}", ", ".join(sorted(refusal.by)), refusal.reason, today(refusal, numbers))
        for refusal in found[:SHOWN]
    ]
    rest = sum(refusal.count for refusal in found[SHOWN:])
    return (
        f"## {title}\n\n{note}\n{result['programs']:,} programs, {result['compiled']:,} of them exact somewhere.\n\n"
        + table(("where", *names), rows)
        + "\n*accepted*: the program mixes kinds that the documentation does not, so only a crash would count.\n"
        + f"\nThe most frequent reasons of refusals, and the seed of one program each{_when(numbers)}:\n\n"
        + table(("refused", "for example", "by", "reason", "of this one today"), told)
        + (f"\nAnd {len(found) - SHOWN:,} other reasons, {rest:,} times.\n" if rest else "")
    )


def _when(numbers: dict) -> str:
    commits = sorted({commit for name in TODAY if name in numbers for commit in numbers[name]["commits"]})
    return f", which was run again at commit {', '.join(commits)}" if commits else ""


def _fuzz(result: dict, numbers: dict) -> str:
    note = (
        "Their meaning is computed by an evaluator in fractions that shares no code with the compiler. Programs run\n"
        f"at {' and '.join(UNSETTLED)} were drawn before the generator was settled: their numbers name others\n"
        "today. Those that failed are kept as they were, and a test runs them."
    )
    return _programs("Random programs", note, result, numbers)


def _forms(result: dict, numbers: dict) -> str:
    note = "Every target, dtype and form: bare modules, language models, step by step, and transformers' own code."
    return _programs("Random programs in every form", note, result, numbers)


def _joined(result: dict, numbers: dict) -> str:
    note = "Streams are put side by side, and of what words make of them only some numbers are read."
    return _programs("Random programs read in part", note, result, numbers)


def _sizes(result: dict, numbers: dict) -> str:
    note = (
        "Numbers stand at two sizes from 2^-130 to 2^127, drawn for each program. The models run on a CPU that\n"
        "flushes subnormal numbers to 0."
    )
    return _programs("Random programs with numbers of any size", note, result, numbers)


def _hostile(result: dict) -> str:
    note = (
        "Bytes, JSON values, sizes, tensors, missing files, pipes; half of them sealed again. `construct verify`\n"
        "and the checker read each. It must end within ten seconds of processor time, without a traceback, and may\n"
        "be accepted only if every file that a program reads is what it was.\n"
    )
    return f"## Damaged checkpoints\n\n{note}\n" + table(("verdict", "checkpoints"), sorted(result["verdicts"].items()))


def _numbers(result: dict) -> str:
    note = "The same for models over numbers, exact ones and real ones, which no checker reads.\n"
    rows = sorted(result["verdicts"].items())
    return f"## Damaged models over numbers\n\n{note}\n" + table(("verdict", "checkpoints"), rows)


def _oversized(result: dict) -> str:
    most = result["most"]
    note = (
        "A circuit, a language, a config, a construction's parameters or a file of any size up to 10^15, sealed\n"
        "again. Each case is a process of its own, in which both readers may take ten seconds of processor time and\n"
        "2 GB. A file that asks for no more than a reader grants, and is a good one, may be accepted. Of those that\n"
        f"ended, the slowest took {most['seconds']} s; the largest process had {most['mebibytes']:,} MiB, Python's\n"
        "own included.\n"
    )
    return f"## Files that ask for too much\n\n{note}\n" + _by_kind("what is too large", result)


def _by_kind(what: str, result: dict) -> str:
    """How often each kind of case had each verdict."""
    verdicts = sorted(result["verdicts"])
    rows = [(kind, *(counts.get(name, 0) for name in verdicts)) for kind, counts in sorted(result["kinds"].items())]
    rows.append(("all", *(result["verdicts"][name] for name in verdicts)))
    return table((what, *verdicts), rows)


def _proofs(result: dict) -> str:
    note = (
        "One value of proof.json, which is a record, or of the manifest's guarantee, sealed again. The checker must\n"
        "say word for word what it said before; `construct verify` must reject the manifest, and not read proof.json.\n"
    )
    return f"## Edited claims of a proof\n\n{note}\n" + table(("what", "edits"), sorted(result["claims"].items()))


def _answers(result: dict) -> str:
    note = (
        "Recall, token selection, unique induction and copying by n-grams at tiny sizes, for Mamba and Mamba-2. A\n"
        "number, an operand, an operation, a name or a parameter of the task is another one. *still right*: the\n"
        "checker proves every answer, and an evaluator that shares no code with it finds each right on every short\n"
        "sequence; *WRONG* would be a failure.\n"
    )
    return f"## Edited circuits that are asked for their task\n\n{note}\n" + table(
        ("what came of it", "circuits"), sorted(result["edits"].items())
    )


def _blind(result: dict) -> str:
    found, accused = result["wrong"], [name for name, case in result["right"].items() if case]
    note = (
        f"{sum(map(bool, found.values()))} of {len(found)} faults were found; of {len(result['right'])} right kernels, "
        f"{len(accused)} were called wrong.\n"
    )
    rows = [(name, case or "no case") for name, case in found.items()]
    return f"## Kernels of one who had seen no case\n\n{note}\n" + table(("fault", "shown by"), rows)


def _certificates(result: dict) -> str:
    note = (
        "Mamba-Δᵀ has no checkpoint; the certificate of its induction heads reads the module. *true*: it still holds,\n"
        "and every answer is right on random and adversarial inputs; *false* would be a failure.\n"
    )
    rows = sorted(result["certificates"].items())
    return f"## Changed weights of a certified module\n\n{note}\n" + table(("outcome", "plants"), rows)


def _plants(result: dict) -> str:
    note = (
        "Every circuit and construction at small sizes, both mixers, all dtypes. *Plants* change one weight (sign,\n"
        "1 ulp, double, half, 0, 2^100, NaN, …): none that changes a score on a sampled input may be accepted. Where\n"
        "none of 48 sequences has another score, the checker is not asked (*no score changes*).\n"
        "One verdict of each checkpoint is compared with that of the command.\n"
        "*Mutants* change several: what is accepted must run bit for bit as exact arithmetic says. *Claims* change a\n"
        "value of the promise, the circuit or the config: what is accepted must still be true of the weights; *no\n"
        "circuit* is what the compiler refuses to read. Plants and claims count on proved checkpoints only.\n"
    )
    return f"## Changed weights and claims\n\n{note}\n" + table(("what", "how many"), _counts(result))


def _counts(result: dict) -> list[tuple[str, int]]:
    return [
        (f"{what}: {name}", count)
        for what in ("checkpoints", "plants", "mutants", "claims")
        for name, count in sorted(result.get(what, {}).items())
    ]


def _of_programs(result: dict) -> str:
    note = (
        "What a user may write, compiled as a language model in float32 for Mamba or Mamba-2. Where the checker\n"
        "proves it, weights and claims are changed as above. What is not proved is only tested, and `construct prove`\n"
        "says so. Programs over real numbers are left out: of these an error is proved.\n"
    )
    text = f"## Random programs that are proved\n\n{note}\n" + table(("what", "how many"), _counts(result))
    told = [(int(name.split("-")[0]), name.split("-")[1], reason) for name, reason in _reasons(result)]
    return text + "\nNot proved:\n\n" + table(("seed", "mixer", "reason"), told) if told else text


def _reasons(result: dict) -> list[tuple[str, str]]:
    return sorted((name, entry["reason"]) for name, entry in result.get("not proved", {}).items())


def _automata(result: dict) -> str:
    note = (
        "Named and random automata that are promised for every length, on Mamba, Mamba-2 and Gated DeltaNet. One\n"
        "weight, one value of the files, one entry of the table that is claimed, or the names of two letters are\n"
        "changed. What is still proved is run through transformers beside a walk through the table as it is claimed\n"
        "now: *still true*, or *false*, which would be a failure.\n"
    )
    return f"## Changed checkpoints of automata\n\n{note}\n" + _by_kind("what was changed", result)


def _kernel(result: dict) -> str:
    note = (
        "Recall, keep-nth, induction heads and selective copying at small sizes, on Mamba and Mamba-2. A weight is\n"
        "changed so that a score of the real module changes, or the files are refused for it. Then the kernel is\n"
        "asked with the claims of the unchanged checkpoint, with edited ones, with those of a fresh search, and with\n"
        "those of searches of which one function returns something else, loses a part or swaps two. *ACCEPTED* and\n"
        "*FALSE* would be failures. `verify/kernel` is what is trusted there ([proofs](proofs.md)).\n"
    )
    return f"## The small kernel\n\n{note}\n" + table(("what", "how many"), sorted(result["tries"].items()))


def _mutation(result: dict) -> str:
    note = (
        "Constants and rules of `compiler/gadgets`, `targets` and `passes`, one at a time. The shared circuits that\n"
        "go through the place are compiled, without any test of theirs.\n"
    )
    rows = [(name, result["outcomes"].get(name, 0), told) for name, told in OUTCOMES.items()]
    text = f"## Mutants of the compiler\n\n{note}\n" + table(("outcome", "mutants", "meaning"), rows)
    survivors = [(f"`{m['mutant']}`", m["commit"], m["outcome"], _why(m)) for m in result["survivors"]]
    if survivors:
        text += "\nThose that change weights and are not stopped, with the reason:\n\n"
        text += table(("mutant", "at commit", "outcome", "why it stays"), survivors)
    return text


def _why(entry: dict) -> str:
    """Why a mutant stays: lines of a file move, so it is known by its file and its change. A hole has no reason."""
    file, change = entry["mutant"].split("  ", 1)
    found = REASONS_OF_MUTANTS.get((file.split(":")[0].removeprefix("compiler/"), change), "not looked into")
    found = "a defect" if entry["outcome"] == "HOLE" else found
    return f"{found} ({entry['reason'].removesuffix(': ')})"


def _defaults(result: dict) -> str:
    rows = [(name, t["seconds"], "yes" if t["proved"] else "no") for name, t in sorted(result["defaults"].items())]
    note = (
        "The circuits that `construct NAME` builds where nothing is asked for, saved without their tasks. Proved are\n"
        "arithmetic, meaning and special tokens; of the answers [proofs](proofs.md#task) tells which are. Processor\n"
        "seconds of the checker.\n"
    )
    return f"## Default sizes\n\n{note}\n" + table(("construction", "seconds", "proved"), rows)


def _times(result: dict) -> str:
    rows = [(name, t["seconds"], t["allowed"], t["proved"]) for name, t in result["times"].items()]
    note = "Processor seconds of `python -m verify.checker`, one core; the task is asked where its part is named."
    return f"## Time of a proof\n\n{note}\n\n" + table(("checkpoint", "seconds", "allowed", "proved"), rows)


PROGRAMS = {"fuzz": _fuzz, "forms": _forms, "joined": _joined, "sizes": _sizes}
SECTIONS = {
    "plants": _plants, "programs": _of_programs, "automata": _automata, "mutation": _mutation, "hostile": _hostile,
    "numbers": _numbers, "oversized": _oversized, "proofs": _proofs, "answers": _answers, "blind": _blind,
    "certificates": _certificates, "kernel": _kernel,
    "defaults": _defaults, "times": _times,
}  # fmt: skip
