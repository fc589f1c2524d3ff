"""The least program that fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.language import Language, everything
from tests.fuzz.program import Node, Program
from tests.fuzz.words import WORDS

SIMPLER = (0, 1, 2)


def shrunk(program: Program, fails: Callable[[Program], bool], tries: int = 200) -> Program:
    """Simpler and simpler programs for which `fails` holds, until none is or the tries are spent."""
    best, again = program.trimmed(), True
    while again:
        again = False
        for candidate in simpler(best):
            tries -= 1
            if tries < 0:
                return best
            if _size(candidate) < _size(best) and fails(candidate):
                best, again = candidate, True
                break
    return best


def _size(program: Program) -> tuple:
    text = program.text()
    return len(program.nodes), len(program.outputs), len(text), text


def simpler(program: Program) -> Iterator[Program]:
    """Programs with an output, a line or an edge less, or a smaller parameter."""
    if len(program.outputs) > 1:
        yield from (replace(program, outputs=(i,)).trimmed() for i in program.outputs)
        yield from (
            replace(program, outputs=tuple(j for j in program.outputs if j != i)).trimmed() for i in program.outputs
        )
    for i in reversed(range(len(program.nodes))):
        same = [j for j in range(i) if program.nodes[j].kind == program.nodes[i].kind]
        yield from (_bypassed(program, i, j) for j in same)
    for output in program.outputs:
        yield from (replace(program, outputs=(i,)).trimmed() for i in program.nodes[output].inputs)
    if program.end is not None:
        yield replace(program, end=None)
    if program.max_d_state is not None:
        yield replace(program, max_d_state=None)
    language = program.language
    if not language.free:
        yield replace(program, language=Language(language.letters, everything(language.letters), language.max_length))
    for length in (1, 2, 3, 5, 12, 24):
        if length < language.max_length:
            yield replace(program, language=replace(language, max_length=length))
    for i, node in enumerate(program.nodes):
        for params in _simpler_params(node.params):
            kinds = [program.nodes[j].kind for j in node.inputs]
            kind = WORDS[node.word].gives(kinds, params)
            if kind.width == node.kind.width:
                yield replace(program, nodes=_with(program.nodes, i, Node(node.word, node.inputs, params, kind)))


def _bypassed(program: Program, old: int, new: int) -> Program:
    """What read one line reads another."""
    instead = lambda inputs: tuple(new if i == old else i for i in inputs)
    nodes = tuple(replace(node, inputs=instead(node.inputs)) for node in program.nodes)
    return replace(program, nodes=nodes, outputs=tuple(dict.fromkeys(instead(program.outputs)))).trimmed()


def _with(nodes: tuple[Node, ...], place: int, node: Node) -> tuple[Node, ...]:
    return (*nodes[:place], node, *nodes[place + 1 :])


def _simpler_params(params: dict) -> Iterator[dict]:
    for name, value in params.items():
        if name in ("width", "members", "alphabet", "rules", "lanes", "lane", "n"):
            continue
        if isinstance(value, dict):
            yield from (
                params | {name: {k: v for k, v in value.items() if k != key}} for key in value if len(value) > 1
            )
            yield from (
                params | {name: value | {key: v}} for key in value for v in SIMPLER if value[key] not in SIMPLER
            )
        elif isinstance(value, (list, tuple)) and not isinstance(value, str):
            if name == "kernel" and len(value) > 1:
                yield params | {name: value[:-1]}
            yield from (
                params | {name: type(value)([*value[:i], v, *value[i + 1 :]])}
                for i in range(len(value))
                for v in SIMPLER
                if not isinstance(value[i], (str, tuple)) and value[i] not in SIMPLER
            )
        elif not isinstance(value, (str, bool)) and hasattr(value, "__truediv__") and value not in SIMPLER:
            yield from (params | {name: v} for v in SIMPLER)
