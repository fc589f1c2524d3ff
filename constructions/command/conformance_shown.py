"""What `construct conformance` prints of kernels and runtimes: each list up to a limit, and the verdict last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from constructions.command.display import BOLD, console

if TYPE_CHECKING:
    from conformance.findings import Finding, Why
    from conformance.report import Tested

_SHOWN = 8  # wrong cases of one kernel or runtime
_SKIPPED = 20  # reasons why cases were not run: more than the kit itself has for most kernels
_NEVER = 20  # things that were in no case


def show(tested: Sequence[Tested], version: str | None) -> None:
    """Print the report of a run; version: that of the runtime, if one was named."""
    if version:
        console.print(version)
    explained: set[str] = set()  # what is said of a kernel's exact cases is said of its random ones
    for each in tested:
        heading = {"kernel": "", "random": " on random numbers", "models": " on models"}[each.kind]
        line = ", ".join(f"{stage} {status}" for stage, status, _ in each.stages())
        console.print(Text.assemble((f"{each.name}{heading}", BOLD), f": {line}"))
        for values in each.values:
            console.print(f"  values asked: {values}", soft_wrap=True)
        for sizes in each.sizes:
            console.print(f"  sizes asked: {sizes}", soft_wrap=True)
        for line in _skipped(each):
            console.print(f"  {line}", soft_wrap=True)
        for line in _wrong(each, explained=each.name in explained):
            console.print(f"  {line}", soft_wrap=True)
        explained |= {each.name for finding in each.findings if finding.status == "failed"}
    if tested:
        console.print(verdict_of(tested), soft_wrap=True)


def _skipped(tested: Tested) -> Iterator[str]:
    """Why cases were not run."""
    reasons = tested.skipped()
    for why, count in reasons[:_SKIPPED]:
        yield f"skipped, for {why}: {count} of {len(tested.findings)} cases"
    if rest := reasons[_SKIPPED:]:
        cases = sum(count for _, count in rest)
        yield f"… and {len(rest)} other reasons, of {cases} case{'s' * (cases > 1)}; --json has all"


def _wrong(tested: Tested, explained: bool) -> Iterator[str]:
    """The first wrong cases, why they are wrong as far as that is known, and what failed to run."""
    wrong = [finding for finding in tested.findings if finding.status == "failed"]
    for finding in wrong[:_SHOWN]:
        place = "" if finding.position is None else f"position {finding.position}, {finding.near or 'at no border'}: "
        of = f"{finding.op}: " if tested.several else ""
        yield f"{finding.stage}: {of}{finding.case}: {place}{finding.says}"
        if finding.entries:
            yield f"    {finding.entries}"
        if tested.kind == "models":  # where each mode is a case of its own
            yield f"    likely: {finding.cause}" if finding.cause else f"    asked there: {finding.asks}"
    if len(wrong) > _SHOWN:
        yield f"… and {len(wrong) - _SHOWN} more; --json has all"
    if wrong and tested.kind != "models" and not explained:
        yield from why_wrong(tested.why, wrong[0])
    failed = tested.failed_to_run()
    for says, where in failed[:_SHOWN]:
        cases = f"{len(where)} case{'s' * (len(where) > 1)}"
        of = f"{where[0].op}: " if tested.several else ""
        yield f"failed to run in {cases}, first in {where[0].stage}: {of}{where[0].case}: {says}"
    if len(failed) > _SHOWN:
        yield f"… and {len(failed) - _SHOWN} other messages; --json has all"


def why_wrong(why: Why, first: Finding) -> Iterator[str]:
    """The likely cause where one explains all that was seen; else the one that explains what is wrong, if any, and what
    sets the wrong cases apart.
    """
    if why.likely:
        yield f"likely: {why.likely}, which gives all wrong results, and leaves all right ones right"
        return
    if why.somewhere:  # where else than in right cases is known, or not
        name = f"likely: {why.somewhere}, under a condition:" if why.apart else f"{why.somewhere}:"
        yield f"{name} this gives all wrong results, and does not leave all right ones right"
    else:
        yield "no known mistake gives all wrong results and leaves all right ones right"
    if why.apart:
        yield f"all wrong cases have, and no right one has: {'; or '.join(why.apart)}"
    elif why.first:
        yield f"the first wrong case has, and no right one has: {'; or '.join(why.first)}"
    elif why.none_right:
        yield "no case that was run is right"
    else:
        yield "no three of the options and sizes that are compared set them apart"
    yield f"asked there: {first.asks}"


def verdict_of(tested: Sequence[Tested]) -> str:
    """All of it in one line, which is read last."""
    count = Counter(finding.status for each in tested for finding in each.findings)
    run = count["passed"] + count["failed"]
    skipped = f"; {count['skipped']:,} skipped" if count["skipped"] else ""
    failed = f"{count['failed to run']:,} failed to run" if count["failed to run"] else ""
    if count["failed"]:
        of = f"{count['failed']:,} of the {run:,} cases that were run" if run > 1 else "the one case that was run"
        return f"wrong: {of}{failed and '; '}{failed}{skipped}"
    right = f"right: all {run:,} cases that were run" if run > 1 else "right: the one case that was run"
    if failed:
        return f"{failed}; {right if run else 'no other was run'}{skipped}"
    if untried := [each.name for each in tested if not each.good]:
        return f"nothing was run of {', '.join(untried)}{skipped}"
    never = "; ".join(f"{each.name} ran no case with: {_few(each.never)}" for each in tested if each.never)
    return f"{right}{skipped}{never and '; but '}{never}"


def _few(words: Sequence[str]) -> str:
    more = f", and {len(words) - _NEVER} more, which --json has" if len(words) > _NEVER else ""
    return ", ".join(words[:_NEVER]) + more
