"""`construct report`: the page's own interpreter gives what ours gives, and the page is read in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from compiler import Circuit, compile
from compiler.artifact.package import language_model, with_a_block
from compiler.compiled import Compiled
from compiler.interpreter import interpret
from compiler.tracing.variables import Variables
from constructions.report.data import model_data
from constructions.report.page import page_of
from constructions.report.weights import weights_data
from constructions.zoo.collection import entries
from constructions.zoo.measured import measured
from examples.gallery import binary_adder, bracket_depth
from examples.programs import polynomial, two_brackets
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
    assert text.count("<script") == 4 and text.count("</script>") == 4


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


@pytest.mark.skipif(NODE is None, reason="there is no node to run JavaScript")
@pytest.mark.parametrize("mixer", ["mamba", "mamba2"])
def test_every_weight_says_what_the_layout_says(mixer: str) -> None:
    model = language_model(with_a_block(compile(two_brackets.circuit(), mixer)))
    given = weights_data(model.tensors, model.layout)
    ask = """
    const {explained} = require(process.argv[1]), all = JSON.parse(require("fs").readFileSync(0, "utf8"));
    console.log(JSON.stringify(all.tensors.map((t) => t.at.map((index) => explained(all, t, index)))));
    """
    script = [str(NODE), "-e", ask, str(JS.with_name("weights.js"))]
    done = subprocess.run(script, input=json.dumps(given), capture_output=True, text=True)
    found = json.loads(done.stdout)
    count = 0
    for tensor, said in zip(given["tensors"], found, strict=True):
        values = model.tensors[tensor["name"]]
        assert len(said) == len(tensor["values"]) == int((values != 0).sum())
        for index, sentence, value in zip(tensor["at"], said, tensor["values"], strict=True):
            assert sentence == str(model.layout.explain(tensor["name"], index)) and value == float(values[tuple(index)])
            count += 1
    assert count > 100


def titled(page: Path, script: str, width: int = 390) -> dict:
    """What a script makes the title of a page in a real browser, as JSON."""
    probe = page.with_name(f"probe-{page.stem}-{width}.html")
    probe.write_text(page.read_text("utf-8").replace("</html>", f"<script>{script}</script></html>"), "utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=2000", probe.as_uri()], capture_output=True, text=True, timeout=120
    )
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", done.stdout)[1]))


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (Debian's package) to open the page")
def test_a_weight_says_its_name_when_it_has_the_focus(page: Path) -> None:
    found = titled(
        page,
        """
        const box = [...document.querySelectorAll("#weights details")].find((d) => d.innerText.startsWith("lm_head"));
        box.open = true;
        setTimeout(() => {
          const chips = box.querySelectorAll("button"), told = [];
          chips[0].focus(); told.push(at("said").textContent);
          chips[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
          told.push(at("said").textContent);
          chips[0].dispatchEvent(new Event("mouseenter")); told.push(at("said").textContent);
          const wide = document.documentElement.scrollWidth <= window.innerWidth;
          document.title = JSON.stringify({ told, wide, stops: [...chips].filter((c) => c.tabIndex === 0).length });
        }, 100);
        """,
    )
    assert found["told"][0].startswith("1 at lm_head.weight[2, ") and "score of )" in found["told"][0]
    assert "two_brackets.py" in found["told"][0] and "score of ]" in found["told"][1]
    assert found["told"][2] == found["told"][0] and found["stops"] == 1 and found["wide"]


def test_a_model_over_numbers_has_a_page_that_says_so(tmp_path: Path) -> None:
    circuit = Circuit("polynomial", polynomial.polynomial(polynomial.VALUES), length=5)
    compile(circuit, "mamba").save(tmp_path / "numbers")
    assert run("report", str(tmp_path / "numbers"), "--out", str(tmp_path / "page.html")) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', (tmp_path / "page.html").read_text("utf-8"))[1])
    assert data["still"].startswith("This model cannot be stepped through here: it is a model over numbers")
    assert data["weights"]["tensors"] and data["circuit"] and "blocks" not in data
    if CHROMIUM is not None:
        found = titled(tmp_path / "page.html", "document.title = JSON.stringify({ said: document.body.innerText });")
        assert "cannot be stepped through" in found["said"] and "polynomial.py" in found["said"]


def test_a_page_says_for_which_inputs_it_is(page: Path, tmp_path: Path) -> None:
    """A circuit of every length has no number to write there, which once left its whole page empty."""
    entries()["last-name"].write(tmp_path / "last-name")
    assert run("report", str(tmp_path / "last-name"), "--out", str(tmp_path / "page.html")) == 0
    for one, length in ((page, "up to 12 tokens"), (tmp_path / "page.html", "of every length")):
        data = json.loads(re.search(r'id="data">(.*?)</script>', one.read_text("utf-8"))[1])
        assert all(isinstance(said, str) for said in data["promise"].values())
        assert f", {length}, float32; called " in data["promise"]["inputs"]
        if CHROMIUM is not None:
            found = titled(one, "document.title = JSON.stringify([at('promise').innerText, at('where').textContent]);")
            assert data["promise"]["inputs"] in found[0] and found[1].startswith("position ")


def test_a_page_says_what_is_recorded_and_not_run(tmp_path: Path) -> None:
    built = ("mqar", "--kappa", "2", "--vocab", "3", "--samples", "20", "--no-certify", "--out", str(tmp_path / "mqar"))
    assert run(*built) == 0
    entries()["last-name"].write(tmp_path / "last-name")
    for name, said in (
        ("mqar", r"questions, 100 % of them answered right"),
        ("last-name", r"answers in .*, all right"),
    ):
        assert run("report", str(tmp_path / name), "--out", str(tmp_path / "page.html")) == 0
        data = json.loads(re.search(r'id="data">(.*?)</script>', (tmp_path / "page.html").read_text("utf-8"))[1])
        assert re.match(rf"Recorded by its maker, not run for this page: .*{said}", data["tested"][-1]), data["tested"]


def test_too_many_weights_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile(two_brackets.circuit(), "mamba").save(tmp_path / "two")
    monkeypatch.setattr("constructions.report.weights.MOST_WEIGHTS", 3)
    monkeypatch.setattr("constructions.report.data.MOST_NUMBERS", 3)
    text = page_of(tmp_path / "two")
    assert "weights that are not 0, and a page takes at most 3" in text and "steps through at most 3" in text


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("index")
    (place / "at-least-3.html").write_text("its own page")
    assert run("report", "--zoo", "--out", str(place / "zoo.html")) == 0
    return place / "zoo.html"


def test_the_index_of_the_zoo_has_every_circuit(index: Path) -> None:
    text = index.read_text("utf-8")
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""", text) and "fetch(" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    rows = measured()
    assert [c["name"] for c in data["circuits"]] == [*entries()]
    for circuit in data["circuits"]:
        row = rows[circuit["name"]]
        assert (circuit["proof"], circuit["promise"]) == (row.proof, row.promise)
        assert circuit["blocks"] == row.difficulty["blocks"] and circuit["source"] and circuit["oracle"]
    assert [c["name"] for c in data["circuits"] if c["page"]] == ["at-least-3"]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (Debian's package) to open the page")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_index_is_searched_in_a_browser(index: Path, width: int) -> None:
    found = titled(
        index,
        """
        at("find").value = "at-least-3"; filter();
        const seen = shown.filter((d) => !d.hidden); seen[0].open = true;
        setTimeout(() => {
          const wide = document.documentElement.scrollWidth <= window.innerWidth;
          const links = [...seen[0].querySelectorAll("a")].map((a) => a.getAttribute("href"));
          document.title = JSON.stringify({ count: at("count").textContent, text: seen[0].innerText, links, wide });
        }, 100);
        """,
        width,
    )
    assert found["count"] == f"1 of {len(entries())} circuits" and found["links"] == ["#at-least-3", "at-least-3.html"]
    assert "def at_least" in found["text"] and "The same answers in plain Python" in found["text"] and found["wide"]


def test_a_report_is_of_one_thing(tmp_path: Path, capsys) -> None:
    for given in ((), (str(tmp_path), "--zoo")):
        assert run("report", *given, "--out", str(tmp_path / "x.html")) == 2
        assert "with --zoo the index" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_what_a_page_cannot_show(tmp_path: Path, capsys) -> None:
    assert run("report", str(tmp_path / "nothing")) == 2
    assert "does not exist" in capsys.readouterr().err
