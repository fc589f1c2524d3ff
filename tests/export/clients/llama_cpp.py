"""llama.cpp, by the library inside the xllamacpp wheel: the logits of a GGUF file for token ids, and its tokenizer.

Runs in a process of its own (`python llama_cpp.py REQUEST.json`), for llama.cpp ends the process where it finds fault.
Each request has `path`, `ids` (.npy, (batch, length)), `out` (.npz to write), `text` and `prompts`. Written are the
logits as a whole, in uneven pieces and token by token, the ids of the text, the text of these, and what follows each
prompt.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np
import xllamacpp


class _Params(ctypes.Structure):
    """Parameters by value, as the last argument: more room than any structure of llama.cpp's takes."""

    _fields_ = [("numbers", ctypes.c_uint32 * 256)]


class _Batch(ctypes.Structure):
    """llama_batch."""

    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


@_LOG
def _silent(level, text, data):
    if level >= 4:  # errors
        sys.stderr.write(text.decode(errors="replace"))


class Llama:
    """One model in one context that holds `length` tokens."""

    def __init__(self, path: str, length: int):
        self.lib = lib = ctypes.CDLL(sys.modules["xllamacpp.xllamacpp"].__file__)
        for name in ("llama_model_default_params", "llama_context_default_params"):
            getattr(lib, name).restype = _Params
        for name in (
            "llama_model_load_from_file",
            "llama_init_from_model",
            "llama_model_get_vocab",
            "llama_get_memory",
        ):
            getattr(lib, name).restype = ctypes.c_void_p
        lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, _Params]
        lib.llama_init_from_model.argtypes = [ctypes.c_void_p, _Params]
        lib.llama_decode.argtypes = [ctypes.c_void_p, _Batch]
        lib.llama_batch_free.argtypes, lib.llama_batch_free.restype = [_Batch], None
        lib.llama_batch_init.restype = _Batch
        lib.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        lib.llama_log_set(_silent, None)
        lib.llama_backend_init()
        self.model = ctypes.c_void_p(lib.llama_model_load_from_file(path.encode(), _params(lib, "model")))
        if not self.model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        context = _params(lib, "context")
        context.numbers[0], context.numbers[1], context.numbers[2] = (
            length + 8,
            length,
            min(length, 512),
        )  # n_ctx, n_batch, n_ubatch
        self.context = ctypes.c_void_p(lib.llama_init_from_model(self.model, context))
        self.vocab = ctypes.c_void_p(lib.llama_model_get_vocab(self.model))
        self.size = lib.llama_vocab_n_tokens(self.vocab)
        self.length = length

    def logits(self, ids: np.ndarray, pieces: list[int]) -> np.ndarray:
        """(length, vocabulary), the sequence cut into pieces of these lengths."""
        self.lib.llama_memory_clear(ctypes.c_void_p(self.lib.llama_get_memory(self.context)), ctypes.c_bool(True))
        rows, start = [], 0
        for piece in pieces:
            rows.append(self._decode(ids[start : start + piece], start))
            start += piece
        return np.concatenate(rows)

    def _decode(self, ids: np.ndarray, start: int) -> np.ndarray:
        batch = self.lib.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), start + i, 1, 1
            batch.seq_id[i][0] = 0
        if self.lib.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode failed")
        rows = [
            np.ctypeslib.as_array(self.lib.llama_get_logits_ith(self.context, i), (self.size,)) for i in range(len(ids))
        ]
        copied = np.array(rows)
        self.lib.llama_batch_free(batch)
        return copied

    def tokenized(self, text: str) -> list[int]:
        """The ids of a text, special tokens not read and none put in front but what the file asks for."""
        data = text.encode()
        found = (ctypes.c_int32 * (len(data) + 8))()
        count = self.lib.llama_tokenize(self.vocab, data, len(data), found, len(found), True, False)
        return list(found[:count])

    def text(self, ids: list[int]) -> str:
        """The text of ids."""
        given = (ctypes.c_int32 * len(ids))(*ids)
        found = ctypes.create_string_buffer(64 * len(ids) + 64)
        count = self.lib.llama_detokenize(self.vocab, given, len(ids), found, len(found), False, False)
        return found.raw[:count].decode()


def _params(lib, what):
    return getattr(lib, f"llama_{what}_default_params")()


def _pieces(length: int) -> dict[str, list[int]]:
    """Ways to cut a sequence: not, unevenly, into tokens."""
    uneven, left = [], length
    while left:
        uneven.append(min(left, (1, 7, 2, 13)[len(uneven) % 4]))
        left -= uneven[-1]
    return {"whole": [length], "pieces": uneven, "steps": [1] * length}


def written(path: str, prompts: list[str], most: int) -> list[str]:
    """What llama.cpp's own server writes after each prompt, text in and text out, greedily."""
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = path, 512, 1
    params.warmup, params.ui, params.verbosity = False, False, 0
    server = xllamacpp.Server(params)
    options = {"max_tokens": most, "temperature": 0, "repeat_penalty": 1.0, "cache_prompt": False}
    said = [server.handle_completions({"prompt": prompt} | options) for prompt in prompts]
    return [answer["choices"][0]["text"].strip() for answer in said]


def main(requests: str) -> None:
    for request in json.loads(Path(requests).read_text()):
        ids = np.load(request["ids"])
        model = Llama(request["path"], ids.shape[1])
        found = {
            name: np.stack([model.logits(row, pieces) for row in ids]) for name, pieces in _pieces(ids.shape[1]).items()
        }
        tokens = model.tokenized(request["text"])
        if request["prompts"]:
            found["written"] = written(request["path"], request["prompts"], request["most"])
        np.savez(request["out"], **found, tokens=tokens, text=model.text(tokens))
    print(f"llama.cpp (xllamacpp {xllamacpp.__version__})")
    sys.stdout.flush()
    os._exit(0)  # its threads and callbacks would outlive the interpreter


if __name__ == "__main__":
    main(sys.argv[1])
