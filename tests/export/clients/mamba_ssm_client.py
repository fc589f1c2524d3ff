"""mamba_ssm's own `MambaLMHeadModel.from_pretrained` on a CPU: its logits, with our scans in place of CUDA kernels.

`python mamba_ssm_client.py REQUEST.json`, with requests as for every client (tests/export/cases.py).
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from compiler.runtime import mamba_classes


@torch.no_grad()
def steps(classes, model, ids: torch.Tensor) -> np.ndarray:
    """The prompt's first tokens at once, the others one by one."""
    params = classes.InferenceParams(max_seqlen=ids.shape[1], max_batch_size=len(ids))
    first = min(5, ids.shape[1])
    found = [model(ids[:, :first], inference_params=params).logits]
    for at in range(first, ids.shape[1]):
        params.seqlen_offset = at
        found.append(model(ids[:, at : at + 1], inference_params=params).logits)
    return torch.cat(found, 1).numpy()


def main(requests: str) -> None:
    classes = mamba_classes()
    for request in json.loads(Path(requests).read_text()):
        ids = torch.from_numpy(np.load(request["ids"]))
        model = classes.MambaLMHeadModel.from_pretrained(request["path"], device="cpu", dtype=torch.float32)
        names = PreTrainedTokenizerFast.from_pretrained(request["path"])
        tokens = names.encode(request["text"])
        with torch.no_grad():
            whole = model(ids).logits.numpy()
        found = {"whole": whole, "steps": steps(classes, model, ids)}
        np.savez(request["out"], **found, tokens=tokens, text=names.decode(tokens))
    print(f"mamba_ssm {version('mamba_ssm')}")


if __name__ == "__main__":
    main(sys.argv[1])
