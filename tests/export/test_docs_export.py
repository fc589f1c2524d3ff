"""docs/export.md holds what was run, and all of it was exact."""

import json
import re
from importlib.metadata import version

from tests.export.__main__ import CLIENTS, NUMBERS, PAGE, table, with_table

ROWS = json.loads(NUMBERS.read_text())


def test_the_page_has_the_table_of_what_was_run():
    page = PAGE.read_text()
    assert page == with_table(page, ROWS) and table(ROWS) in page
    assert [found["client"] for found in ROWS] == list(CLIENTS)


def test_every_client_was_exact_on_enough():
    for found in ROWS:
        assert found["wrong"] == [] and found["checkpoints"] >= 6 and found["logits"] > 1000 and found["modes"]
    assert sum(found["chains"] > 0 for found in ROWS) >= 5


def test_the_versions_are_those_that_are_installed():
    packages = {"transformers_client": "transformers", "mlx_client": "mlx-lm", "llama_cpp": "xllamacpp"}
    packages |= {"onnx_runtime": "onnxruntime", "mambapy_client": "mambapy"}
    packages |= {"mamba_ssm_client": "mamba_ssm", "mamba_ssm_mlp": "mamba_ssm"}
    for found in ROWS:
        if found["client"] in packages:
            assert version(packages[found["client"]]) in re.findall(r"[\w.]+", found["version"])
