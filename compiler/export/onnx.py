"""ONNX, which onnxruntime and many others read: a directory with two graphs over the checkpoint's own weights.

`model.onnx` takes token ids (batch, length) and gives the logits of every position. `step.onnx` also takes and gives
the state of every block: a sequence may come in pieces of any length, one token among them. Both read the weights from
`model.safetensors`, the file of the checkpoint, byte for byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compiler.artifact.files import WEIGHTS
from compiler.artifact.save import write_tensors, write_text
from compiler.export.checkpoint import Package
from compiler.export.common import tokenizer_texts
from compiler.export.directory import write_directory
from compiler.export.errors import ExportError
from compiler.export.record import card, need, need_float32, need_mamba, need_tokens, record, record_text

READER = "onnxruntime"
MODEL, STEP = "model.onnx", "step.onnx"
_WARNINGS = (
    "Run it in float32, without quantisation; checked on onnxruntime's CPU provider.",
    "There is no attention mask: put sequences of one length into a batch, or pad on the right and read no padding.",
)
_USE = """```python
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

names = Tokenizer.from_file("DIRECTORY/tokenizer.json")
model = onnxruntime.InferenceSession("DIRECTORY/model.onnx")
ids = np.array([names.encode(TEXT).ids])
logits, = model.run(["logits"], {"input_ids": ids})
```

`step.onnx` has an input `window.i` and `memory.i` for each block i, zeros before the first token, and outputs
`new_window.i` and `new_memory.i` to give it with the next tokens."""


def write(package: Package, path: Path, overwrite: bool) -> None:
    """The directory; ExportError, with the reason, for what would not be exact."""
    need_tokens(package, "onnx")
    need_mamba(package, READER)
    need_float32(package, READER)
    config = package.model.config
    need(config, READER, use_bias=False, hidden_act="silu", use_conv_bias=True, tie_word_embeddings=False)
    _library()
    from compiler.export.onnx_files import graph_bytes

    content = record(package, "onnx", _WARNINGS)

    def fill(place: Path) -> None:
        write_tensors(package.model.tensors, place / WEIGHTS, {"format": "pt"})
        told = record_text(content)
        for name, stateful in ((MODEL, False), (STEP, True)):
            (place / name).write_bytes(graph_bytes(config, place / WEIGHTS, stateful, told))
        for name, text in tokenizer_texts(package).items():
            write_text(place / name, text)

    write_directory(path, overwrite, content, card(package, content, _USE), fill)


def _library() -> Any:
    try:
        import onnx
    except ImportError as missing:
        raise ExportError("the package onnx writes this format, and it is missing: pip install onnx.") from missing
    return onnx
