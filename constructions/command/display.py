"""What the `construct` command shows: progress bars and tables as wide as the terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from compiler.artifact.card import error_lines
from compiler.artifact.records import right_answers, uncounted
from compiler.digits import at_most, percent
from compiler.language.arguments import counted
from compiler.language.input_language import length_said
from compiler.language.language_said import language_said, own_domain
from compiler.language.markdown import one_line, printable
from constructions.command.stdout import stdout_lent
from constructions.papers import whose
from verify.check import Verification
from verify.samples import BUDGET

OWN = "a circuit of one's own"
_INDEXED = re.compile(r"(.*)\[(\d+)\]((?:#\d+)?)", re.DOTALL)  # name[i], with what tells equal names apart


class _Console(Console):
    """Nothing that a file holds is obeyed: what cannot be printed is escaped, in the cells of tables too."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)


# As wide as the terminal, 80 columns where there is none. Nothing is markup: a letter or a path may look like it.
console = _Console(highlight=False, markup=False, emoji=False)
BOLD, DIM = "bold", "dim"


def say(text: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a text, whatever files its words are from. err: on standard error; nl: with a line break behind it."""
    typer.echo(printable(text), err=err, nl=nl)


def in_lines(value: Any) -> Any:
    """A JSON value in which every text is one line: no name of a file's begins a line of what is shown of it."""
    if isinstance(value, dict):
        return {one_line(key): in_lines(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [in_lines(each) for each in value]
    return one_line(value) if isinstance(value, str) else value


class _Count(ProgressColumn):
    """How many of how many; nothing for work that cannot be counted."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{int(task.completed):,} of {int(task.total):,}")


def quiet() -> None:
    """transformers on its own PyTorch code, without bars and advice."""
    from transformers.utils.logging import disable_progress_bar, set_verbosity_error

    from compiler.runtime import torch_only_transformers

    torch_only_transformers()
    disable_progress_bar()
    set_verbosity_error()


class Bars:
    """Signs of life on standard error: a bar for what is counted, a pulse for what is not; all gone at the end."""

    def __init__(self, bars: Progress):
        self._bars = bars

    def __call__(self, name: str, count: int) -> Callable[[int], None]:
        """A bar; returns its advance."""
        bar = self._bars.add_task(name, total=count)
        return lambda done: self._bars.advance(bar, done)

    def form(self, form: str) -> Callable[[str, int], Callable[[int], None]]:
        """Bars whose names say which form of the model is verified."""
        return lambda name, count: self(f"verify {name} ({form})", count)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A pulse while the block runs."""
        bar = self._bars.add_task(name, total=None)
        self._bars.refresh()  # at once: what follows may hold the interpreter for long
        yield
        self._bars.update(bar, total=1, completed=1)


@contextmanager
def progress(quiet: bool, lends: bool = True) -> Iterator[Bars]:
    """Bars on standard error for the time of the block; silent for machines, and where no one looks.

    For machines what code of others prints in the block goes to standard error; lends: unless that is the block's own
    concern.
    """
    terminal = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _Count(),
        TimeElapsedColumn(),
    )
    aside = stdout_lent(aside=True) if quiet and lends else nullcontext()
    bars = Progress(*columns, console=terminal, disable=quiet or not terminal.is_terminal, transient=True)
    with aside, bars:
        yield Bars(bars)


@contextmanager
def working(name: str, quiet: bool, lends: bool = True) -> Iterator[Bars]:
    """One pulse for one piece of work, beside which its parts may have bars of their own."""
    with progress(quiet, lends) as bars, bars.stage(name):
        yield bars


_RECORD = "recorded when it was saved, of files with the same hashes as those here; {anew} anew:"


def show_report(report: dict) -> None:
    """Sizes against the bound, the promise, and the verification."""
    report = in_lines(report) | {"out": report["out"]}
    name = report.get("construction") or report["circuit"]
    console.print(Text.assemble((name, BOLD), f"  {report.get('theorem') or OWN}"))
    if report.get("noise"):
        console.print(f"What follows is so without the noise in its weights. {report['noise']}.")
    console.print(_sizes_table(report))
    console.print(_size_words(bool(report["sizes"]["packaged"]), report["arch"]))
    if report.get("bound"):
        console.print(f"bound: {report['bound_source']}")
    for sentence in (*report.get("obstructions", []), report.get("needed", "")):
        if sentence:
            console.print(sentence)
    if report.get("export"):
        count = "{gated_mlps} of {layers} layers with a gated MLP, d_intermediate {d_intermediate}"
        console.print(f"as exported: {count.format(**report['export'])}")
    if report.get("damage"):
        console.print("promise, proof and verification: not shown, for they were recorded of other files")
        return
    if report.get("recorded"):
        console.print(_RECORD.format(anew=_looks_anew(report)))
    if report.get("complaints"):
        console.print("promise and proof: not shown, for these files are not as they must be")
    else:
        for line in _promise_lines(report):
            console.print(line)
    if report.get("verification"):
        console.print(_verification_table(report["verification"], bool(report["sizes"]["packaged"])))
        margins = [row["margin"] for row in report["verification"].get("tasks", {}).values()]
        if any(margin is not None for margin in margins):
            behind = "; at 0 or below another is as high, or higher" * (min(m for m in margins if m is not None) <= 0)
            console.print(f"margin: by how much every right score leads the next one, at least{behind}")
    for run in report.get("generation", []):
        found = f"first wrong after {run['wrong']}" if run["wrong"] else "all right"
        count = f"{counted(run['chains'], 'chain')}, {counted(run['tokens'], 'token')}"
        console.print(f"written by {run['runtime']}: {count}, {found}")
    for sentence in report.get("cuda_limits", []):
        console.print(f"not for the CUDA kernels of mamba_ssm: {sentence}")
    for number, task in enumerate((report.get("verification") or {"tasks": ()})["tasks"], start=1):
        console.print(f"task {number}: {task}")
    for left_out in _left_out(report):
        console.print(left_out)
    for name, rate in report.get("contrasts", {}).items():
        count = counted(report["contrast_sequences"][name], "sequence")
        console.print(f"on the same data, {name}: {100 * rate:.1f} % of {count} right")
    if "runtime" in report:
        console.print(f"ran on: {report['runtime']}")
    if report["out"]:
        console.print(f"checkpoint: {report['out']}")


def _looks_anew(report: dict) -> str:
    """Which commands look at promise and proof: of a model over numbers the second is a certificate's, if any."""
    certificate = (report.get("guarantee") or {}).get("certificate")
    if report["promise"]["language"] is None and not certificate:
        return "construct verify looks at them"
    return "construct verify and construct prove look at them"


def _left_out(report: dict) -> Iterator[str]:
    """How many sequences of those that were asked for were not run, and why."""
    for number, row in enumerate((report.get("verification") or {"tasks": {}})["tasks"].values(), start=1):
        kinds = (("adversarial", row.get("left_out")), ("random", row.get("not_drawn")))
        missing = " and ".join(f"{count:,} {kind}" for kind, count in kinds if count)
        if missing:
            yield f"task {number}: {missing} sequences not run: beyond {BUDGET}; --verify random runs all"


def _sizes_table(report: dict) -> Table:
    sizes, bound = report["sizes"], report.get("bound", {})
    heads = [whose(report["bound_source"])] if bound else []
    table = Table("", *heads, "in use", "bare", *(["language model"] if sizes["packaged"] else []))
    for name in ("d_model", "d_inner", "d_state", "layers"):
        stated = [str(bound.get(name, ""))] if bound else []
        packaged = [str(sizes["packaged"][name])] if sizes["packaged"] else []
        used = len(sizes["blocks"]) if name == "layers" else max((block[name] for block in sizes["blocks"]), default=0)
        table.add_row(name, *stated, _beside(used, bound.get(name)), str(sizes[name]), *packaged)
    if "state" in bound and "state" in report:  # a manifest does not count the state
        held = [_beside(numbers, bound["state"]) for numbers in report["state"].values()]
        table.add_row("state", f"{bound['state']:,}", *held)
    if sizes["parameters"] is not None:
        blank = [""] * (len(table.columns) - 2)
        table.add_row("parameters", *blank, f"{sizes['parameters']:,}")
    return table


def _size_words(packaged: bool, arch: str) -> str:
    """What the columns of the table of sizes are."""
    saved = f"; language model: what is saved, with norms and an embedding{uncounted(arch)}" if packaged else ""
    return f"in use: what the circuit needs; bare: the module alone, as small as its class allows{saved}"


def _beside(used: int, bound: int | None) -> str:
    """A size, and that the bound does not hold for the real module where it does not."""
    return f"{used:,} (above)" if bound is not None and used > bound else f"{used:,}"


def _promise_lines(report: dict) -> Iterator[str]:
    guarantee = report.get("guarantee")
    if guarantee is None:
        promise = report["promise"]
        yield f"promise: {promise['level']}"
        if promise["language"] is not None:
            said = report.get("inputs") or language_said(promise, None)
            yield f"domain: {own_domain(said, promise['dtype'], promise['description'])}"
        else:
            yield f"domain: {promise['description']}; {length_said(promise['length'], 'positions')}, {promise['dtype']}"
        yield from error_lines(promise)
        return
    promise = report.get("promise", {})
    untold = guarantee["answers"] == "untold"  # nobody said what a circuit of one's own should answer
    yield f"promise: {_level(guarantee['level'], report.get('verification') or {})}" + (
        "" if untold else f"; answers right: {right_answers(guarantee, report.get('verification'))}"
    )
    yield f"domain: {guarantee['domain']}"
    yield from error_lines(promise)
    asks = (guarantee["certificate"] or {}).get("asks")
    if asks:
        parts = guarantee["certificate"].get("parts")
        proved = parts is None or parts.get("task")  # a certificate without parts is one of all
        refused = guarantee["certificate"].get("refused")
        yield f"task: {asks}" if proved else f"task, stated and {'refused' if refused else 'not proved'}: {asks}"
    yield f"proof: {guarantee['proof']}"
    if guarantee["expected_failure"]:
        yield (
            _average_line(guarantee["expected_failure"], guarantee["codes"], _asked_with(report.get("params") or {}))
            if guarantee.get("codes")
            else rate_line(guarantee["expected_failure"])
        )
    if guarantee.get("codes"):
        yield _codes_line(guarantee["codes"], _asked_with(report.get("params") or {}))
        yield from _measured_lines(report.get("verification") or {})


def _level(level: str, verification: dict) -> str:
    """The level of a guarantee in words."""
    if level == "tested":
        return "only tested, for it is not proved of these weights that their scores are the circuit's"
    if level != "unverified":
        return level
    return "not kept by what was run" if verification.get("sequences") else "no sequence was run"


def rate_line(bound: float, digits: int = 3) -> str:
    """How many sequences may be wrong; a bound of 1 says nothing."""
    if bound >= 1:
        return "rate of wrong sequences: not bounded (our bound is 1 for these sizes)"
    return f"rate of wrong sequences, at most: {at_most(bound, digits)}"


def _asked_with(params: dict) -> str:
    """Of which sequences the rates of key codes are: more pairs fail more often. A manifest may not say how many."""
    pairs = params.get("pairs") or params.get("kappa")
    return f"{counted(pairs, 'pair')} in a sequence" if type(pairs) is int else "pairs whose number is not recorded"


def _average_line(rate: float, codes: dict, asked: str) -> str:
    """Of all codes of this length: the exact rate, or an estimate, its error and what is proved."""
    error, bound = codes.get("average_error"), codes.get("average_at_most")
    if error == 0 and bound == rate:
        return f"wrong answers with {asked}, on average over codes: {rate:.3g}, the sum over all codes and values"
    about = f"about {rate:.3g}" + ("" if error is None else f" ± {at_most(error, 2)}") + " (an estimate)"
    proved = "; nothing is proved of it" if bound is None or bound >= 1 else f"; proved: at most {at_most(bound)}"
    return f"wrong answers with {asked}, on average over codes: {about}{proved}"


def _codes_line(codes: dict, asked: str) -> str:
    drawn = "the first draw" if codes["draws"] == 1 else f"draw {codes['draws']}"
    rate, error = f"{codes['expected_failure']:.3g}", codes.get("error")
    about = f"about {rate}" + ("" if error is None else f" ± {at_most(error, 2)}")
    fails = (
        f"fails at {about} (an estimate, mean" if codes["expected_failure"] else "was not seen to fail (values drawn"
    )
    return (
        f"key codes: {codes['size']} {codes['kind']} words of length {codes['length']}, {drawn} from seed "
        f"{codes['seed']}; measured coherence {codes['coherence']:.3f}; this code "
        f"{fails} of {codes['sets']:,} queries, with {asked})"
    )


def _measured_lines(verification: dict) -> Iterator[str]:
    if verification.get("failure"):
        low, high = verification["failure"]["interval"]
        yield f"measured: {verification['failure']['rate']:.4f} wrong, between {low:.4f} and {high:.4f} (95 %)"


def _verification_table(verification: dict, packaged: bool) -> Table:
    """One row per task and form; the tasks themselves are described below the table."""
    numbers = any("share_of_bound" in row for row in verification.get("tasks", {}).values())
    last = "of the bound" if numbers else "margin"
    table = Table("verified", "sequences", "answers" if numbers else "queries", "right", "bit-exact", last)
    bare = verification.get("bare") or {}
    forms = [("bare", bare), ("language model", verification)] if packaged else [("bare", verification)]
    for form, part in forms:
        for number, row in enumerate(part.get("tasks", {}).values(), start=1):
            margin = "" if row["margin"] is None else f"{row['margin']:g}"
            margin = at_most(row["share_of_bound"], 2) if row.get("share_of_bound") is not None else margin
            exact = {True: "yes", False: "NO", None: "not run"}[row["bit_exact"]]
            unasked = "not asked" if row["sequences"] else "not run"  # a circuit of one's own has no queries
            right = unasked if row["accuracy"] is None else f"{percent(row['accuracy'], 6)} %"
            table.add_row(
                f"{form}, task {number}", f"{row['sequences']:,}", f"{row['queries']:,}", right, exact, margin
            )
    return table


def show_list(rows: list[dict]) -> None:
    table = Table("construction", "what it is")
    for row in rows:
        what = Text.assemble(" ".join(row["summary"].split()), "\n", (row["theorem"], DIM))
        table.add_row(row["construction"], what)
    console.print(table)


def show_manifest(manifest: dict, damage: str | None = None) -> None:
    """A checkpoint: sizes, promise, and the names that its weights carry, with what stands there.

    damage: why its files are not those that the manifest is of; then what it claims of them is not shown.
    """
    show_report(manifest | {"out": None, "recorded": True, "damage": damage})
    manifest = in_lines(manifest)
    table = Table("part", "name", "what it holds", title="names in the weights")
    meanings = manifest.get("meanings") or {"lanes": [], "blocks": [{}] * len(manifest["blocks"])}
    bare = len(manifest["lanes"]) > manifest["sizes"]["d_model"]
    _add_names(table, "lanes in and out" if bare else "lanes", manifest["lanes"], meanings["lanes"])
    for number, (block, said) in enumerate(zip(manifest["blocks"], meanings["blocks"], strict=True), start=1):
        for part in ("channels", "columns"):
            _add_names(table, f"block {number} {part}", block[part], said.get(part, []))
    console.print(table)
    if bare:
        console.print("in and out: the only block's results stand where its inputs stood, so more lanes than d_model")


def _add_names(table: Table, part: str, names: list[str], meanings: list[str], most: int = 40) -> None:
    """A row for each run of names; neighbours that differ in a last index only stand as one: `recalled[0 … 11]`."""
    meanings = meanings or [""] * len(names)
    runs = _runs(names)
    for number, (text, count) in enumerate(runs[:most]):
        start = sum(count for _, count in runs[:number])
        said = _together(meanings[start : start + count])
        table.add_row(f"{part} ({len(names)})" if not number else "", Text(text), Text(said))
    hidden = sum(count for _, count in runs[most:])
    if hidden:
        table.add_row("", f"… ({hidden} more; all in --json)", "")


def _together(meanings: list[str]) -> str:
    """What a run of names holds: the first and the last of it, what they share told once."""
    first, last = meanings[0].split(), meanings[-1].split()
    if first == last:
        return meanings[0]
    if len(first) != len(last):
        return f"{meanings[0]} … {meanings[-1]}"
    words = [a if a == b else f"{_bare(a)} … {b}" for a, b in zip(first, last, strict=True)]
    return " ".join(words)


def _bare(word: str) -> str:
    return word.rstrip(",")


def _runs(names: list[str]) -> list[tuple[str, int]]:
    """Each run of `name[i]suffix` with i counting up, as one text, and how many names it stands for."""
    parts = [(name, *_INDEXED.fullmatch(name).groups()) if _INDEXED.fullmatch(name) else (name,) for name in names]
    runs: list[list[tuple]] = []
    for part in parts:
        last = runs[-1][-1] if runs else ()
        follows = len(part) == len(last) == 4 and (part[1], part[3]) == (last[1], last[3])
        if follows and int(part[2]) == int(last[2]) + 1:
            runs[-1].append(part)
        else:
            runs.append([part])
    return [
        (run[0][0] if len(run) == 1 else f"{run[0][1]}[{run[0][2]} … {run[-1][2]}]{run[0][3]}", len(run))
        for run in runs
    ]


def wrapped(text: str) -> str:
    """Lines no wider than the terminal, each continued under its own text."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += textwrap.wrap(
            line, console.width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
        ) or [""]
    return "\n".join(lines)


def failure_sentence(built, name: str, result: Verification) -> str:
    case, tokens, position = result.failure
    if built.over_numbers:
        return f"{name}: an output is further from the circuit than promised; first at position {position} of: {case}"
    words = built.compiled.source.alphabet.decode(tokens[: position + 1])
    shown = words if len(words) <= 200 else f"… {words[-200:]}"
    wrong = f"{result.queries - result.correct} of {result.queries} answers wrong"
    if result.correct == result.queries:
        right = "every answer is right, and " if result.queries else ""
        apart = (
            "further from the circuit's than promised" if built.compiled.error_bound else "not the circuit's to the bit"
        )
        wrong = f"{right}a score is {apart}"
    of_case = "" if case == "random" else f" in case {case!r}"  # all that no case is built for, from a file as well
    return f"{name}: {wrong}; first{of_case} at position {position} of: {shown}"
