"""Compiled circuits as language models in memory, for tests that trace and patch them."""

from __future__ import annotations

from functools import cache

from compiler.artifact.model import Stack
from compiler.artifact.package import language_model, with_a_block
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.language.circuit import Circuit
from compiler.tracing.truth import Truth
from examples.gallery import bracket_depth
from examples.programs import two_brackets
from tests.circuits import CASES

MIXERS = ("mamba", "mamba2")
NAMED = {case.name: case for case in CASES}


def truth_of(compiled: Compiled) -> Truth:
    """The circuit beside its language model, as `load` puts them together."""
    compiled = with_a_block(compiled)
    packaged = language_model(compiled)
    return Truth(compiled, Stack.from_language_model(packaged.config, packaged.tensors), packaged.layout)


@cache
def brackets(mixer: str) -> Truth:
    """Two kinds of brackets, at most three deep, in sequences of at most 12."""
    return truth_of(compile(two_brackets.circuit(), mixer))


@cache
def depth(mixer: str) -> Truth:
    """The depth of brackets, or that one was closed too early."""
    return truth_of(compile(bracket_depth.circuit(), mixer))


@cache
def case(name: str, mixer: str) -> Truth:
    """A circuit of the shared list."""
    return truth_of(NAMED[name].compiled(mixer))


def circuits(names: tuple[str, ...]) -> list[Circuit]:
    """Circuits of the shared list, as written."""
    return [NAMED[name].build() for name in names]
