"""Write docs/api.md from the docstrings of the public names: `python scripts/api_reference.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import compiler
import conformance
from compiler import graft
from compiler.language import memory
from verify.function import verify
from verify.tasks.forms import Automaton, Counted, Lookup

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
CHAPTERS = {
    "Circuits and their inputs": ["Alphabet", "InputLanguage", "Edge", "Circuit", "Tokens", "numbers", "position"],
    "Streams": ["Stream", "constant", "concatenate", "select", "minimum", "maximum", "any_of", "all_of"],
    "More words of one position": ["argmax", "hardmax", "dot", "scaled_sum", "decode"],
    "The past": ["count", "latch", "latch_bank", "present", "running_max", "sum_where", "lti", "automaton"],
    "Codes": ["Codebook", "balanced", "bits", "signs", "random_balanced"],
    "Answers": ["emit", "readout", "readout_integer", "readout_nearest", "readout_one_hot"],
    "Types": ["Bool", "Int", "OneHot", "Code", "Real", "Logits"],
    "Compiling, running, saving": [
        "compile",
        "Compiled",
        "bare",
        "language_model",
        "interpret",
        "save",
        "load",
        "generate",
    ],
    "Refusals": ["CompileError", "CheckpointError"],
}


def page() -> str:
    """The whole page."""
    told = {name for names in CHAPTERS.values() for name in names} | {"memory"}
    others = sorted(set(compiler.__all__) - told)
    chapters = CHAPTERS | ({"Others": others} if others else {})
    exported = "`compiler`, `compiler.graft` and `conformance` export"
    lines = ["# Reference", "", f"What {exported}, from its docstrings; written by `scripts/api_reference.py`."]
    for title, names in chapters.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += _entry(name, getattr(compiler, name))
        if title == "The past":
            for name in ("write", "outer_sum", "Memory"):
                lines += _entry(f"memory.{name}", getattr(memory, name))
    lines += ["", "## Verifying", *_entry("verify.function.verify", verify)]
    lines += ["", "Tasks of one's own that are proved (`from verify import …`):"]
    for task in (Automaton, Lookup, Counted):
        lines += _entry(task.__name__, task)
    for title, package in (("Into other models", graft), ("Vectors for kernels", conformance)):
        lines += ["", f"## {title}: `{package.__name__}`"]
        for name in package.__all__:
            lines += _entry(name, getattr(package, name))
    return "\n".join(lines) + "\n"


def _entry(name: str, thing: Any) -> Iterator[str]:
    """A name with its signature and docstring, and the public methods of a class."""
    yield from _described(f"### `{name}{_signature(thing)}`", thing)
    if inspect.isclass(thing):
        for method, value in vars(thing).items():
            public = inspect.isfunction(value) or isinstance(value, classmethod | property | cached_property)
            if public and not method.startswith("_"):
                function = value.__func__ if isinstance(value, classmethod) else value
                yield from _described(f"#### `{name}.{method}{_signature(function)}`", function)


def _signature(thing: Any) -> str:
    """(arguments) as they are written, without annotations' modules; nothing for what is not called."""
    if isinstance(thing, property | cached_property):
        return ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _described(heading: str, thing: Any) -> Iterator[str]:
    yield ""
    yield heading
    yield ""
    text = inspect.getdoc(thing) or ""
    yield from ("```text", text, "```") if "\n" in text else (text,)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
