"""The lemmas that Coq checks: no gap in them, the page names them, and where Coq is installed they build."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.verify.checker.lemmas import stated
from tests.verify.checker.proved import FOLDER, files, of_lemmas, of_rules, said, table, theorems, without_comments

ROOT = Path(__file__).parents[3]
GAPS = r"Admitted|admit|Axioms?|Parameters?|Conjecture|bypass_check|Unset\s+\w+\s+Checking"


def test_no_file_has_a_gap():
    assert {path.name for path in FOLDER.glob("*.v")} == {path.name for path in files()}
    for path in files():
        found = re.search(rf"\b(?:{GAPS})\b", without_comments(path.read_text("utf-8")))
        assert found is None, f"{path.name}: {found and found.group()}"


def test_gaps_are_seen_outside_comments_only():
    text = "(* no Axiom (* here *) Admitted *) Theorem a : True. Admitted."
    assert without_comments(text).split() == ["Theorem", "a", ":", "True.", "Admitted."]
    assert re.search(rf"\b(?:{GAPS})\b", without_comments(text)) and theorems("(* Theorem b *)\nTheorem a : b") == ["a"]


def test_the_page_says_of_each_lemma_who_has_checked_it():
    page, proved = said(), of_lemmas()
    assert set(page) == set(stated()), "python -m tests.verify.checker.proved adds rows that are missing"
    for name, (shown, paper) in page.items():
        assert shown == ", ".join(proved.get(name, [])), "python -m tests.verify.checker.proved writes them anew"
        assert shown or paper, f"lemma of {name}: neither a theorem nor a word on what is on paper"
    assert "\n".join(f"| {n} | {s} | {p} |" for n, (s, p) in page.items()) == table()


def test_each_rule_of_the_small_kernel_names_theorems_that_are_there():
    known = {f"{path.stem}.{name}" for path in files() for name in theorems(path.read_text("utf-8"))}
    rules, page = of_rules(), (FOLDER.parent / "docs" / "proofs.md").read_text("utf-8")
    kernel = page.split("| rule | what the kernel checks | lemmas |\n| --- | --- | --- |\n")[1].split("\n\n")[0]
    assert {row.split("`")[1] for row in kernel.split("\n")} <= set(rules)
    for rule, named in rules.items():  # "asks" needs no theorem: the text itself is looked at
        assert (named or rule == "asks") and set(named) <= known, f"{rule}: {set(named) - known}"


WITHOUT_COQ = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed: no lemma is checked here")
WRONG = [  # statements that are a little too strong
    ("Alike.v", "(forall b, low <= sum", "(exists b, low <= sum"),
    ("Sums.v", "under l) <= two (bits F + e) /\\", "under l) <= two (bits F + e + 1) /\\"),
    ("Factors.v", "Rabs (B2R a * B2R b) <= largest F ->", "Rabs (B2R a * B2R b) <= 2 * largest F ->"),
    ("Activations.v", "Theorem softplus_is_relu x : 20", "Theorem softplus_is_relu x : x = 0 \\/ 20"),
    ("Activations.v", "x = 0 \\/ 104 <= x -> y", "x = 0 \\/ 103 <= x -> y"),
    ("States.v", "since (l ++ (0, 0) :: m)", "since (l ++ (1, 0) :: m)"),
    ("Totals.v", "Once => (length (at_edge e p) <= 1)%nat", "Once => (length (at_edge e p) <= 2)%nat"),
    ("Norms.v", "0 <= d < / 2 * ulp", "0 <= d <= / 2 * ulp"),
    ("Potential.v", "charged e \\/ amount a <= allowed e) ->", "charged e \\/ amount a <= allowed e + 1) ->"),
    ("Potential.v", "Rabs (m t) <= sum", "m t <= sum"),
    ("Cases.v", "(1 <= c <= S k)%nat -> allowed", "(1 <= c <= k)%nat -> allowed"),
    ("Situations.v", "known (S k) q x -> new (S k) q \\/ known k q x", "known (S k) q x -> True"),
    ("Endless.v", "at_length b (two 512) <= two 128 ->", "at_length b (two 512) <= two 400 ->"),
    ("Ends.v", "two 448 <= f (two 512) /\\ forall", "two 300 <= f (two 512) /\\ forall"),
    ("Kept.v", "(1 <= n <= t)%nat -> (forall u", "(n <= t)%nat -> (forall u"),
    ("Recall.v", "others * noise < low * (G w v - G u v)", "0 < low * (G w v - G u v)"),
    ("Rings.v", "(p + k =? t)%nat then w else 0) ->", "(p + k =? t)%nat then w else w) ->"),
    ("Rules.v", "score u - score t < weight", "score u - score t <= weight"),
    ("Matches.v", "(like j <= like i)%nat /\\ (like j = like i", "(like j = like i"),
    ("Perturbed.v", "* s + grown n * (INR (2 * n) - 1)", "* s + grown n * (INR (2 * n) - 2)"),
    (
        "Together.v",
        "Hypothesis same_step : forall q p a, merged q = merged p",
        "Hypothesis same_step : forall q p a, q = p",
    ),
    ("Alike.v", "on_edge e a <-> on_edge e (first a)", "on_edge e (first a) -> on_edge e a"),
    ("OpenLetters.v", "possible q r /\\ edge (place q) (r n) t", "possible q r /\\ edge (place q) (r n) (place q)"),
    ("Columns.v", "-> 0 <= snd p) -> x0 <= x <= x1", "-> snd p = snd p) -> x0 <= x <= x1"),
    ("Chunks.v", "130 * reach <= two (bits F + e) ->", "129 * reach <= two (bits F + e) ->"),
    ("Readout.v", "Theorem readout omega : noise <= omega", "Theorem readout omega : noise <= 2 * omega"),
]


@pytest.fixture(scope="module")
def built():
    """(the folder, what the build printed) of all lemmas. What Coq made of these very files, with this very Flocq, is
    kept: it takes far longer than all other tests of this file.
    """
    coqc = lambda asked: subprocess.run(["coqc", asked], capture_output=True, check=True, text=True).stdout.strip()
    content = hashlib.sha256(coqc("--version").encode())
    flocq = (Path(coqc("-where")) / "user-contrib" / "Flocq").rglob("*.vo")
    for path in sorted([*FOLDER.glob("*.v"), FOLDER / "_CoqProject", FOLDER / "build", *flocq]):
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    kept = ROOT / "build" / "lemmas-of-tests" / content.hexdigest()
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=kept.parent))
        run = subprocess.run([FOLDER / "build", folder], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
        if "skipped" in run.stdout:
            shutil.rmtree(folder)
            pytest.skip(run.stdout)
        (folder / "said.txt").write_text(run.stdout, "utf-8")
        with suppress(OSError):  # another process of this run has just put its own there
            folder.rename(kept)
    return kept, (kept / "said.txt").read_text("utf-8")


@WITHOUT_COQ
def test_they_build_and_rest_on_the_real_numbers_only(built):
    count = sum(len(theorems(path.read_text("utf-8"))) for path in files())
    assert f"{count} theorems; how many rest on which axiom" in built[1]


@WITHOUT_COQ
@pytest.mark.parametrize("name, right, wrong", WRONG, ids=lambda text: text[:24])
def test_a_wrong_statement_does_not_go_through(name, right, wrong, built, tmp_path):
    text = (FOLDER / name).read_text("utf-8")
    assert text.count(right) == 1
    for compiled in built[0].glob("*.vo"):
        shutil.copy(compiled, tmp_path)
    (tmp_path / name).write_text(text.replace(right, wrong), "utf-8")
    run = subprocess.run(
        ["coqc", "-q", "-R", ".", "Lemmas", name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1 and "Syntax error" not in run.stderr


@WITHOUT_COQ
def test_an_axiom_of_ones_own_is_refused(tmp_path):
    folder = tmp_path / "lemmas"
    folder.mkdir()
    shutil.copy(FOLDER / "build", folder)
    (folder / "_CoqProject").write_text("-R . Lemmas\nOwn.v\n", "utf-8")
    (folder / "Own.v").write_text("Axiom own : 1 = 2.\nTheorem sums : 1 = 2.\nProof. exact own. Qed.\n", "utf-8")
    run = subprocess.run([folder / "build", tmp_path / "built"], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "own : 1 = 2" in run.stdout
