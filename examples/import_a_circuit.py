"""A compiled circuit inside a model of your own: build one, save it, load it, use its blocks.

Run it with `python examples/import_a_circuit.py [DIRECTORY]`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

import compiler
from constructions.checkpoints.artifact import save
from constructions.checkpoints.built import build
from constructions.selectivity.mqar import MQAR


class WithRecall(nn.Module):
    """A model whose first layer is a frozen, exact recall circuit and whose rest is free to learn."""

    def __init__(self, circuit: nn.Module, classes: int):
        super().__init__()
        self.circuit = circuit.requires_grad_(False)
        self.classifier = nn.Linear(circuit.head.in_features, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(batch, length) token ids to (batch, length, classes)."""
        return self.classifier(self.circuit.hidden(tokens, upto=len(self.circuit.blocks)))


def main(directory: Path) -> None:
    save(build(MQAR(kappa=4, vocab=16)), {}, directory)
    circuit = compiler.load(directory)
    print("blocks:", [type(block).__module__ + "." + type(block).__name__ for block in circuit.blocks])
    names = {name: i for i, name in enumerate(circuit.tokens)}
    prompt = torch.tensor([[names[t] for t in ["k0", "v3", "k1", "v9", "_", "k0"]]])
    print("k0 is bound to", circuit.tokens[circuit(prompt)[0, -1].argmax()])
    print("your model's output:", tuple(WithRecall(circuit, classes=2)(prompt).shape))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as folder:
            main(Path(folder) / "recall")
