"""The model card: README.md of a checkpoint, as Hugging Face shows it. The same text for the same checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler.artifact.config import kernel_warnings
from compiler.artifact.files import MANIFEST
from compiler.artifact.manifest import is_own
from compiler.artifact.numbers_config import is_numbers
from compiler.artifact.records import right_answers, uncounted, without_bound
from compiler.digits import at_least, at_most
from compiler.language.arguments import counted
from compiler.language.input_language import length_said
from compiler.language.language_said import language_said, unchecked_words
from compiler.language.markdown import code, one_line, prose
from compiler.targets import family_of

_IN_USE = "*In use* is what the circuit needs; the *language model* is what is saved, with norms and padding"
_POSITION = "\nAn input called `position` may be left out: it counts by itself.\n"
_FRONT = """---
library_name: transformers
pipeline_tag: text-generation
tags:
- {tag}
- compiled-circuit
---
"""


def model_card(
    manifest: Mapping[str, Any],
    config: Mapping[str, Any],
    letters: Sequence[str],
    example: str,
    answer: str | None = None,
) -> str:
    """The text of README.md for a manifest before it is sealed; `example`: a short input of the circuit's language,
    `answer`: what is right behind it.
    """
    if is_numbers(config):
        return numbers_card(manifest, config, example, answer)
    front = _FRONT.format(tag=_mixer(manifest).lower().replace(" ", "-"))
    parts = [
        front + f"\n# {prose(manifest['circuit'])}",
        origin(manifest),
        _promise(manifest, letters),
        _sizes(manifest),
    ]
    return "\n\n".join([*parts, _snippet(config, example, answer), _warnings(manifest, config)]) + "\n"


def error_lines(promise: Mapping[str, Any]) -> list[str]:
    """How far outputs may be from the circuit's, for inputs of each size that the promise names."""
    sizes = lambda reach: f"real inputs of at most {at_least(reach)}" if reach else "all inputs"
    return [
        f"{sizes(bound['inputs'])}: every output is within {at_most(bound['error'])} of the circuit's"
        for bound in promise.get("error_bounds", [])
    ]


def numbers_card(manifest: Mapping[str, Any], config: Mapping[str, Any], example: str, answer: str | None) -> str:
    """The card of a model over numbers, which no library loads but this one."""
    promise, sizes = manifest["promise"], manifest["sizes"]
    inputs = prose(promise["description"])
    rows = "\n".join(f"| {name} | {sizes[name]} |" for name in ("d_model", "d_inner", "d_state", "layers"))
    exact = promise["level"] == "bit-exact"
    near = ["Every output equals the circuit's bit for bit."] if exact else []
    near += [f"{line[0].upper()}{line[1:]}." for line in error_lines(promise)]
    guarantee = manifest.get("guarantee")
    answers = f"\n\nAnswers right: {_right(manifest)}. Proof: {guarantee['proof']}." if guarantee else ""
    warnings = ["Weights are frozen: a training step of any size can destroy the circuit."]
    warnings += kernel_warnings(manifest["cuda_limits"])
    return f"""---
tags:
- mamba
- compiled-circuit
---

# {prose(manifest["circuit"])}

{origin(manifest)}

## Promise

Inputs, in {promise["dtype"]}: {inputs}; up to {promise["length"]} positions. Beyond that nothing is
promised. {" ".join(near) or "The outputs are within rounding; no bound is known."}{answers}

`construct verify DIRECTORY` compares every file but this one with what the circuit compiles to, and runs it.

## Sizes

| | |
| --- | --- |
{rows}

{sizes["parameters"]:,} parameters.

## Use

```python
import numpy as np

import compiler

model = compiler.load("DIRECTORY")
model.run({example})  # (batch, positions, width) of each input; gives (batch, positions, {config["outputs"]})
```
{_right_outputs(answer)}{_POSITION if any(each["name"] == "position" for each in config["inputs"]) else ""}
## Warnings

""" + "".join(f"- {line}\n" for line in warnings)


def origin(manifest: Mapping[str, Any]) -> str:
    """Where the weights come from, and where more of it stands."""
    return (
        f"{compiled_from(manifest)} "
        "`circuit.json` holds the circuit, `construction.json` the promise, the names in the weights and the hashes."
    )


def compiled_from(manifest: Mapping[str, Any]) -> str:
    """Where the weights come from, and which statement is built or built after."""
    written = " written as a program" if is_own(manifest) else ""
    built = "" if is_own(manifest) else f" What is built: {one_line(manifest['theorem'])}."
    compiled = f"a circuit{written} was compiled to exact weights of a real {_mixer(manifest)} model."
    return f"No weight here was trained: {compiled}{built}"


def _mixer(manifest: Mapping[str, Any]) -> str:
    """What the mixers of the model are called; Mamba-2, S4D and Mamba-Δᵀ go by the first."""
    return "Gated DeltaNet" if str(manifest["arch"]).startswith("gated-deltanet") else "Mamba"


def _promise(manifest: Mapping[str, Any], letters: Sequence[str]) -> str:
    compares = (
        "`construct verify DIRECTORY` compares every file that a program reads with what the circuit compiles to. This "
        "one is for people, and is not compared."
    )
    return f"## Promise\n\n{promise_sentences(manifest, letters)}\n\n{compares}"


def promise_sentences(manifest: Mapping[str, Any], letters: Sequence[str], file: str = MANIFEST) -> str:
    """The promise of a language model, in words, as one or two paragraphs. letters: of its alphabet, by id; file: which
    states the input language.
    """
    promise = manifest["promise"]
    bound = promise.get("error_bound")
    near = "is within rounding" if bound is None else f"is within {at_most(bound)} of the circuit's score"
    exact = "equals the circuit's score bit for bit" if promise["level"] == "bit-exact" else near
    stop = f"A generation ends with {code(promise['stop'])}." if promise["stop"] else "No token ends a generation."
    beyond = "" if promise["length"] is None else " Beyond that nothing is promised."
    said = f"In {promise['dtype']}, every score {exact} on {_inputs(manifest, letters, file)}.{beyond} {stop}"
    guarantee = manifest.get("guarantee")
    if guarantee:
        asks = (guarantee["certificate"] or {}).get("asks")
        task = f" The task: {_with_letters(asks, letters)}." if asks else ""
        return (
            f"{said}\n\nAnswers right: {_right(manifest)}.{task} Proof: {_with_letters(guarantee['proof'], letters)}."
        )
    return f"{said}{_answers(manifest, file)}"


def _right(manifest: Mapping[str, Any]) -> str:
    return right_answers(manifest["guarantee"], manifest.get("verification"))


def _with_letters(said: str, letters: Sequence[str]) -> str:
    """What is said of letters, which stand between backticks: as it is, unless one of them holds a backtick itself."""
    return prose(said) if any("`" in letter for letter in letters) else one_line(said)


def _inputs(manifest: Mapping[str, Any], letters: Sequence[str], file: str) -> str:
    """The inputs: of a circuit of one's own by what its automaton says, for its description is free text."""
    promise = manifest["promise"]
    if not is_own(manifest):
        return f"{one_line(promise['description'])}, {length_said(promise['length'])}"
    called = prose(unchecked_words(promise["description"]))
    return f"the input language of `{file}`: {language_said(promise, letters)}; {called}"


def _answers(manifest: Mapping[str, Any], file: str) -> str:
    """Against what the answers of a circuit of one's own are tested: in the checkpoint, for exports have no answers."""
    answers = manifest.get("answers")
    if not answers:
        return ""
    says = f" ({prose(answers['says'].rstrip('.'))})" if answers["says"] else ""
    where, held = ("DIRECTORY", "") if file == MANIFEST else ("CHECKPOINT", " of the checkpoint")
    proved = f" The manifest{held} states the task for `construct prove {where}`, too." * ("task" in manifest)
    return (
        f"\n\nIts answers are tested against the author's function {code(answers['function'])}{says}: "
        f"{counted(answers['questions'], 'question')} in {counted(answers['sequences'], 'sequence')} "
        f"(`answers.json`{held}), which `construct verify {where}` asks again.{proved}"
    )


def _sizes(manifest: Mapping[str, Any]) -> str:
    sizes = manifest["sizes"]
    rows = ["| | in use | language model |", "| --- | --- | --- |"]
    used = {name: max(block[name] for block in sizes["blocks"]) for name in ("d_model", "d_inner", "d_state")}
    rows += [f"| {name} | {used[name]} | {sizes['packaged'][name]} |" for name in used]
    rows += [f"| layers | {sizes['layers']} | {sizes['packaged']['layers']} |"]
    least = without_bound(manifest.get("needed", ""))
    needed = ["", f"{least[0].upper()}{least[1:]}."] if least else []
    bounds = ["", *(f"- {sentence}" for sentence in manifest.get("obstructions", []))] if needed else []
    words = f"{sizes['parameters']:,} parameters. {_IN_USE}{uncounted(manifest['arch'])}."
    return "\n".join(["## Sizes", "", *rows, "", words, *needed, *bounds])


def _right_outputs(answer: str | None) -> str:
    return f"\nRight at the last position: {answer}.\n" if answer else ""


def _right_text(example: str, answer: str | None) -> str:
    """What is right behind the example, as its task says; several tokens are what a generation writes."""
    if not answer:
        return ""
    if " " not in answer:
        return f"\n\nThe right answer is {code(answer)}."
    written = code(f'construct generate DIRECTORY --prompt "{example}"')
    return f"\n\nThe right continuation is {code(answer)}: {written} writes it."


def _snippet(config: Mapping[str, Any], example: str, answer: str | None) -> str:
    first = f"  # {answer.split()[0]!r}" if answer else ""
    return f"""## Use

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("DIRECTORY", dtype="{config["dtype"]}")
names = AutoTokenizer.from_pretrained("DIRECTORY")
ids = names({example!r}, return_tensors="pt").input_ids
names.decode(model(ids).logits[0, -1].argmax()){first}
```{_right_text(example, answer)}"""


def _warnings(manifest: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    dtype = config["dtype"]
    lines = [
        f"Load it in {dtype}. The weights are exact there; another dtype rounds them, and float16 overflows on weights "
        "made for float32: the scores are then not finite and the tokens wrong.",
        (
            "Put no token in front of the input. There is no beginning-of-text token; "
            "circuits count positions and look back."
        ),
        "Pad on the left and pass the attention mask, as the tokenizer does.",
        "Words that are not in the vocabulary become `<unk>`, for which nothing is promised.",
        "A prompt for the text-generation pipeline should end with a space, for it glues the new words to it.",
        "Weights are frozen: a training step of any size can destroy the circuit.",
        "`save_pretrained` writes weights, config and tokenizer, not `construction.json` and `circuit.json`: "
        "`construct adopt NEW --original DIRECTORY` brings them back where nothing else changed.",
    ]
    lines += family_of(config["model_type"]).cautions(config)
    lines += kernel_warnings(manifest["cuda_limits"])
    return "\n".join(["## Warnings", "", *(f"- {line}" for line in lines)])
