"""A Mamba-2 of two groups in other programs: bit-exact, or refused where their norm is over all groups."""

from __future__ import annotations

import pytest

from compiler.artifact.formats import writer_of
from compiler.export import ExportError, read
from tests.export.cases import GROUPED, ask, made


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    ((name, construction),) = GROUPED.items()
    return made(name, construction, tmp_path_factory.mktemp("groups") / name)


@pytest.mark.parametrize(
    ("client", "format"), [("llama_cpp", "gguf"), ("onnx_runtime", "onnx"), ("mamba_ssm_client", "mamba-ssm")]
)
def test_clients_with_a_norm_for_each_group_give_every_bit(case, tmp_path, client, format):
    path = tmp_path / "export"
    writer_of(format)(read(case.directory), path, False)
    _, answers = ask(client, [(case, path)], tmp_path)
    assert answers[case.name].logits and not answers[case.name].wrong(case)


def test_the_bare_file_has_the_groups(case, tmp_path):
    writer_of("safetensors-bare")(read(case.directory), tmp_path / "bare.safetensors", False)
    with pytest.raises(ExportError, match="n_groups is 2"):
        writer_of("mlx")(read(case.directory), tmp_path / "mlx", False)
