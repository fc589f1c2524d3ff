"""onnxruntime: the logits of model.onnx, of step.onnx in pieces, and what it writes token by token.

`python onnx_runtime.py REQUEST.json`, with requests as for every client (tests/export/cases.py).
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


class Model:
    def __init__(self, directory: str):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.whole, self.step = (
            onnxruntime.InferenceSession(f"{directory}/{name}.onnx", options) for name in ("model", "step")
        )
        self.names = Tokenizer.from_file(f"{directory}/tokenizer.json")
        config = json.loads((Path(directory) / "tokenizer_config.json").read_text())
        self.end = self.names.token_to_id(config["eos_token"])
        self.states = [value.name for value in self.step.get_inputs()[1:]]

    def logits(self, ids: np.ndarray) -> np.ndarray:
        return self.whole.run(["logits"], {"input_ids": ids})[0]

    def in_pieces(self, ids: np.ndarray, pieces: list[int]) -> np.ndarray:
        state, found, start = self.start(len(ids)), [], 0
        for piece in pieces:
            logits, state = self.advance(ids[:, start : start + piece], state)
            found.append(logits)
            start += piece
        return np.concatenate(found, axis=1)

    def start(self, batch: int) -> dict:
        shapes = {value.name: value.shape[1:] for value in self.step.get_inputs()[1:]}
        return {name: np.zeros((batch, *shape), np.float32) for name, shape in shapes.items()}

    def advance(self, ids: np.ndarray, state: dict) -> tuple[np.ndarray, dict]:
        outputs = ["logits", *(f"new_{name}" for name in self.states)]
        logits, *after = self.step.run(outputs, {"input_ids": ids} | state)
        return logits, dict(zip(self.states, after))

    def write(self, prompt: str, most: int) -> str:
        logits, state = self.advance(np.array([self.names.encode(prompt).ids]), self.start(1))
        ids = []
        while len(ids) < most:
            ids.append(int(logits[0, -1].argmax()))
            if ids[-1] == self.end:
                break
            logits, state = self.advance(np.array([ids[-1:]]), state)
        return self.names.decode(ids, skip_special_tokens=False)


def pieces(length: int) -> list[int]:
    uneven, left = [], length
    while left:
        uneven.append(min(left, (1, 7, 2, 13)[len(uneven) % 4]))
        left -= uneven[-1]
    return uneven


def main(requests: str) -> None:
    for request in json.loads(Path(requests).read_text()):
        ids = np.load(request["ids"])
        model = Model(request["path"])
        length = ids.shape[1]
        found = {
            "whole": model.logits(ids),
            "one of the batch": model.logits(ids[:1]),
            "pieces": model.in_pieces(ids, pieces(length)),
            "steps": model.in_pieces(ids, [1] * length),
            "written": [model.write(prompt, request["most"]) for prompt in request["prompts"]],
        }
        tokens = model.names.encode(request["text"]).ids
        np.savez(request["out"], **found, tokens=tokens, text=model.names.decode(tokens, skip_special_tokens=False))
    print(f"onnxruntime {onnxruntime.__version__}")


if __name__ == "__main__":
    main(sys.argv[1])
