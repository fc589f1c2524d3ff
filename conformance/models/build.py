"""Writing the models: the core circuits compiled for both mixers, and variants of their weights.

Variants: `grouped` gives a Mamba-2 several groups of B and C, each with a level of its own; `occupied` copies active
channels and heads into the idle ones. Both leave the logits what they are.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from compiler.artifact.package import language_model
from compiler.compiled import Compiled
from compiler.driver import compile
from conformance.exact import Inexact
from conformance.loader import Case
from conformance.models import operands
from conformance.models.case import ModelCase
from conformance.models.circuits import CORES, Core
from conformance.models.companion import KINDS, companion
from conformance.models.variants import grouped, occupied

SHORT, LONG = 60, 1000
ACROSS = 150  # positions of models of the delta rule, which go over the borders of two chunks
BFLOAT16 = 40  # sums of codes up to here stay within 8 bits
NARROW = ("induction", "codes")  # those that have a model in bfloat16
ROWS = 3

Files = tuple[dict[str, Any], dict[str, Tensor]]


def build(directory: Path, full: bool = False, only: Sequence[str] = ()) -> Iterator[ModelCase]:
    """Write every model under a directory and give its case; full: 1,000 positions, and each variant of each core.

    only: names of models, where not all are wanted. Raises ValueError for a name that none has.
    """
    check_names(only, full)
    wanted = set(only or names(full))
    for core in CORES.values():
        for target in core.targets:
            yield from _forms(directory, core, target, full, wanted)
    for kind in KINDS:
        if f"random-{kind}" in wanted:
            yield companion(directory, kind)
    for name in NARROW:
        for target in ("mamba", "mamba2"):
            if f"{name}-{target}-bfloat16" in wanted:
                yield _bfloat16(directory, CORES[name], target)


def check_names(only: Sequence[str], full: bool = False) -> None:
    """ValueError for a name that no model has; full as for `build`."""
    known = names(full)
    for name in only:
        if name not in known:
            raise ValueError(f"--model {name!r} is not known: expected one of {', '.join(known)}.")


def names(full: bool = False) -> list[str]:
    """The names of all models, in order; full as for `build`."""
    plain = [(core, target, f"{core.name}-{target}") for core in CORES.values() for target in core.targets]
    found = [name + form for core, target, name in plain for form in ("", *_variants(core, target, full))]
    return [
        *found,
        *(f"random-{kind}" for kind in KINDS),
        *(f"{name}-{target}-bfloat16" for name in NARROW for target in ("mamba", "mamba2")),
    ]


def _variants(core: Core, target: str, full: bool) -> dict[str, Callable[[Files], Files]]:
    """What is made of a plain model, by the end of its name."""
    variants: dict[str, Callable[[Files], Files]] = {}
    if not core.fades and not core.hidden and (full or core.name in ("count-since", "codes")):
        variants["-occupied"] = lambda plain: occupied(*plain)
    if not core.fades and target == "mamba2" and (full or core.name in ("induction", "codes")):
        variants |= {f"-groups-{groups}": _in_groups(groups) for groups in (2, 4)}
    return variants


def _in_groups(groups: int) -> Callable[[Files], Files]:
    return lambda plain: grouped(*plain, groups)


def _forms(directory: Path, core: Core, target: str, full: bool, wanted: set[str]) -> Iterator[ModelCase]:
    name, length = f"{core.name}-{target}", LONG if full else ACROSS if core.hidden else SHORT
    variants = {form: make for form, make in _variants(core, target, full).items() if name + form in wanted}
    if name not in wanted and not variants:
        return
    compiled = compile(core.build(length), target)
    plain = _saved(compiled, directory / name)
    if name in wanted:
        yield _case(directory, name, core, compiled, plain, length)
    for form, make in variants.items():
        with suppress(Inexact):  # larger sums than the ballast of the norm bears: no test of anybody's kernel
            yield _case(directory, name + form, core, compiled, make(plain), length)


def _bfloat16(directory: Path, core: Core, target: str) -> ModelCase:
    compiled = compile(core.build(BFLOAT16), target, "bfloat16")
    name = f"{core.name}-{target}-bfloat16"
    return _case(directory, name, core, compiled, _saved(compiled, directory / name), BFLOAT16)


def _saved(compiled: Compiled, directory: Path) -> Files:
    compiled.save(directory, overwrite=True)
    return _read(directory)


def _case(directory: Path, name: str, core: Core, compiled: Compiled, files: Files, length: int) -> ModelCase:
    """The checkpoint of these files with its vectors."""
    config, tensors = files
    place = directory / name
    random = np.random.RandomState(zlib.crc32(core.name.encode()))
    tokens = np.stack([core.draw(random, length) for _ in range(ROWS)])
    case = case_of(place, compiled, tokens, core.asks, files, core.fades or core.hidden)
    if not (place / "config.json").is_file():
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        save_file(tensors, place / "model.safetensors", {"format": "pt"})
    case.write()
    return case


def case_of(
    directory: Path,
    compiled: Compiled,
    tokens: np.ndarray,
    asks: str,
    files: Files | None = None,
    stateless: bool = False,
) -> ModelCase:
    """A checkpoint of a compiled circuit with what it must say of tokens (rows, length). Nothing is written.

    files: the content of the checkpoint, where it is at hand. stateless: whether none of its states is compared, as
    none is of a Gated DeltaNet.
    """
    config, tensors = files or _read(directory)
    scored = language_model(compiled).over_vocabulary
    logits = scored(compiled.interpret(tokens))
    alone = scored(compiled.interpret(tokens.reshape(-1, 1))).reshape(logits.shape)
    rows = torch.from_numpy(tokens)
    found: list[Case] = []
    if not stateless and config["model_type"] in operands.FAMILIES:
        found, run = operands.layers(config, tensors, rows[:1])
        if not torch.equal(run.double(), torch.from_numpy(logits[:1].astype(np.float32)).double()):
            raise Inexact(f"{directory.name} does not say what its circuit says: the variant leaves the lattice.")
    return ModelCase(
        directory.name,
        asks,
        directory,
        rows,
        torch.from_numpy(logits.astype(np.float64)),
        torch.from_numpy((logits != alone).any(-1)),
        [layer.expected["last_state"][0] for layer in found],
    )


def _read(directory: Path) -> Files:
    return json.loads((directory / "config.json").read_text()), load_file(directory / "model.safetensors")
