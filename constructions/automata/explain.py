"""What the algebra of an automaton says: on which mixer its language can live, for how long, and by which theorem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compiler.automata.cascade import Cascade
from compiler.automata.counted import longest_counted, orders_of
from compiler.automata.counting import counting_of
from compiler.automata.groups import Group, groups
from compiler.automata.holonomy import cascade_of
from compiler.automata.images import CapMet, images
from compiler.automata.monoid import Monoid, transition_monoid
from compiler.automata.solvable import MOST_ELEMENTS, counting_cascade
from compiler.automata.table import Table, minimal, reached_states
from compiler.automata.turning import turning_of, turnings

SARROF = "Sarrof, Veitsman and Hahn 2024"
KROHN_RHODES = "Krohn and Rhodes 1965"
SCHUETZENBERGER = "Schützenberger 1965"
GRAZZI = "Grazzi et al. 2024"
BARRINGTON = "Barrington 1989; Merrill, Petty and Sabharwal 2024"
FOREVER = "every length"
FOREVER_ELSEWHERE = f"--arch gated-deltanet holds it for {FOREVER}"
_NOT_FOR_EVER = f"No non-negative diagonal state-space model at fixed precision follows it for ever ({SARROF})."
_WITHOUT_TURNS = "Mamba and Mamba-2"


@dataclass(frozen=True)
class Decision:
    """states: of the minimal automaton; monoid: its elements, None where the cap was met; star_free: None where the
    caps leave it open; groups: the largest first; levels: resets of the cascade, None without one; bounded: how many
    letters counts follow it, None where they do not; swaps: how many levels and columns of swaps follow it on Gated
    DeltaNet, None where that was not asked or is not tried.

    says: the decision in plain words, sentence by sentence; promise: for how long, "" where nothing is promised.
    """

    states: int
    monoid: int | None
    star_free: bool | None
    groups: tuple[Group, ...]
    levels: int | None
    says: tuple[str, ...]
    promise: str
    bounded: int | None = None
    swaps: int | None = None

    def to_json(self) -> dict[str, Any]:
        layers = {} if self.levels is None else {"mamba": self.levels + 1, "mamba2": 2 * self.levels + 1}
        return {
            "states": self.states,
            "monoid": self.monoid,
            "star_free": self.star_free,
            "groups": [group.name for group in self.groups],
            "levels": self.levels,
            "sizes": {"layers": layers},
            "promise": self.promise,
            "swaps": self.swaps,
            "says": list(self.says),
        }


def decide(table: Table) -> Decision:
    """The decision for the language of a table."""
    least = minimal(table)
    monoid = transition_monoid(least)
    size = (
        f"{monoid.size:,} element{'s' * (monoid.size != 1)}"
        if monoid.whole
        else f"more than {monoid.size:,} elements (the cap was met)"
    )
    size = f"{_states(table, least)}, {size}"
    count = monoid.size if monoid.whole else None
    if not monoid.aperiodic and not monoid.whole:
        return _with_a_circle(least, monoid, size)
    try:
        found = images(least)
    except CapMet as cap:
        return _open(least, monoid.whole, count, size, str(cap))
    held = tuple(groups(found, monoid))
    if held:
        return _with_groups(least, count, size, held, _counts(least, held))
    try:
        return _star_free(least, count, size, cascade_of(found, least.outputs))
    except CapMet as cap:
        return _open(least, True, count, size, str(cap))


def with_swaps(decision: Decision, table: Table) -> Decision:
    """The decision with what Gated DeltaNet makes of the language."""
    least = minimal(table)
    try:
        cascade = turning_of(least)
    except CapMet as cap:
        return replace(decision, says=(*decision.says, f"Gated DeltaNet: not tried, because {cap}."))
    swaps = sum(turning.columns for turning in turnings(cascade))
    resets = _many(sum(not level.moves for level in cascade.levels), "reset")
    says = f"Gated DeltaNet: {resets}, {FOREVER} ({KROHN_RHODES})."
    if swaps:
        columns = f"{_many(swaps, 'column')} of state, each moved by one swap of two places a letter"
        says = f"Gated DeltaNet: {columns}, and {resets}, {FOREVER} ({KROHN_RHODES}; a swap is a reflection: {GRAZZI})."
    return replace(decision, says=(*decision.says, says), swaps=swaps)


def turns_for_ever(least: Table) -> bool:
    """Whether Gated DeltaNet follows a minimal table for every length, by a cascade within the caps."""
    try:
        turning_of(least)
    except CapMet:
        return False
    return True


def _counts(least: Table, held: tuple[Group, ...]) -> tuple[tuple[int, ...], int] | None:
    """Modulo what counts follow an automaton with these groups, and to how many letters; None where they do not."""
    counts = counting_of(least, least.outputs)
    if counts is not None:
        return counts.moduli, counts.longest
    if not all(group.solvable for group in held):
        return None
    try:
        cascade = counting_cascade(least)
    except CapMet:
        return None
    orders = None if cascade is None else orders_of(cascade)
    return (orders, longest_counted(orders)) if orders else None


def _states(table: Table, least: Table) -> str:
    """How many states the minimal table has, and beside it the one that was given, of which a task is told."""
    found = _many(least.states, "state")
    if table.states == least.states:
        return found
    return f"{found} ({table.states} as written, before equal ones are joined{_left_out(table)})"


def _left_out(table: Table) -> str:
    return "" if len(reached_states(table)) == table.states else " and those that no word reaches are left out"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _resets(levels: int) -> str:
    return _many(levels, "reset") if levels else "no reset before the present letter, which tells the state"


def _star_free(least: Table, count: int | None, size: str, cascade: Cascade) -> Decision:
    levels = len(cascade.levels)
    least_blocks, most_blocks = _many(levels + 1, "block"), _many(2 * levels + 1, "block")
    says = (
        f"{size}, star-free ({SCHUETZENBERGER}), {_resets(levels)} ({KROHN_RHODES}).",
        f"Mamba: {least_blocks}, {FOREVER}. Mamba-2: at most {most_blocks}, {FOREVER}.",
        f"Diagonal non-negative state-space models at fixed precision hold exactly such languages ({SARROF}).",
    )
    return Decision(least.states, count, True, (), levels, says, FOREVER)


def _with_groups(
    least: Table,
    count: int | None,
    size: str,
    held: tuple[Group, ...],
    counts: tuple[tuple[int, ...], int] | None,
) -> Decision:
    """counts: modulo what, and to how many letters."""
    names = ", ".join(group.name for group in held)
    hard = next((group for group in held if not group.solvable), None)
    if counts is not None:
        moduli = ", ".join(map(str, counts[0]))
        why = f"{_WITHOUT_TURNS}: counts modulo {moduli} follow it to a bounded length: at most {counts[1]:,} letters."
    elif hard is not None:
        why = (
            f"{_WITHOUT_TURNS}: refused at any length, for this compiler counts only in groups that can be solved, and "
            f"{hard.name} cannot: its word problem is complete for NC^1 ({BARRINGTON})."
        )
    else:
        why = (
            f"{_WITHOUT_TURNS}: refused at any length. Groups take eigenvalues below 0 or complex ones ({GRAZZI}), or "
            "a bounded length, to which counts follow them. They are taken apart into counts where the group of a "
            f"level has at most {MOST_ELEMENTS} elements, and this one's cascade has a larger one, or none is known."
        )
    says = (
        f"{size}, not star-free: it holds {names}.",
        _NOT_FOR_EVER,
        why,
    )
    if counts is None:
        return Decision(least.states, count, False, held, None, says, "")
    promise = f"sequences of at most {counts[1]} letters"
    return Decision(least.states, count, False, held, None, says, promise, counts[1])


def _with_a_circle(least: Table, monoid: Monoid, size: str) -> Decision:
    """The cap was met, and among what was found an element permutes states around a circle."""
    order = monoid.period
    says = (
        f"{size}, not star-free: a word permutes states around circles, so it holds C_{order}.",
        _NOT_FOR_EVER,
        "Which groups it holds beside that is not told: the cap of the monoid was met.",
    )
    return Decision(least.states, None, False, (Group(order, f"C_{order}", True),), None, says, "")


def _open(least: Table, star_free: bool, count: int | None, size: str, cap: str) -> Decision:
    """A cap was met on the way to a cascade."""
    known = "star-free" if star_free else "not decided"
    says = (
        f"{size}, {known}; the cap was met: {cap}, and so it is not taken apart into resets.",
        "A smaller automaton, or a language of which this one is a combination, would work.",
    )
    return Decision(least.states, count, star_free or None, (), None, says, "")
