"""`construct report`: the page's own interpreter gives what ours gives, and the page is read in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from compiler import compile
from compiler.artifact.package import with_a_block
from compiler.compiled import Compiled
from compiler.interpreter import interpret
from compiler.tracing.variables import Variables
from constructions.report.data import model_data
from examples.gallery import binary_adder, bracket_depth
from examples.programs import two_brackets
from tests.circuits import CASES
from tests.constructions.test_construct import run

NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium") or shutil.which("chromium-browser")
JS = Path(__file__).parents[2] / "constructions" / "report" / "interpreter.js"
ASK = """
const {run, raw} = require(process.argv[1]);
const {model, inputs} = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(inputs.map((ids) => {
  const found = run(model, ids);
  return {scores: found.scores, values: model.variables.map((v) => raw(v, found.lanes))};
})));
"""
CIRCUITS = {
    "brackets": lambda: two_brackets.circuit(),
    "depth": bracket_depth.circuit,
    "adder": binary_adder.circuit,
    "recall": lambda: next(case for case in CASES if case.name == "mqar_last").build(),
}


def in_node(compiled: Compiled, inputs: list[list[int]]) -> list[dict]:
    """What interpreter.js gives for each input."""
    given = json.dumps({"model": model_data(with_a_block(compiled)), "inputs": inputs})
    done = subprocess.run([str(NODE), "-e", ASK, str(JS)], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="there is no node to run JavaScript")
@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("mixer", ["mamba", "mamba2"])
def test_a_thousand_inputs_in_the_pages_interpreter(name: str, mixer: str) -> None:
    compiled = compile(CIRCUITS[name](), mixer)
    language = compiled.source.token_language
    longest = min(8, language.max_length)
    inputs = [word.tolist() for length in (longest, 3) for word in language.sample(63, length, 0)]
    found = in_node(compiled, inputs)
    assert len(found) * len(CIRCUITS) * 2 > 1000
    shown = [v["name"] for v in model_data(with_a_block(compiled))["variables"]]
    variables = Variables(compiled)
    for ids, there in zip(inputs, found, strict=True):
        here = interpret(compiled.source, np.array([ids]), keep=compiled.source.streams)
        output = here[compiled.source.output][0].astype(float)
        assert np.array_equal(np.array(there["scores"]), output)
        for variable, values in zip(shown, there["values"], strict=True):
            assert np.array_equal(np.array(values), here[variables[variable].stream][0].astype(float)), variable


@pytest.mark.skipif(NODE is None, reason="there is no node to run JavaScript")
def test_a_planted_weight_is_seen() -> None:
    compiled = compile(two_brackets.circuit(), "mamba")
    model = model_data(compiled)
    model["blocks"][0]["out"][0][1] *= 2
    given = json.dumps({"model": model, "inputs": [[0, 1, 2]]})
    done = subprocess.run([str(NODE), "-e", ASK, str(JS)], input=given, capture_output=True, text=True)
    right = in_node(compiled, [[0, 1, 2]])
    assert done.returncode or json.loads(done.stdout) != right


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    compile(two_brackets.circuit(), "mamba").save(place / "two")
    assert run("report", str(place / "two"), "--out", str(place / "page.html")) == 0
    return place / "page.html"


def test_the_page_needs_no_network(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""", text) and "fetch(" not in text
    assert text.count("<script") == 3 and text.count("</script>") == 3


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (Debian's package) to open the page")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_steps_through_the_example(page: Path, width: int) -> None:
    probe = page.with_name(f"probe{width}.html")
    script = """<script>
    at("input").value = "( [ ] ("; read(); move(1); move(1);
    const rows = [...at("variables").querySelectorAll("tbody tr")];
    const found = {
      where: at("where").textContent, why: at("why").textContent, error: at("error").textContent,
      stack: rows.find((r) => r.firstChild.textContent === "stack").innerText,
      wide: document.documentElement.scrollWidth <= window.innerWidth,
      now: document.querySelectorAll("#variables td.now").length,
    };
    at("input").value = "( {"; read();
    document.title = JSON.stringify({...found, unknown: at("error").textContent});
    </script>"""
    probe.write_text(page.read_text("utf-8").replace("</html>", script + "</html>"), "utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    done = subprocess.run([*command, probe.as_uri()], capture_output=True, text=True, timeout=120)
    found = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1].replace("&amp;", "&"))
    assert found["where"] == "position 2 of 3: ]" and found["error"] == ""
    assert found["stack"].split() == ["stack", "(", "[", "(", "("]
    assert found["why"].startswith(") scores 1") and found["wide"] and found["now"] > 3
    assert found["unknown"] == "{ is none of the letters"


def test_what_a_page_cannot_show(tmp_path: Path, capsys) -> None:
    assert run("report", str(tmp_path / "nothing")) == 2
    assert "does not exist" in capsys.readouterr().err
