"""The example of a model card: an input on which the construction's own task asks something, and the right answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.artifact.numbers_config import POSITION
from verify.tasks.example import Example, NumberExample, example_of, number_example_of

if TYPE_CHECKING:
    from constructions.checkpoints.built import Built

_LONGEST_TEXT = 8192
_MOST_LISTED = 16  # outputs that are listed; of more, only the largest one


def shown_example(built: Built) -> tuple[str, str] | None:
    """(input, right answer) as the card of this construction shows them; None where no task asks anything.

    Over tokens: words with spaces between. Over numbers: Python text of the inputs, and what `run` gives at the last
    position.
    """
    return _over_numbers(built) if built.over_numbers else _over_tokens(built)


def _over_tokens(built: Built) -> tuple[str, str] | None:
    language = built.compiled.source.token_language

    def good(example: Example) -> bool:
        """Within the promise; and answered rightly, of a construction that promises only most answers."""
        if not language.accepts(example.prompt):
            return False
        if built.construction.promise() != "random":
            return True
        whole = np.array([[*example.prompt, *example.answer[:-1]]])
        scores = built.compiled.interpret(whole)[0, len(example.prompt) - 1 :]
        return scores.argmax(axis=-1).tolist() == list(example.answer)

    for task in built.construction.tasks():
        example = example_of(task, good)
        if example is not None:
            said = tuple(language.alphabet.decode(ids) for ids in (example.prompt, example.answer))
            return said if sum(map(len, said)) <= _LONGEST_TEXT else None
    return None


def _over_numbers(built: Built) -> tuple[str, str] | None:
    for task in built.construction.tasks():
        example = number_example_of(task)
        if example is not None:
            named = {name: v for name, v in example.inputs.items() if name != POSITION} or example.inputs
            inputs = ", ".join(f'"{name}": {_array(v)}' for name, v in named.items())
            return ("{" + inputs + "}", _outputs(example)) if len(inputs) <= _LONGEST_TEXT else None
    return None


def _array(values: np.ndarray) -> str:
    """Python text of an array (1, positions, width)."""
    rows = values[0]
    if rows.shape[1] > 1 and ((rows == 0) | (rows == 1)).all() and (rows.sum(axis=1) == 1).all():
        return f"np.eye({rows.shape[1]})[[{rows.argmax(axis=1).tolist()}]]"
    numbers = ", ".join(_number(v) for v in rows.ravel().tolist())
    return f"np.float32([{numbers}]).reshape(1, {rows.shape[0]}, {rows.shape[1]})"


def _number(value: float) -> str:
    """The shortest text that float32 reads as this float32 number."""
    return str(int(value)) if float(value).is_integer() else str(np.float32(value))


def _outputs(example: NumberExample) -> str:
    expected = example.expected
    if len(expected) <= _MOST_LISTED:
        return "[" + ", ".join(f"{value:.6g}" for value in expected.tolist()) + "]"
    return f"the largest is output {int(expected.argmax())}, {expected.max():.6g}"
