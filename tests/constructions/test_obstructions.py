"""What any exact model needs, in the reports of real mixers: bounds counted again, and what real modules hold."""

import json
from math import ceil, log2

import pytest
from typer.testing import CliRunner

from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import sealed
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction

BITS = {
    "recall": (lambda arch: AssociativeRecall(5, 4, 6, arch=arch), 5 * log2(4)),
    "unique induction": (lambda arch: UniqueInduction(4, 9, arch=arch), log2(6)),  # three tokens in 3! orders
    "selection": (lambda arch: TokenSelection("angle", 4, 2, 5, arch=arch), 4 * log2(2)),
    "copy by places": (lambda arch: Copy(n=5, vocab=4, arch=arch), 5 * log2(4)),
    "copy by n-grams": (lambda arch: CopyNgram(3, 4, 5, arch=arch), 5 * log2(4) + log2(1 - 25 / 64 / 2)),
    "selective copy": (lambda arch: SelectiveCopy(n=3, vocab=8, length=5, arch=arch), 3 * log2(8)),
}


def numbers_of(module, size) -> int:
    """Of the state that a real module carries from step to step, by its own tensors; size: of what is in use."""
    convolved = size.d_inner if hasattr(module, "x_proj") else size.d_inner + 2 * size.d_state
    return size.d_inner * size.d_state + convolved * (module.conv1d.weight.shape[-1] - 1)


@pytest.mark.parametrize("arch", ["mamba", "mamba2", "s4d"])
@pytest.mark.parametrize("name", BITS)
def test_reports_of_real_mixers_name_the_bounds(name, arch):
    make, bits = BITS[name]
    built = build(make(arch))
    told = artifact.report(built, {}, None)
    found, has = built.construction.obstructions(artifact.capacity(built.compiled)), artifact.capacity(built.compiled)
    assert told["obstructions"] == [str(one) for one in found] and all(one.kept for one in found)
    information = found[0]
    assert information.least == pytest.approx(bits)
    sizes = artifact.bare_sizes(built.compiled)
    modules = list(built.bare_stack().blocks)
    assert has.numbers == sum(map(numbers_of, modules, sizes)) and information.built == 32 * has.numbers
    widest, columns = max(s.d_inner for s in sizes), max(s.d_state for s in sizes)
    rank = [one for one in found if one.kind == "rank"]
    if rank:
        assert rank[0].channels == ceil(rank[0].least / columns - 1e-9)
    delays = [one for one in found if one.kind == "delay"]
    assert len(delays) == name.startswith(("copy by places", "selective")) and not any(d.channels for d in delays)
    needed = information.channels
    begins, ends = f"any exact solution needs D ≥ {needed}", f"; built {widest}"
    kinds = [f", one {one.given} D ≥ {one.channels}" for one in found[1:] if one.channels > needed]
    assert told["needed"] == begins + "".join(kinds) + ends
    assert 1 <= needed <= widest


def test_the_bound_of_a_mamba_grows_with_the_bits_and_shrinks_with_the_state():
    """Too few channels are below the bound: a hundred thousand words of sixteen bits in two blocks."""
    construction = Copy(n=10_000, vocab=1 << 16)
    for states, least in ((4, ceil(160_000 / 256)), (64, ceil(160_000 / 4096))):
        has = artifact.obstructions.Capacity(5, 2, 2 * 5 * states, states)
        information, delay = construction.obstructions(has)
        assert information.channels == least and not information.kept
        assert str(delay) == "delay: 9999 states of a filter at least where there is one, built none"


def test_commands_cards_and_checkpoints_tell_them(tmp_path):
    out = tmp_path / "recall"
    words = ["recall", "--keys", "2", "--values", "2", "--pairs", "2", "--out", str(out), "--no-certify"]
    done = CliRunner().invoke(app, [*words, "--samples", "8", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert told["needed"] == "any exact solution needs D ≥ 1; built 5"
    assert [line.split(":")[0] for line in told["obstructions"]] == ["information", "rank"]
    card = (out / "README.md").read_text("utf-8")
    assert "Any exact solution needs D ≥ 1; built 5.\n" in card
    assert all(f"- {line}" in card for line in told["obstructions"])
    shown = CliRunner().invoke(app, ["inspect", str(out)])
    assert "any exact solution needs D ≥ 1" in shown.output
    assert CliRunner().invoke(app, ["verify", str(out), "--samples", "8"]).exit_code == 0


EARLIER = "any exact solution needs D ≥ 1; built 5; the paper's bound is poly-logarithmic, without constants"


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ({"needed": None, "obstructions": None}, 0),
        ({"needed": "none"}, 1),
        ({"needed": EARLIER}, 0),
        ({"needed": EARLIER.replace("5", "6")}, 1),
    ],
)
def test_an_edited_bound_is_found_and_an_older_checkpoint_has_none(tmp_path, edit, code):
    out = tmp_path / "recall"
    artifact.save(build(AssociativeRecall(2, 2, 2)), {}, out)
    path = out / "construction.json"
    content = {k: v for k, v in (json.loads(path.read_text("utf-8")) | edit).items() if v is not None}
    path.write_text(canonical_json(sealed(content, out)), "utf-8")
    done = CliRunner().invoke(app, ["verify", str(out), "--samples", "8"])
    assert done.exit_code == code, done.output


BEHIND = (  # what earlier versions wrote behind it
    "the paper's bound, with our constants, is d_state ≤ 2, state ≤ 4",
    "the paper's bound is d_state ≤ 2, state ≤ 4 (built above: in use 12)",
    "our bound is d_state ≤ 2",
)


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize(("least", "code"), [(1, 0), (2, 1)])
def test_a_bound_that_an_older_checkpoint_repeats_is_shown_no_more(tmp_path, capsys, behind, least, code):
    """It verifies, for whatever stands there is read by nobody; one that says another need does not."""
    out = tmp_path / "copy"
    artifact.save(build(Copy(n=2, vocab=2)), {}, out)
    path = out / "construction.json"
    content = json.loads(path.read_text("utf-8"))
    needed = content["needed"]
    assert needed.startswith("any exact solution needs D ≥ 1; built ")
    content["needed"] = f"{needed.replace('≥ 1', f'≥ {least}')}; {behind}"
    path.write_text(canonical_json(sealed(content, out)), "utf-8")
    for options, read in (((), str), (("--json",), lambda told: json.loads(told)["needed"])):
        told = read(CliRunner().invoke(app, ["inspect", str(out), *options]).output)
        assert f"D ≥ {least}; built " in told and "bound is " not in told and "our constants, is" not in told
    assert CliRunner().invoke(app, ["verify", str(out), "--samples", "8"]).exit_code == code
