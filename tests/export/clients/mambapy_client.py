"""mambapy, an independent Mamba in PyTorch: its stack of blocks between the embedding and the head of a checkpoint.

`python mambapy_client.py REQUEST.json`, with requests as for every client (tests/export/cases.py). Mamba alone: its
Mamba-2 needs the CUDA kernels of mamba_ssm. Its parallel scan is off, for that adds in another way (and is run too).
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from mambapy.mamba import Mamba, MambaConfig, RMSNorm
from safetensors.torch import load_file


class Model:
    def __init__(self, directory: Path, parallel: bool):
        config = json.loads((directory / "config.json").read_text())
        tensors = load_file(directory / "model.safetensors")
        self.embedding, self.head = tensors.pop("backbone.embeddings.weight"), tensors.pop("lm_head.weight")
        self.norm = RMSNorm(config["hidden_size"], config["layer_norm_epsilon"])
        self.norm.weight.data = tensors.pop("backbone.norm_f.weight")
        self.mamba = Mamba(
            MambaConfig(
                d_model=config["hidden_size"],
                n_layers=config["num_hidden_layers"],
                dt_rank=config["time_step_rank"],
                d_state=config["state_size"],
                expand_factor=config["expand"],
                d_conv=config["conv_kernel"],
                rms_norm_eps=config["layer_norm_epsilon"],
                pscan=parallel,
            )
        )
        self.mamba.load_state_dict({name.removeprefix("backbone."): tensor for name, tensor in tensors.items()})

    @torch.no_grad()
    def logits(self, ids: torch.Tensor) -> np.ndarray:
        return F.linear(self.norm(self.mamba(F.embedding(ids, self.embedding))), self.head).numpy()

    @torch.no_grad()
    def steps(self, ids: torch.Tensor) -> np.ndarray:
        config, found = self.mamba.config, []
        caches = [(None, torch.zeros(len(ids), config.d_inner, config.d_conv - 1)) for _ in range(config.n_layers)]
        for at in range(ids.shape[1]):
            x, caches = self.mamba.step(F.embedding(ids[:, at], self.embedding), caches)
            found.append(F.linear(self.norm(x), self.head))
        return torch.stack(found, 1).numpy()


def main(requests: str) -> None:
    for request in json.loads(Path(requests).read_text()):
        ids = torch.from_numpy(np.load(request["ids"]))
        model, parallel = (Model(Path(request["path"]), which) for which in (False, True))
        np.savez(request["out"], whole=model.logits(ids), parallel=parallel.logits(ids), steps=model.steps(ids))
    print(f"mambapy {version('mambapy')}")


if __name__ == "__main__":
    main(sys.argv[1])
