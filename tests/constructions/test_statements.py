"""What is printed as the statement of a circuit, and as the head of its bound, is of this very circuit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from compiler import compile
from compiler.artifact.card import compiled_from
from compiler.artifact.files import CARD, MANIFEST
from compiler.artifact.manifest import read_manifest
from compiler.artifact.package import bare_sizes
from constructions.automata.automaton import table_json
from constructions.automata.languages import NAMED
from constructions.construction import CircuitFamily, WithMemory
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.local_inputs import OwnLocalOnLetters
from constructions.papers import FREE_LUNCH, SELECTIVITY, TOKEN_SELECTION
from constructions.registry import families
from constructions.selectivity.mqar import MQAR
from tests.artifact.test_numbers import reseal
from tests.constructions.own_problems import named_on_the_page
from tests.constructions.test_construct import run

# Of each paper, the statements with sizes that can be read, and the mixers that they are about.
SIZED = {
    f"{SELECTIVITY}, Theorem 2": ("mamba",),
    f"{SELECTIVITY}, Theorem 3": ("mamba2",),
    f"{SELECTIVITY}, Theorem 4": ("s4d",),
    f"{SELECTIVITY}, Lemma 3": ("mamba-delta-t",),
    **{f"{FREE_LUNCH}, Theorem {number}": ("mamba",) for number in (2, 3, 4)},
}
MIXERS = {
    SELECTIVITY: ("mamba", "mamba2", "s4d", "mamba-delta-t"),
    FREE_LUNCH: ("mamba",),
    TOKEN_SELECTION: ("fnn+ssm",),
}
NUMBERED = r"(?:Theorem|Lemma|Corollary|Proposition) [\w.]+"
NEEDED = {"automaton": {"table": table_json(NAMED["tomita-4"].make())}}
HEADS = {"bound, our constants", "the paper's bound"}


def circuits() -> Iterator[CircuitFamily]:
    """Every registered construction with every choice of its options that it takes."""
    for family in families().values():
        hints = get_type_hints(family)
        axes = {f.name: hints[f.name] for f in fields(family) if f.name in hints}
        axes = {name: get_args(kind) or (False, True) for name, kind in axes.items() if _chosen(kind)}
        for choice in product(*axes.values()):
            try:
                yield family(**NEEDED.get(family.name, {}), **dict(zip(axes, choice, strict=True)))
            except ValueError:
                continue


def _chosen(kind: object) -> bool:
    return kind is bool or get_origin(kind) is Literal


def expected_head(source: str) -> str:
    """Whose the numbers are, by the words of the source alone."""
    return "bound, our constants" if "ours" in source else "the paper's bound"


def is_bare(statement: str) -> bool:
    """Whether it names a theorem as what is built, and not as what it is built after."""
    return re.fullmatch(rf".*, {NUMBERED}", statement) is not None and not re.search(
        r"\b(after|beside|beyond) ", statement
    )


def test_every_circuit_is_told_of() -> None:
    told = list(circuits())
    assert {type(c) for c in told} == set(families().values())
    assert {c.target for c in told} >= {"mamba", "mamba2", "s4d", "gated-deltanet", "mamba-delta-t", "fnn+ssm"}


def test_a_statement_with_sizes_is_named_bare_only_where_the_bound_is_of_it() -> None:
    for c in circuits():
        if c.statement() in SIZED:
            assert c.target in SIZED[c.statement()], c
            assert c.bound_source().startswith(c.statement().rsplit(", ", 1)[1] + ","), c


def test_a_bound_names_a_statement_and_stands_beside_its_numbers() -> None:
    """Of the paper's own mixers alone; nothing is told of what no paper states."""
    for c in circuits():
        if c.target != "fnn+ssm":
            assert bool(c.bound()) == bool(c.bound_source()), c
            named = re.match(rf"(?:after )?{NUMBERED},", c.bound_source())
            assert (named is not None) == bool(c.bound()) and not ("beyond the paper" in c.statement() and c.bound()), c


def test_a_bound_of_a_theorem_is_that_of_the_statement() -> None:
    for c in circuits():
        named = re.match(rf"(?:after )?({NUMBERED}),", c.bound_source())
        if named and c.target != "fnn+ssm":  # its report has sizes of its own, and no bound
            assert named[1] in c.statement(), c
            another_way = c.otherwise() != "" and not c.beyond()  # to what the theorem bounds
            its_own = is_bare(c.statement()) or another_way
            assert its_own == (not c.bound_source().startswith("after ")), c


def test_what_goes_beyond_a_paper_is_said_of_the_circuit() -> None:
    for c in circuits():
        paper = next((name for name in MIXERS if name in c.theorem), None)
        if is_bare(c.statement()) and paper and c.target != "fnn+ssm":
            assert c.target in MIXERS[paper], c
        if "beyond the paper" in c.bound_source() and c.target != "fnn+ssm":
            assert ", beyond the paper: " in c.statement(), c
        if "beyond the paper" in c.statement():
            assert ", after " in c.statement() or ", beside " in c.statement(), c


def test_the_worst_labels_that_were_printed() -> None:
    """Lemma 3 is of Mamba-Δᵀ; the paper has no Gated DeltaNet and no rule for what a key keeps."""
    told = {(c.name, c.target, getattr(c, "write", "")): c.statement() for c in circuits()}
    for arch in ("mamba", "mamba2", "gated-deltanet"):
        assert "after Lemma 3, beyond the paper: " in told["induction-heads", arch, ""]
    assert told["mqar", "gated-deltanet", "last"].endswith("beyond the paper: Gated DeltaNet, --write last")


def test_circuits_that_do_it_in_another_way_are_built_after_their_statement() -> None:
    """Places and time that a block counts, sums for decays, a skip, and networks whose sizes are ours."""
    told = {(c.name, c.target, getattr(c, "form", "")): c.statement() for c in circuits()}
    assert told["copy", "mamba", "string"].endswith("after Theorem 2, with places that a block counts")
    assert told["absolute-time", "mamba", ""].endswith("after Proposition 1, with a block that reads the count")
    assert told["keep-nth", "mamba", ""].endswith(", with the position of Proposition 1, by one step and not by two")
    assert "after Lemma 3, with a skip D" in told["induction-heads", "mamba-delta-t", ""]
    assert told["haar", "mamba", "steps"].endswith("after Theorem 1, by running sums (A = 0)")
    assert told["copy-vectors", "mamba", ""].startswith(f"{FREE_LUNCH}, after Theorem 2, with Δ divided out")
    assert told["keep-nth-position", "mamba", ""].endswith("after Corollary 2, by one step and not by two")
    assert told["fibonacci", "mamba", ""].endswith("after Theorem 4, with the last index kept from the prompt")
    for name in ("edit-distance", "lcs", "viterbi"):
        assert told[name, "mamba", ""].startswith(f"{FREE_LUNCH}, after Theorem 3, by rows")
    networks = [c.statement() for c in circuits() if c.target == "fnn+ssm"]
    assert networks and all(", after " in said or ", beside " in said for said in networks)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize(("n", "most"), [(8, 0), (8, 64), (8, 8), (8, 7), (300, 0)])
def test_two_digits_are_said_of_copies_whose_state_has_a_column_for_no_place(n: int, most: int, arch: str) -> None:
    """Against what is compiled: fewer columns than places."""
    copy = Copy(n=n, vocab=2, max_d_state=most, arch=arch)
    compiled = compile(copy.circuit(), arch, max_d_state=copy.columns())
    assert ("two digits" in copy.statement()) == (max(block.d_state for block in compiled.blocks) < n)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize(("kappa", "most"), [(8, 0), (8, 8), (8, 7), (8, 4), (4, 1)])
def test_two_digits_are_said_of_recalls_of_two_blocks(kappa: int, most: int, arch: str) -> None:
    """Against what is compiled: the theorems are of one block with a column for each key."""
    recall = MQAR(kappa=kappa, vocab=8, arch=arch, max_d_state=most)
    blocks = recall.compiled().blocks
    split = len(blocks) == 2 and max(block.d_state for block in blocks) < kappa
    assert split == (len(blocks) != 1)
    assert recall.statement().endswith(", with keys kept as two digits, in two blocks") == split
    assert ("N = κ" in recall.bound_source()) != split


@pytest.mark.parametrize(("kappa", "write"), [(4, "sum"), (4, "first"), (4, "last"), (1, "sum")])
def test_groups_are_said_of_recalls_whose_columns_are_dealt(kappa: int, write: str) -> None:
    """Against what is compiled: fewer columns in a group than there are keys."""
    recall = MQAR(kappa=kappa, vocab=4, write=write, arch="mamba2", n_groups=2)  # type: ignore[arg-type]
    most = max(size.d_state for size in bare_sizes(recall.compiled()))
    assert ("in 2 groups" in recall.statement()) == (2 * most == kappa)


@pytest.mark.parametrize("family", [f for f in families().values() if issubclass(f, WithMemory)])
def test_what_a_circuit_is_told_of_its_columns_is_said(family: type[CircuitFamily]) -> None:
    """Of every family whose options these are; earlier versions told it of none but recall and copying."""
    made = partial(family, **NEEDED.get(family.name, {}))
    if family in (MQAR, Copy):  # whose own words are held above
        plain, groups = made(n_groups=1), made(arch="mamba2", n_groups=2)
        assert "in 2 groups" in groups.statement() and "groups" not in plain.statement()
        return
    few, dealt = made(max_d_state=3), made(arch="mamba2", n_groups=2)
    plain = made()
    assert few.statement().endswith(", with at most 3 columns in a state") and "groups" not in few.statement()
    assert dealt.statement().endswith(", with columns in 2 groups")
    assert "columns" not in plain.statement() and few.recorded_statement(plain.statement()) == plain.statement()


def test_recall_is_built_after_the_theorem_of_its_mixer() -> None:
    """Unless it is said to go beyond the paper."""
    found = [
        (c.target, re.search(rf"{SELECTIVITY}, after (Theorem [234])(?!.* beyond)", c.statement())) for c in circuits()
    ]
    named = {(target, match[1]) for target, match in found if match}
    assert named == {("mamba", "Theorem 2"), ("mamba2", "Theorem 3"), ("s4d", "Theorem 4")}


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_letters_of_a_prompt_are_no_outputs(arch: str) -> None:
    """Paper B calls a program m-local where an output depends on the last m outputs alone."""
    loot = OwnLocalOnLetters(named_on_the_page("LOOT"), arch=arch)
    assert f"{FREE_LUNCH}, after Theorem 4, with letters of the prompt, " in loot.statement()
    assert (loot.bound(), loot.bound_source()) == ({}, "")


SAVED: dict[str, tuple[tuple[str, ...], str | None]] = {
    "none": (("induction-heads", "--vocab", "2", "--length", "8"), None),
    "order": (("mqar", "--kappa", "2", "--vocab", "2"), "bound, our constants"),
    "step": (("mqar", "--kappa", "2", "--vocab", "2", "--arch", "mamba2"), "the paper's bound"),
    "beyond": (("mqar", "--kappa", "2", "--vocab", "2", "--arch", "gated-deltanet", "--write", "last"), None),
    "no-size": (("keep-nth", "--n", "2", "--vocab", "2"), None),
    "numbers": (("absolute-time-position", "--horizon", "3"), None),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("saved")
    for name, (command, _) in SAVED.items():
        assert run(*command, "--samples", "4", "--no-certify", "--out", str(place / name)) == 0
    return place


@pytest.mark.parametrize("name", SAVED)
def test_card_inspect_and_report_say_the_same(name: str, saved: Path, tmp_path: Path, capsys) -> None:
    head, manifest = SAVED[name][1], read_manifest(saved / name)
    capsys.readouterr()
    family = families()[manifest.construction]
    circuit = family(**manifest.params)
    assert (manifest.theorem, manifest.bound_source) == (circuit.statement(), circuit.bound_source())
    assert (expected_head(manifest.bound_source) if manifest.bound else None) == head
    assert circuit.statement() in (saved / name / CARD).read_text().replace("\\", "")
    assert " a circuit of " not in compiled_from(vars(manifest))
    assert run("inspect", str(saved / name)) == 0
    shown = capsys.readouterr().out
    assert [h for h in HEADS if f" {h} " in shown] == [head] * (head is not None)
    words = " ".join(shown.split())
    assert ("bound: " in words) == (head is not None) and circuit.statement() in words
    assert head is None or f"bound: {circuit.bound_source()}" in words
    if name != "numbers":
        assert run("report", str(saved / name), "--out", str(tmp_path / "page.html")) == 0
        page = (tmp_path / "page.html").read_text()
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
        assert data["bounds"] == ({"head": head, "source": circuit.bound_source()} if head else None)
        assert data["theorem"] == circuit.statement()
    assert run("verify", str(saved / name), "--samples", "4") == 0


SPLIT = ("--kappa", "4", "--vocab", "2", "--max-d-state", "2")
FORMER = (
    (("absolute-time", "--horizon", "3"), f"{SELECTIVITY}, Proposition 1"),
    (("copy", "--n", "2", "--vocab", "2"), f"{FREE_LUNCH}, Theorem 2"),
    (
        ("copy", "--n", "2", "--vocab", "2", "--arch", "mamba2"),
        f"{FREE_LUNCH}, after Theorem 2, beyond the paper: Mamba-2",
    ),
    (("haar", "--levels", "1"), f"{SELECTIVITY}, Theorem 1"),
    (("mqar", *SPLIT), f"{SELECTIVITY}, after Theorem 2, with keys and queries on channels of their own"),
    (("mqar", *SPLIT, "--arch", "mamba2"), f"{SELECTIVITY}, after Theorem 3, step 1 of its proof"),
    (("mqar", "--kappa", "2", "--vocab", "2", "--arch", "s4d"), f"{SELECTIVITY}, Theorem 4"),
    (("copy-vectors", "--n", "2"), f"{FREE_LUNCH}, Theorem 2"),
    (("dp", "fibonacci", "--length", "2"), f"{FREE_LUNCH}, Theorem 4"),
    (("dp", "lcs", "--length", "1"), f"{FREE_LUNCH}, Theorem 3"),
)
FORMER_NAMES = ["time", "copy", "copy-mamba2", "haar", "digits", "digits-mamba2", "s4d", "vectors", "fibonacci", "lcs"]


@pytest.mark.parametrize(("command", "former"), FORMER, ids=FORMER_NAMES)
def test_a_manifest_that_does_not_say_how_it_is_done_verifies(
    command: tuple[str, ...], former: str, tmp_path: Path
) -> None:
    """As versions wrote it that had `bound_source`, and less behind a statement; any other word is refused."""
    place = tmp_path / "old"
    assert run(*command, "--samples", "4", "--out", str(place)) == 0
    for theorem, code in ((former, 0), (f"{former}, altogether", 1)):
        assert said_otherwise(place, "theorem", theorem) == code


def said_otherwise(place: Path, entry: str, words: str) -> int:
    """What `verify` ends with where a manifest has these words instead."""
    content = json.loads((place / MANIFEST).read_text())
    assert content[entry] != words
    (place / MANIFEST).write_text(json.dumps(content | {entry: words}))
    (place / CARD).unlink(missing_ok=True)
    reseal(place)
    return run("verify", str(place), "--samples", "4")


OURS = "none stated: ours, a latch for each token and bit of a value, N = 1"
TOLD_BEFORE = (
    (("induction-heads", "--vocab", "2", "--length", "8"), None, True),
    (("induction-heads", "--vocab", "2", "--length", "8"), OURS, True),
    (("induction-heads", "--vocab", "2", "--length", "8"), "Theorem 2, by hand", False),
    (("mqar", *SPLIT), "ours, with Theorem 2's N = κ: one-hot keys on channels of their own, d_inner = 2κ + p", True),
    (
        ("copy", "--n", "2", "--vocab", "2", "--arch", "mamba2"),
        "after Theorem 2, beyond the paper: Mamba-2, size O(N) for a sequence of N tokens; the constant is ours",
        True,
    ),
    (
        ("haar", "--levels", "1"),
        "Theorem 1, three bases for each of T − 1 wavelets; ours: three for the mean, channels for the signed sample "
        "and the constant",
        True,
    ),
)
BEFORE_NAMES = ["not recorded", "latches", "of no version", "digits", "beyond", "haar"]


@pytest.mark.parametrize(("command", "source", "known"), TOLD_BEFORE, ids=BEFORE_NAMES)
def test_a_bound_of_ours_that_an_older_manifest_has_is_not_shown(
    command: tuple[str, ...], source: str | None, known: bool, tmp_path: Path, capsys
) -> None:
    """It verifies, whatever numbers stand there, for nobody reads them. A bound said to be a paper's is compared."""
    place = tmp_path / "old"
    assert run(*command, "--samples", "4", "--out", str(place)) == 0
    content = json.loads((place / MANIFEST).read_text())
    content |= {"bound": {"d_state": 98765}, "bound_source": source}
    if source is None:
        del content["bound_source"]
    (place / MANIFEST).write_text(json.dumps(content))
    (place / CARD).unlink(missing_ok=True)
    reseal(place)
    for options in ((), ("--json",)):
        capsys.readouterr()
        assert run("inspect", str(place), *options) == 0
        assert bool(re.search(r"\b98765\b", capsys.readouterr().out)) == (not known)
    assert run("verify", str(place), "--samples", "4") == (0 if known else 1)
    if command[0] != "haar":
        assert run("report", str(place), "--out", str(tmp_path / "page.html")) == (0 if known else 1)
        assert not known or '"bound": 98765' not in (tmp_path / "page.html").read_text()


def test_an_order_that_is_told_where_columns_are_too_few_verifies(tmp_path: Path) -> None:
    """As earlier versions wrote it for every number of columns, and with no other number."""
    place, copy = tmp_path / "old", Copy(n=4, vocab=2, max_d_state=2)
    assert run("copy", "--n", "4", "--vocab", "2", "--max-d-state", "2", "--samples", "4", "--out", str(place)) == 0
    stated, source = copy.stated_bound()
    former = source.replace("at most a column", "a column")
    assert former != source
    for bound, words, code in ((stated, source, 0), (stated, former, 0), (stated | {"d_state": 3}, former, 1)):
        content = json.loads((place / MANIFEST).read_text())
        (place / MANIFEST).write_text(json.dumps(content | {"bound": bound, "bound_source": words}))
        (place / CARD).unlink(missing_ok=True)
        reseal(place)
        assert run("verify", str(place), "--samples", "4") == code


@pytest.mark.parametrize("entry, value", [("bound_source", "Theorem 2, by hand"), ("theorem", "Theorem 0")])
def test_another_source_or_statement_is_found(entry: str, value: str, saved: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(saved / "order", tmp_path / "other")
    content = json.loads((tmp_path / "other" / MANIFEST).read_text())
    content[entry] = value
    (tmp_path / "other" / MANIFEST).write_text(json.dumps(content))
    reseal(tmp_path / "other")
    assert run("verify", str(tmp_path / "other"), "--samples", "4") == 1
    assert "is not what its circuit compiles to" in capsys.readouterr().err
