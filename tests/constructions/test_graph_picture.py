"""Pictures of circuits: every stream once, constants and thresholds written out, one box for a source line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.patches import PathPatch, Rectangle

from compiler import Alphabet, Circuit, InputLanguage, Tokens, constant, latch
from constructions.pictures.circuit_boxes import boxes_of
from constructions.pictures.graph import circuit_figure, draw_circuit
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from examples.programs import two_brackets
from tests.circuits import CASES
from tests.constructions.reading import texts_of, unreadable

OPEN, CLOSED = ("(", "["), (")", "]")
BRACKETS = Alphabet.of(*OPEN, *CLOSED)


def matcher(depth: int) -> Circuit:
    """Whether some bracket has closed one of the other type: the type that is open at each depth is latched."""
    x = Tokens(BRACKETS)
    opens, closes = x.is_in(OPEN), x.is_in(CLOSED)
    level = (opens - closes).cumsum().named("level")
    square = x.is_in(("[", "]"))
    wrong = None
    for d in range(1, depth + 1):
        kind = latch(square, when=opens & (level == d)).named(f"type[{d}]")
        bad = closes & (level == d - 1) & (kind != square)
        wrong = bad if wrong is None else wrong | bad
    ever = wrong.cumsum().named("mismatches") >= 1
    edges = [(str(d), str(d + 1), OPEN) for d in range(depth)] + [(str(d + 1), str(d), CLOSED) for d in range(depth)]
    return Circuit("matcher", ever, InputLanguage.of(BRACKETS, "0", edges, 20, "brackets"))


def looped() -> Circuit:
    """Two lines that read each other in turn, so that one box for each would make a circle."""
    x = Tokens(BRACKETS).is_in(OPEN)
    for n in range(3):
        y = x + n
        x = y.relu().shift(1)
    return Circuit("loop", x, InputLanguage.everything(BRACKETS, 9))


CIRCUITS = {
    "mqar": lambda: MQAR(kappa=4, vocab=8).circuit(),
    "keep-nth": lambda: KeepNth(n=3, vocab=6).circuit(),
    "brackets": two_brackets.circuit,
    "matcher-2": lambda: matcher(2),
    "matcher-10": lambda: matcher(10),
    "loop": looped,
}


@pytest.mark.parametrize("name", CIRCUITS)
def test_a_circuit_can_be_read(name):
    circuit = CIRCUITS[name]()
    assert unreadable(circuit_figure(circuit)) == []
    boxes = boxes_of(circuit)
    drawn = [stream for box in boxes for row in box.rows for stream in row.streams]
    assert {id(s) for s in drawn} == {id(s) for s in circuit.streams}
    for box in boxes:
        assert all(row.streams[0].origin == box.title.split(" ")[0] for row in box.rows)
        assert all(boxes.index(source) < boxes.index(box) for source in box.sources)


def test_every_case_of_the_shared_list_can_be_read():
    found = {case.name: unreadable(circuit_figure(case.build())) for case in CASES[::6]}
    assert {name: said for name, said in found.items() if said} == {}


def test_a_hundred_nodes_stay_on_one_page():
    circuit = matcher(10)
    assert len(circuit.streams) >= 100
    width, height = circuit_figure(circuit).get_size_inches()
    assert width < 10 and height < 20
    said = texts_of(circuit_figure(circuit))
    rows = [text for text in said if " = " in text]
    assert sum("latch(" in row for row in rows) == 10 and sum(f"type[{d}] =" in " ".join(rows) for d in range(11)) == 10
    assert any("mismatches >= 1" in row for row in rows) and any("level == 10" in row for row in rows)
    (legend,) = (text for text in said if "construct show" in text)
    assert legend.startswith("%n")


def test_numbers_and_operands_are_written_out():
    said = " ".join(texts_of(circuit_figure(MQAR(kappa=4, vocab=8).circuit())))
    assert "u.key = (8*key.shift(1) + 160*key - 128).relu()" in said
    assert "memory[sum](value=u.value, key=u.key, query=u.key)" in said
    assert "latch(token, when=position <= 3)" in " ".join(texts_of(circuit_figure(KeepNth(n=3, vocab=6).circuit())))


def test_a_line_that_runs_again_has_a_box_each_time():
    titles = [box.title for box in boxes_of(looped())]
    repeated = [title for title in titles if re.fullmatch(r".*:\d+ \(\d\)", title)]
    assert len(repeated) == len(titles) - 1 >= 5


def test_no_line_crosses_a_box():
    figure = circuit_figure(matcher(10))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [p.get_bbox() for p in axes.patches if isinstance(p, Rectangle) and not p.get_fill()]
    lines = [p.get_path() for p in axes.patches if isinstance(p, PathPatch)]
    lines += [p._path_original for p in axes.patches if type(p).__name__ == "FancyArrowPatch"]
    assert len(boxes) == len(boxes_of(matcher(10))) and len(lines) > len(boxes)
    for line in lines:
        points = line.to_polygons(closed_only=False)[0]
        for box in boxes:
            inside = (
                (points[:, 0] > box.xmin + 1e-6)
                & (points[:, 0] < box.xmax - 1e-6)
                & (points[:, 1] > box.ymin + 1e-6)
                & (points[:, 1] < box.ymax - 1e-6)
            )
            assert not inside.any()


def test_more_streams_than_a_picture_shows(tmp_path: Path):
    with pytest.raises(ValueError, match="at most 200"):
        draw_circuit(matcher(30), tmp_path / "circuit.svg")


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_circuit_gives_the_same_file(tmp_path: Path, suffix: str):
    files = [tmp_path / f"{n}.{suffix}" for n in range(2)]
    for file in files:
        draw_circuit(two_brackets.circuit(), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_circuit_of_one_stream():
    only = Circuit("one", constant(3), InputLanguage.everything(BRACKETS, 3))
    assert unreadable(circuit_figure(only)) == []
