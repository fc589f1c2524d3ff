"""The circuit of a model as a picture: streams in columns, inputs to the left of their readers."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text

from compiler.language.circuit import Circuit
from compiler.language.operations.traits import Sees
from compiler.language.stream import Stream

MOST_STREAMS = 200
_WIDTH, _HEIGHT = 2.1, 0.8  # inches for a column and for a row
_FILL = {"input": "#cfe3f5", "the past": "#f9d9b4", "this position": "#f2f2f2", "output": "#cdebcf"}
_SWEEPS = 8  # passes that pull each stream towards its neighbours; more change nothing in the circuits we have


def draw_circuit(circuit: Circuit, path: str | Path) -> None:
    """One box for each stream: its name, what it does and its width; coloured by what it looks at.

    ValueError for a circuit of more streams than a picture can show.
    """
    if len(circuit.streams) > MOST_STREAMS:
        raise ValueError(f"the circuit has {len(circuit.streams)} streams, and a picture shows at most {MOST_STREAMS}.")
    columns = _ordered(_columns(circuit))
    rows = max(map(len, columns))
    figure = Figure(figsize=(_WIDTH * len(columns) + 0.4, _HEIGHT * rows + 1.1), layout="constrained")
    axes = figure.add_subplot()
    place = {s: (x, _row(y, len(column), rows)) for x, column in enumerate(columns) for y, s in enumerate(column)}
    box = {stream: _box(axes, place[stream], stream, _kind(stream, circuit)) for stream in circuit.streams}
    for stream in circuit.streams:
        for source in dict.fromkeys(stream.inputs):
            _arrow(axes, box[source], box[stream])
    axes.set_xlim(-0.55, len(columns) - 0.45)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.axis("off")
    axes.set_title(f"{circuit.name}: the circuit as written", fontsize=11)
    kinds = dict.fromkeys(_kind(stream, circuit) for stream in circuit.streams)
    patches = [Patch(facecolor=_FILL[kind], edgecolor="black", linewidth=0.6, label=kind) for kind in kinds]
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=4, fontsize=8, frameon=False)
    figure.draw_without_rendering()  # arrows end at boxes, whose sizes are known from here on
    figure.savefig(path, dpi=110, metadata={"Date": None} if Path(path).suffix == ".svg" else None)


def _columns(circuit: Circuit) -> list[list[Stream]]:
    """Streams by the length of the longest way to them; a source stands just before its first reader."""
    rank: dict[Stream, int] = {}
    for stream in circuit.streams:
        rank[stream] = 1 + max((rank[source] for source in stream.inputs), default=-1)
    for stream in reversed(circuit.streams):
        readers = [rank[reader] for reader in circuit.graph.successors(stream)]
        if not stream.inputs and readers:
            rank[stream] = min(readers) - 1
    columns: list[list[Stream]] = [[] for _ in range(max(rank.values()) + 1)]
    for stream in circuit.streams:
        columns[rank[stream]].append(stream)
    return columns


def _ordered(columns: list[list[Stream]]) -> list[list[Stream]]:
    """The same columns, each sorted by the mean height of its streams' neighbours, so that few arrows cross."""
    near: dict[Stream, list[Stream]] = {stream: list(stream.inputs) for column in columns for stream in column}
    for stream in list(near):
        for source in stream.inputs:
            near[source].append(stream)
    for _ in range(_SWEEPS):
        height = {s: _row(y, len(column), 1) for column in columns for y, s in enumerate(column)}
        for column in columns:
            column.sort(key=lambda s: sum(height[n] for n in near[s]) / max(1, len(near[s])))
            height.update({s: _row(y, len(column), 1) for y, s in enumerate(column)})
    return columns


def _row(y: int, count: int, rows: int) -> float:
    """The height of one of `count` streams, centred in `rows` rows."""
    return y + (rows - count) / 2


def _kind(stream: Stream, circuit: Circuit) -> str:
    if stream is circuit.output:
        return "output"
    if not stream.inputs:
        return "input"
    return "the past" if stream.operation.sees is Sees.PAST or _is_shift(stream) else "this position"


def _is_shift(stream: Stream) -> bool:
    return type(stream.operation).__name__ == "Shift"


def _box(axes: Axes, at: tuple[float, float], stream: Stream, kind: str) -> Text:
    name, does = stream.name, type(stream.operation).__name__
    lines = [shorten(name, 24, placeholder="…")] if name else []
    lines += [shorten(f"{does} · {stream.width}", 26, placeholder="…")]
    box = {"boxstyle": "round,pad=0.35", "facecolor": _FILL[kind], "edgecolor": "black", "linewidth": 0.6}
    return axes.text(*at, "\n".join(lines), ha="center", va="center", fontsize=8, bbox=box, zorder=2)


def _arrow(axes: Axes, source: Text, reader: Text) -> None:
    """From box to box; over several columns a bow, so that it does not run through what stands between."""
    start, end = source.get_position(), reader.get_position()
    bow = 0.0 if end[0] - start[0] < 1.5 else 0.18
    style = {"arrowstyle": "-|>", "linewidth": 0.8, "color": "#555555", "shrinkA": 1, "shrinkB": 1}
    style |= {"patchA": source.get_bbox_patch(), "patchB": reader.get_bbox_patch()}
    style["connectionstyle"] = f"arc3,rad={bow}"
    axes.annotate("", xy=end, xytext=start, arrowprops=style, zorder=1)
