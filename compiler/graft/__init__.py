"""Putting compiled circuits into other models, and several circuits into one.

union(a, b)            several circuits as one circuit: the union of their alphabets, shared lanes, one head
graft(host, circuit)   a circuit beside the layers of a language model of a host family, in a plain checkpoint
save(grafted, dir)     as a directory that AutoModelForCausalLM.from_pretrained opens
branch(host, circuit, tokens)     a frozen circuit beside a host of any class, with a trainable projection
reader(circuit, tokens, vocab)    the same circuit as a module, for the forward of any other
trainable(model)       relative steps, by which a compiled checkpoint can be trained; finished(model) ends it
"""

from typing import TYPE_CHECKING

from compiler.graft.errors import GraftError
from compiler.graft.union import union
from compiler.lazy import lazy_names

if TYPE_CHECKING:
    from compiler.graft.directory import save
    from compiler.graft.grafted import Grafted, graft
    from compiler.graft.relative import finished, parameters_to_train, trainable
    from compiler.graft.side import branch, reader

lazy_names(
    __name__,
    {
        "branch": "compiler.graft.side",
        "finished": "compiler.graft.relative",
        "parameters_to_train": "compiler.graft.relative",
        "trainable": "compiler.graft.relative",
        "reader": "compiler.graft.side",
        "Grafted": "compiler.graft.grafted",
        "graft": "compiler.graft.grafted",
        "save": "compiler.graft.directory",
    },
)

__all__ = [
    "GraftError", "Grafted", "branch", "finished", "graft", "parameters_to_train", "reader", "save", "trainable",
    "union",
]  # fmt: skip
