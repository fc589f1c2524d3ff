"""mamba_ssm's own Triton kernels (SSD, norms) on a CPU, by Triton's interpreter, in `MambaLMHeadModel`.

`python triton_client.py REQUEST.json`, with requests as for every client (tests/export/cases.py), of which the first
row and its first tokens are run: the interpreter is slow. The scan of Mamba-1 is CUDA code; mamba_ssm's own reference
in PyTorch stands for it.
"""

import contextlib
import json
import os
import sys
import types
from importlib.metadata import version
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton

TOKENS = 40
_autotune = triton.autotune
triton.autotune = lambda configs, key, **options: _autotune(configs[:1], key, **options)  # no timing of kernels
torch.cuda.device = lambda *_: contextlib.nullcontext()
torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(multi_processor_count=2)
scan = sys.modules["selective_scan_cuda"] = types.ModuleType("selective_scan_cuda")

from mamba_ssm import MambaLMHeadModel  # noqa: E402
from mamba_ssm.modules import mamba_simple  # noqa: E402
from mamba_ssm.ops.selective_scan_interface import selective_scan_ref  # noqa: E402


def forward(u, dt, A, B, C, D, z, bias, softplus):
    """What the CUDA module gives: out, the states, and the gated out."""
    y, last = selective_scan_ref(u, dt, A, B, C, D, None, bias, softplus, return_last_state=True)
    x = A.new_zeros(*u.shape[:2], 1, 2 * A.shape[1])
    x[:, :, -1, 1::2] = last
    return [y, x] if z is None else [y, x, selective_scan_ref(u, dt, A, B, C, D, z, bias, softplus)]


scan.fwd = forward
mamba_simple.selective_state_update = None


def main(requests: str) -> None:
    for request in json.loads(Path(requests).read_text()):
        ids = torch.from_numpy(np.load(request["ids"])[:1, :TOKENS])
        model = MambaLMHeadModel.from_pretrained(request["path"], device="cpu", dtype=torch.float32)
        for layer in model.backbone.layers:
            layer.mixer.use_mem_eff_path = False  # that one needs causal_conv1d
        with torch.no_grad():
            np.savez(request["out"], whole=model(ids).logits.numpy())
    print(f"mamba_ssm {version('mamba_ssm')} with triton {triton.__version__}, interpreted")


if __name__ == "__main__":
    main(sys.argv[1])
