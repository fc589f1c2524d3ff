"""`construct disguise DIR`: the same logits in another basis, and the way back with its key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compiler.artifact.place import check_place
from compiler.artifact.plain_files import check_replaced
from compiler.language.arguments import counted
from constructions.command import requests
from constructions.command.display import console, say, working
from constructions.command.options import Certify, Json, Seed
from constructions.command.outputs import check_apart, check_outside, check_spared, lies_in
from constructions.command.reporting import strict_json

if TYPE_CHECKING:
    from constructions.checkpoints.disguised import Disguised

Force = Annotated[bool, typer.Option(help="replace an earlier result")]
KeyFile = Annotated[Path | None, typer.Option("--key", help="key of a disguise: take it back first")]


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    app.command("disguise")(disguise)
    app.command("undisguise")(undisguise)


def verifier_of(directory: Path, key: Path | None) -> Callable[..., Any] | None:
    """What verifies this directory, where it is a disguised one; ValueError for a key of one that is not."""
    from functools import partial

    from compiler.artifact.manifest import is_disguised
    from compiler.disguise.directory import check_disguised
    from compiler.disguise.key import read_key

    if key is not None:
        check_disguised(directory)
    if not is_disguised(directory):
        return None
    from constructions.checkpoints.disguised import verify_disguised

    return partial(verify_disguised, key=None if key is None else read_key(key))


def disguise(
    directory: Annotated[Path, typer.Argument(help="a checkpoint directory")],
    out: Annotated[
        Path, typer.Option(parser=requests.directory, metavar="PATH", help="directory of the disguised one")
    ],
    seed: Seed = 0,
    level: Annotated[
        int, typer.Option(help="1: places, signs, powers of two; 2: and integer sums; 3: and split channels, decoys")
    ] = 3,
    key: Annotated[Path | None, typer.Option(help="file to write the key to [default: OUT.key.json]")] = None,
    samples: Annotated[int, typer.Option(min=1, max=10**6, help="sequences per task whose logits are compared")] = 100,
    noise: Annotated[
        float,
        typer.Option(help="also change every weight by up to this share: not exact, and measured"),
    ] = 0,
    noise_in: Annotated[
        str, typer.Option(help="all: every weight; head: those of the head, and answers are proved by their lead")
    ] = "all",
    certify: Certify = True,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Change the basis of a checkpoint without changing one bit of its logits; the key goes to a file of its own."""
    with working("disguise", quiet=as_json):
        from compiler.disguise.directory import check_out, said_of_noise
        from compiler.disguise.noise import check_epsilon
        from constructions.checkpoints.disguised import disguise_checkpoint

        check_out(out, force)
        check_spared(out, {"DIRECTORY": directory})
        check_epsilon(noise, noise_in)
        place = _key_place(key, out, force)
        found = disguise_checkpoint(
            directory, out, level, seed, certify, samples, noise, noise_in, place, overwrite=force
        )
    report = _report(found, out, place)
    if as_json:
        say(strict_json(report))
        return
    done = ", ".join(f"{name}: {count}" for name, count in found.disguise.counts.items())
    console.print(f"level {level}{': ' if done else ''}{done}")
    for part, why in found.left_out.items():
        console.print(f"left out: {part} ({why})")
    console.print(
        f"{counted(found.logits, 'logit')} on {counted(found.sequences, 'sequence')}: bit for bit those of {directory}"
    )
    console.print(f"proved of the disguised weights: {report['proved'] or 'nothing was asked for'}")
    if found.noise is not None:
        console.print(f"all of this without noise; {said_of_noise(found.noise)}")
    console.print(f"checkpoint: {out}")
    console.print(f"key: {place}")


def _key_place(key: Path | None, out: Path, force: bool) -> Path:
    """Where the key goes; ValueError where it would stand in the directory, or where a file is not to be replaced."""
    place = out.with_name(f"{out.name}.key.json") if key is None else key
    check_apart({"--out": out, "--key": place})
    if lies_in(place, out):
        raise ValueError(
            f"--key {place} lies in the disguised directory, whose readers must not have it; choose another."
        )
    if place.is_dir() or (key is not None and not place.absolute().parent.is_dir()):  # OUT brings its own directory
        raise ValueError(f"--key {place} must name a file in a directory that exists.")
    check_replaced(place, f"--key {place}")
    check_place(place)  # by a new file, for an earlier one is replaced by one
    _check_key(place)  # first, for --force replaces nothing else
    if place.exists() and not force:
        raise ValueError(f"--key {place} exists already: --force replaces it.")
    check_outside(place, "--key")
    return place


def _check_key(place: Path) -> None:
    """ValueError where a file stands there that is no key; what it holds is said far behind its beginning."""
    from compiler.disguise.errors import DisguiseError
    from compiler.disguise.key import read_key

    if place.exists() and place.stat().st_size:
        try:
            read_key(place)
        except DisguiseError as reason:
            told = str(reason).rstrip(".")
            raise ValueError(f"{told}; it would be lost. Name another file for the key, or remove it.") from reason


def _report(found: Disguised, out: Path, place: Path) -> dict[str, Any]:
    verdict = found.proof
    proved = [] if verdict is None else [name for name, why in verdict.parts().items() if why is None]
    return {
        "level": found.disguise.level,
        "changes": found.disguise.counts,
        "left_out": found.left_out,
        "logits": found.logits,
        "sequences": found.sequences,
        "bit_equal": found.noise is None,
        "noise": found.noise,
        "proved": ", ".join(proved),
        "directory": str(out),
        "key": str(place),
    }


def undisguise(
    directory: Annotated[Path, typer.Argument(help="a disguised checkpoint")],
    key: Annotated[Path, typer.Option(help="the key that was written with it")],
    out: Annotated[Path, typer.Option(parser=requests.directory, metavar="PATH", help="directory of the plain one")],
    force: Force = False,
) -> None:
    """Take a disguise back: every file of the plain checkpoint, byte for byte."""
    with working("undisguise", quiet=False):
        from compiler.artifact.files import WEIGHTS
        from compiler.artifact.manifest import file_hash
        from compiler.artifact.save import check_target
        from compiler.disguise.directory import read_disguised, write_plain
        from compiler.disguise.key import read_key

        check_target(out, force)
        check_spared(out, {"DIRECTORY": directory, "--key": key})
        _, tensors = read_disguised(directory)
        found = read_key(key)
        if file_hash(directory / WEIGHTS) != found.weights:
            raise ValueError(f"--key {key} is the key of other weights than those in {directory}.")
        write_plain(directory, found, found.plain(tensors), out)
    console.print(f"checkpoint: {out}")
