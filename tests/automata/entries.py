"""Change one entry of a Gated DeltaNet's config.json: python -m tests.automata.entries

A parity of OLMo Hybrid and a memory of Qwen3.5 are proved as they are. Each of their entries gets other values, entries
are left out, and entries of the library that were not there are added. The checker must reject that, or transformers
must open the directory and answer as a few lines of Python do, in the dtype of the promise. Exit code 1 where not.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from compiler import Circuit
from tests.automata.lengths import LETTERS, Answer, cases
from tests.verify.checker.checkpoints import write
from verify.checker.check import check

CHECKPOINTS = {"parity": "gated-deltanet", "deletion, gated-deltanet-qwen": "gated-deltanet-qwen"}
ABSENT = object()
ANY = (0, 1, -1, 2, 3, 8, 1 << 20, 0.5, 1e-30, 1.0, True, False, None, "", "float16", "relu", [], {})
ADDED: dict[str, tuple[Any, ...]] = {
    "tie_encoder_decoder": (True,),
    "attn_implementation": ("eager", "nonsense"),
    "auto_map": ({"AutoModelForCausalLM": "own.Model"},),
    "quantization_config": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {}),
    "rope_parameters": (None, {}, {"rope_type": "default", "rope_theta": 0.0}, {"rope_type": "yarn", "factor": 4.0}),
    "rope_theta": (0.0, 5e5),
    "partial_rotary_factor": (0.0, 1.0),
    "full_attention_interval": (1, 4),
    "sliding_window": (1,),
    "torch_dtype": ("float16", "bfloat16"),
    "num_experts": (4,),
    "linear_allow_neg_eigval": (False, 1, "True"),
    "linear_a_log_min": (1.0,),
    "linear_dt_min": (0.0,),
    "initializer_range": (5.0, 0.02),
    "output_hidden_states": (True,),
    "return_dict": (False,),
    "is_encoder_decoder": (True,),
    "chunk_size_feed_forward": (1,),
    "text_config": ({}, {"hidden_size": 8}),
    "problem_type": ("regression",),
    "pruned_heads": ({"0": [0]},),
}


def changes(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(what was changed, the config with it)."""
    for key, held in config.items():
        yield f"{key} left out", {k: v for k, v in config.items() if k != key}
        own: list[Any] = [*ANY]
        if type(held) is int:
            own += [held + 1, held - 1, 2 * held, float(held), str(held)]
        elif type(held) is float:
            own += [held / 2, held * 100, 1e-46, 1e-39, str(held)]  # 0 in float32, and denormal
        elif isinstance(held, list):
            own += [held[::-1], held + held[:1], held[:-1], [held[0]] * len(held), [*held[:-1], "sliding_attention"]]
        for value in own:
            if type(value) is not type(held) or value != held:
                yield f"{key} = {value!r}", config | {key: value}
    for key, values in ADDED.items():
        for value in values:
            if config.get(key, ABSENT) != value:
                yield f"{key} = {value!r} added", config | {key: value}


def circuit_of(name: str) -> tuple[Circuit, Answer, list[str]]:
    """The circuit, what is right, and its letters."""
    case = cases()[name]("float32")
    letters = case.compiled.source.token_alphabet.tokens
    return case.compiled.source, case.answers, [t for t in letters if t not in ("yes", "no")]


def answered_wrong(directory: Path, letters: list[str], places: dict[str, int], answers: Answer) -> str | None:
    """What transformers gets wrong, or why it opens nothing; None where all is right."""
    rng = random.Random(0)
    words = [rng.choices(letters, k=70) for _ in range(2)]
    try:
        model = AutoModelForCausalLM.from_pretrained(directory)
        with torch.no_grad():
            said = model(torch.tensor([[places[w] for w in word] for word in words])).logits.argmax(-1).tolist()
    except Exception as reason:  # whatever a config makes the library raise
        return f"is not opened: {type(reason).__name__}: {str(reason).splitlines()[0]:.100}"
    for word, row in zip(words, said, strict=True):
        for at, (wanted, found) in enumerate(zip(answers(word), row, strict=True)):
            if wanted is not None and places[wanted] != found:
                return f"answers {found} at {at}, and {wanted} is right"
    return None


def attacked(name: str, scratch: Path) -> Iterator[tuple[str, bool, str | None]]:
    """(what was changed, whether it is proved, what is wrong of what is proved)."""
    circuit, answers, letters = circuit_of(name)
    places = {token: i for i, token in enumerate(circuit.token_alphabet.tokens)}
    directory = write(scratch / "checkpoint", circuit, CHECKPOINTS[name])
    config = json.loads((directory / "config.json").read_text())
    assert check(directory).accepted and answered_wrong(directory, letters, places, answers) is None
    for said, changed in changes(config):
        (directory / "config.json").write_text(json.dumps(changed))
        proved = check(directory).accepted
        yield said, proved, answered_wrong(directory, letters, places, answers) if proved else None
    shutil.rmtree(directory)


def main() -> int:
    wrong = 0
    for name in CHECKPOINTS:
        with tempfile.TemporaryDirectory() as scratch:
            found = list(attacked(name, Path(scratch)))
        proved = [(said, failure) for said, accepted, failure in found if accepted]
        failures = [f"{said}: {failure}" for said, failure in proved if failure is not None]
        wrong += len(failures)
        print(f"{name}: {len(found)} changes, {len(found) - len(proved)} rejected, {len(proved)} proved, {failures}")
        print("  proved:", "; ".join(said for said, _ in proved))
    return 1 if wrong else 0


if __name__ == "__main__":
    assert LETTERS.size == 5
    sys.exit(main())
