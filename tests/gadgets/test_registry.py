"""Every core operation has one gadget, and one that has none is refused, not taken for a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.gadgets import core
from compiler.language import operations as ops
from compiler.language.stream import Stream
from tests.circuits import is_a, over_abc


def test_a_core_operation_without_a_gadget_fails_at_import(monkeypatch):
    core.check_complete()
    monkeypatch.setattr(ops.Not, "core", True)
    with pytest.raises(TypeError, match="core operations Not have no gadget"):
        core.check_complete()


def test_an_operation_that_no_gadget_computes_is_refused():
    @dataclass(frozen=True)
    class Strange(ops.Relu):
        """relu by another name, whose gadget was forgotten."""

        core: ClassVar[bool] = True

    try:
        with pytest.raises(CompileError, match="no gadget computes strange"):
            compile(over_abc("strange", Stream(Strange(), (is_a.cumsum(),))))
    finally:
        Strange.core = False
