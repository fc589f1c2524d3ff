"""What needs more memory than there is gets refused with the number, before a tensor is made."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from compiler.artifact import free_memory, package
from compiler.artifact.package import language_model
from compiler.driver import compile
from compiler.errors import CompileError
from constructions.selectivity.mqar import MQAR


def test_a_model_beyond_the_free_memory_is_refused_with_the_number(monkeypatch) -> None:
    compiled = compile(MQAR(kappa=2, vocab=4).circuit(), "mamba")
    model = language_model(compiled)
    parameters = sum(tensor.numel() for tensor in model.tensors.values())
    monkeypatch.setattr(package, "free_bytes", lambda: 8 * parameters)
    language_model(compiled)
    monkeypatch.setattr(package, "free_bytes", lambda: 8 * parameters - 1)
    monkeypatch.setattr(package, "_embedding", None)  # nothing is made
    with pytest.raises(CompileError, match=f"has {parameters:,} parameters.* 0.0 GB of memory, and 0.0 GB are free"):
        language_model(compiled)


def test_where_no_system_tells_nothing_is_refused(monkeypatch) -> None:
    for name in ("_machine", "_group", "_addresses"):
        monkeypatch.setattr(free_memory, name, lambda: None)
    assert free_memory.free_bytes() is None
    monkeypatch.setattr(package, "free_bytes", lambda: None)
    language_model(compile(MQAR(kappa=2, vocab=4).circuit(), "mamba"))


def test_a_group_says_what_is_left_or_max(tmp_path) -> None:
    (tmp_path / "memory.current").write_text("30\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.stat").write_text("anon 5\nactive_file 4\ninactive_file 6\n")
    assert free_memory._group(tmp_path) is None
    (tmp_path / "memory.max").write_text("100\n")
    assert free_memory._group(tmp_path) == 80
    (tmp_path / "memory.max").write_text("19\n")
    assert free_memory._group(tmp_path) == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits on addresses are read on Linux alone")
def test_a_limit_on_addresses_is_seen() -> None:
    code = "from compiler.artifact.free_memory import free_bytes; print(free_bytes())"
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
    free = subprocess.run([sys.executable, "-c", code], preexec_fn=limit, capture_output=True, text=True, check=True)
    assert 0 < int(free.stdout) < 1 << 32
