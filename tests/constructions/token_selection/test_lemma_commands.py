"""The commands of paper D's lemmas and rates, and their pictures."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from constructions.command.cli import app
from constructions.command.reporting import strict_json
from constructions.token_selection import lemma_page, rates, soft_selection
from verify.estimation import RECONSTRUCTED

ROWS = Path(__file__).parents[3] / "docs" / "selection_lemmas.json"
SMALL = ["soft-selection", "--keys", "3", "--tokens", "3", "--values", "1", "--error", "0.5", "--samples", "50"]


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_a_selection_and_its_picture(tmp_path) -> None:
    picture = tmp_path / "selection.png"
    shown = run(*SMALL, "--plot", str(picture))
    assert shown.exit_code == 0 and "softmax" in shown.stdout and picture.read_bytes()[:4] == b"\x89PNG"
    told = json.loads(run(*SMALL, "--json").stdout)
    assert told["good"] and told["error"] <= told["bound"] <= 0.5 and len(told["example"]["scores"]) == 3


def test_a_selection_that_is_wrong_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    real = soft_selection.weights_of
    monkeypatch.setattr(soft_selection, "weights_of", lambda *a: real(*a)[..., ::-1])
    assert run(*SMALL).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--error", "1.5"], "error = 1.5"),
        (["--keys", "3", "--tokens", "5", "--values", "1", "--error", "0.000001"], "tried and works is 0.0001"),
        (["--keys", "2", "--tokens", "2", "--error", "1e-12"], "error = 1e-12 is lost in the rounding of float64"),
        (["--error", "1e-300"], "error = 1e-300 is lost in the rounding of float64"),
        (["--keys", "64", "--values", "16"], "keys = 64, tokens = 8, values = 16 and error = 0.01 take 9,062 channels"),
        (["--plot", "a.txt"], "a.txt"),
        (["--plot", ""], "--plot is empty"),
    ],
)
def test_selections_that_are_refused(arguments, sentence) -> None:
    refused = run("soft-selection", *arguments)
    assert isinstance(refused.exception, ValueError) and sentence in str(refused.exception)


@pytest.mark.parametrize(
    "sizes",
    [
        {"error": 1e-300},
        {"error": 1e-12},
        {"keys": 64, "values": 16},
        {"keys": 64, "tokens": 4096, "values": 16, "error": 1e-3},
        {"keys": 64, "tokens": 4096, "values": 16, "error": 0.9},
        {"keys": 64, "error": 1e-9},
    ],
)
def test_what_a_refused_selection_is_told_works(sizes) -> None:
    """0.1 was named for 64 keys, and refused for its channels."""
    with pytest.raises(ValueError) as refused:
        soft_selection.angles(**sizes)
    pattern = r"(error|values|tokens|keys)( that is tried and works is| =) ([\d.e-]+)( works)?\.$"
    named = re.search(pattern, str(refused.value))
    if named is None:
        assert str(refused.value).endswith("; 8 keys, 8 tokens, 2 values and an error of 0.01 do.")
        sizes = {"keys": 8, "tokens": 8, "values": 2, "error": 0.01}
    else:
        sizes = sizes | {named[1]: float(named[3]) if named[1] == "error" else int(named[3])}
    assert soft_selection.angles(**sizes).made.channels <= soft_selection.MOST_CHANNELS + 1


def test_the_tables_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for each row of the page, none beyond the terminal's 80 columns."""
    found = json.loads(ROWS.read_text("utf-8"))["rows"]
    monkeypatch.setattr(lemma_page, "rows", lambda samples, seed: found)
    lines = run("reproduce", "lemmas").stdout.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= len(found) + 3
    for row, line in zip(found, lines[1:], strict=False):
        assert line.startswith(row["lemma"]) and row["what"] in line and f"{row['error']:.3g}" in line
    shown = run(*SMALL, "--error", "0.0003").stdout
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 80
    table = run(*SMALL).stdout.splitlines()
    assert sum("3 angles" in line and "0.5" in line for line in table) == 1


def test_rows_of_lemmas_are_kept(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, kept = json.loads(ROWS.read_text("utf-8"))["rows"], tmp_path / "rows.json"
    monkeypatch.setattr(lemma_page, "rows", lambda samples, seed: found)
    assert run("reproduce", "lemmas", "--keep", str(kept), "--page", str(tmp_path / "page.md")).exit_code == 0
    assert json.loads(kept.read_text("utf-8"))["rows"] == found
    assert (tmp_path / "page.md").read_text("utf-8") == lemma_page.page(found)


def test_rates_of_estimation(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(run("estimation", "--smoothness", "2,2", "--kind", "anisotropic", "--json").stdout)
    assert told["a_plus"] == 1 and told["rate"] == pytest.approx(1e-4)
    assert told["log_covering"] <= told["log_covering_bound"]
    assert told["reconstructed"] == list(RECONSTRUCTED) and "constants" not in told["theorem"]
    monkeypatch.setattr(rates, "SAMPLES", (64, 256))
    assert run("reproduce", "rates", "--plot", str(tmp_path / "rates.png")).exit_code == 0
    assert (tmp_path / "rates.png").stat().st_size > 10_000
    slopes = json.loads(run("reproduce", "rates", "--json").stdout)["slopes"]
    for smoothness in ("0.5", "1", "2"):  # the theorem speaks of those whose weak norm is at most 1
        norm = next(s["weak_norm"] for s in slopes if s["a_plus"] == float(smoothness))
        assert (norm <= 1) == (run("estimation", "--smoothness", smoothness).exit_code == 0)
    wrong = run("estimation", "--smoothness", "one")
    assert "give numbers with commas" in str(wrong.exception)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--smoothness", "1,1.5,2"], "has the weak norm 1.5 for alpha = 1, .* that works is 1,2,3"),
        (["--smoothness", "1,2,3", "--kind", "anisotropic", "--alpha", "10"], "weak norm 1.968e.04"),
        (["--smoothness", "inf"], "smoothness = inf is too large"),
        (["--smoothness", "nan"], "smoothness = nan is too large"),
        (["--smoothness", "1e308"], "the largest smoothness that works is 1000000"),
        (["--smoothness", "1e-308"], "the smallest smoothness that works is 1"),
        (["--smoothness", "0.001,0.002", "--samples", "10"], "the smallest smoothness that works is 1"),
        (["--smoothness", "1,2,3", "--alpha", "0.1"], "alpha = 0.1 asks for weights of 2.*the smallest alpha"),
    ],
)
def test_rates_of_which_no_theorem_speaks(words, sentence) -> None:
    refused = run("estimation", *words)
    with pytest.raises(ValueError, match=sentence):
        raise refused.exception


def test_json_is_strict_whatever_it_holds() -> None:
    told = strict_json({"a": float("nan"), "b": [float("inf"), 1.5, ("x", -float("inf"))], "c": True, "d": None})
    assert json.loads(told, parse_constant=pytest.fail) == {
        "a": None,
        "b": [None, 1.5, ["x", None]],
        "c": True,
        "d": None,
    }


def test_the_measured_rate_is_near_the_theorems() -> None:
    """Slopes over n = 4^3 … 4^6, up to powers of log n; the target has γ-norm 1."""
    for row in rates.report(repeats=8, most=4**6)["slopes"]:
        assert abs(row["slope"] - row["exponent"]) < 0.12
    level = np.concatenate([[0], *(np.full(2**s, s) for s in range(1, 5))])
    assert (4.0 ** (0.7 * level) * rates.target(0.7, 4) ** 2).sum() == pytest.approx(1)


def test_waves_are_orthonormal() -> None:
    at = rates.waves((np.arange(64) + 0.5) / 64, 7)
    assert np.allclose(at.T @ at / 64, np.eye(7))


def test_items_are_listed_as_json() -> None:
    told = json.loads(run("reproduce", "--list", "--json").stdout)
    assert {"item", "what"} == set(told[0]) and "lemmas" in [row["item"] for row in told]
    assert "ITEM is missing" in str(run("reproduce").exception)


def test_a_page_nowhere_is_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lemma_page, "rows", lambda samples, seed: pytest.fail("the work is done first"))
    assert "there is no directory" in str(run("reproduce", "lemmas", "--page", "/nosuch/x.md").exception)


def test_items_without_parts() -> None:
    for arguments in (["lemmas", "--only", "x"], ["rates", "--keep", "x"]):
        assert "is one run without parts" in str(run("reproduce", *arguments).exception)
