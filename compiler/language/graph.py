"""A circuit as a graph: the order of its streams, and their operations by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from compiler.language import operations as ops
from compiler.language.stream import Stream, standing_for

_Operation = TypeVar("_Operation", bound=ops.Operation)


def operation_of(stream: Stream, kind: type[_Operation]) -> _Operation:
    """The operation of a stream that is known to be of this kind; TypeError for another."""
    if not isinstance(stream.operation, kind):
        raise TypeError(f"{stream.label} is computed by {stream.operation.symbol}, and not by {kind.__name__}")
    return stream.operation


def with_operation(streams: Iterable[Stream], kind: type[_Operation]) -> list[tuple[Stream, _Operation]]:
    """The streams whose operation is of this kind, each with it."""
    return [(stream, stream.operation) for stream in streams if isinstance(stream.operation, kind)]


def rebuilt(stream: Stream, inputs: Sequence[Stream], operation: ops.Operation | None = None) -> Stream:
    """The stream over these inputs, of its own or this operation, with its name and source line; itself where that is
    what it is.
    """
    operation = operation or stream.operation
    if operation is stream.operation and all(a is b for a, b in zip(inputs, stream.inputs, strict=True)):
        return stream
    with standing_for(stream):
        return Stream(operation, tuple(inputs), stream.name)


def inputs_first(streams: Sequence[Stream], read: Callable[[Stream], Iterable[Stream]]) -> list[Stream]:
    """The streams that are reached from these along `read`, each after all that it reads; without recursion."""
    order: list[Stream] = []
    seen: set[Stream] = set()
    stack = [(stream, False) for stream in reversed(streams)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in read(node))
    return order
