"""`construct show`: what the compiler makes of a circuit, stage by stage, and what single weights mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.own_file import check_own, module_of
from constructions.construction import NumericConstruction
from constructions.registry import CONSTRUCTIONS, families
from verify.arguments import run_own

if TYPE_CHECKING:
    from compiler.compiled import Compiled


def check_asked(what: str, asked: Mapping[str, object], target: str | None, dtype: str | None) -> None:
    """ValueError for options of which only one can be shown, and for a target or dtype of what has its own."""
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: only one of them is shown at a time; leave out the others.")
    own = [f"{name} {value}" for name, value in (("--target", target), ("--dtype", dtype)) if value is not None]
    if own and not _in_a_file(what):
        raise ValueError(f"{own[0]}: {what} has its own, and only FILE.py:NAME is compiled for another; leave it out.")


def _in_a_file(what: str) -> bool:
    """Whether it is of the form FILE.py:NAME, and no directory is called so."""
    return what.rpartition(":")[0].endswith(".py") and not Path(what).is_dir()


def compiled_of(
    what: str, target: str, dtype: str, compared: bool = False, over_tokens: bool = False, among_others: bool = False
) -> Compiled:
    """What a checkpoint directory, a construction's name or FILE.py:NAME compiles to.

    target, dtype: for circuits of one's own; a checkpoint and a construction have theirs. compared: whether the weights
    of a checkpoint must be what it compiles to. over_tokens: whether only constructions that read tokens are named as
    possible. among_others: of a construction its circuit for where tokens of others stand between its letters.
    ValueError or CheckpointError in one sentence where it is none of the three.
    """
    from compiler.driver import compile
    from compiler.language.circuit import Circuit

    if Path(what).is_dir():
        from constructions.checkpoints.saved import rebuild, same

        built = same(Path(what))[0] if compared else rebuild(what)
        other = built.construction.among_others() if among_others else None
        return built.compiled if other is None else built.construction.compiled(other)
    file, _, name = what.rpartition(":")
    known = {} if _in_a_file(what) else CONSTRUCTIONS if what in CONSTRUCTIONS else families()
    if what in known:
        if needed := _needed(known[what]):
            raise ValueError(
                f"{what} is built of a {needed[0]} that its name does not tell; run `construct {what}`, and give the "
                "directory that it writes."
            )
        construction = known[what]()
        return construction.compiled(construction.among_others() if among_others else None)
    if not _in_a_file(what):
        told = {name: family for name, family in known.items() if not _needed(family)}
        there = [name for name, family in told.items() if not (over_tokens and issubclass(family, NumericConstruction))]
        raise ValueError(
            f"{what!r} is no checkpoint directory, no FILE.py:NAME and no construction; there are {', '.join(there)}."
        )
    found = value_of(what)
    found = run_own(what, found, file=file) if callable(found) else found
    if not isinstance(found, Circuit):
        raise ValueError(f"{name!r} of {file} is no Circuit, nor a function that returns one.")
    return compile(found, target, dtype)


def _needed(family: type) -> list[str]:
    """The parameters of a construction that have no default."""
    return [each.name for each in fields(family) if each.default is MISSING and each.default_factory is MISSING]


def passes_of(what: str, target: str, dtype: str) -> tuple[str, bool]:
    """What each pass changed on the way of this circuit, and whether it was refused."""
    from compiler.errors import CompileError
    from compiler.steps import told

    try:
        return told(compiled_of(what, target, dtype).steps), False
    except CompileError as refusal:
        return f"{told(refusal.steps)}\n{refusal}\n", True


def value_of(what: str):
    """What stands under NAME in FILE.py:NAME; ValueError, in one sentence, where nothing does."""
    file, _, name = what.rpartition(":")
    if not file or not name:
        raise ValueError(f"{what!r} names nothing in a file; write FILE.py:NAME.")
    module = run_file(Path(file))
    if not hasattr(module, name):
        raise ValueError(f"{file} has no {name!r}; a name that the file gives a value is needed.")
    return getattr(module, name)


def run_file(path: Path):
    """The module of a user's file; ValueError, in one sentence, where there is none or it stops."""
    if not path.exists():
        raise ValueError(f"there is no file {path}.")
    check_own(path)
    return run_own(str(path), module_of, path, file=str(path))


def explained(compiled: Compiled, weight: str) -> str:
    """One weight of the language model (of the bare stack where there is none): "TENSOR[i, j]" to a sentence."""
    from compiler.artifact.package import bare, language_model

    name, bracket, rest = weight.partition("[")
    try:
        index = tuple(int(i) for i in rest.rstrip("]").split(","))
    except ValueError:
        raise ValueError(f"weight {weight!r} must be a tensor and an index, as in 'lm_head.weight[0, 3]'.") from None
    packaged = compiled.context.target.family and compiled.source.alphabet is not None
    layout = (language_model(compiled) if packaged else bare(compiled)).layout
    try:
        return str(layout.explain(name, index))
    except (KeyError, IndexError) as reason:
        raise ValueError(f"{reason.args[0]}.") from None
