"""What a checkpoint directory holds: its files, and the tensors that a config.json asks for."""

from collections.abc import Mapping
from pathlib import Path

from compiler.artifact.errors import CheckpointError
from compiler.artifact.numbers_config import is_numbers, numbers_shapes
from compiler.artifact.tokenizer import TOKENIZER_FILES
from compiler.targets import family_of

CONFIG = "config.json"
GENERATION = "generation_config.json"
WEIGHTS = "model.safetensors"
MANIFEST = "construction.json"
CIRCUIT = "circuit.json"
CARD = "README.md"  # the user may edit it
GRAPH = "causal_graph.json"  # what is computed of what, and where it stands
ANSWERS = "answers.json"  # of a circuit whose author said what it should answer
SEALED_FILES = (CONFIG, GENERATION, WEIGHTS, CIRCUIT, *TOKENIZER_FILES)  # whose hashes the manifest holds
NUMBERS_FILES = (CONFIG, WEIGHTS, CIRCUIT)  # the same of a model over numbers

GENERATOR = "construct (mamba-constructions)"  # in pages, pictures and tables: by this a later run knows its own

# Files beyond ours that may be there: programs that load the model do not read them.
CERTIFICATE = "certificate.json"
HARMLESS_FILES = {CARD: "for people", "proof.json": "a proof is checked by the checker, against the weights"}
HARMLESS_FILES |= {CERTIFICATE: "claims are replayed by the kernel, against the weights"}
HARMLESS_SUFFIXES = {".md": "text for people", ".png": "a picture", ".svg": "a picture", ".pdf": "a picture"}
HARMLESS_NAMES = {
    "LICENSE",
    "LICENSE.txt",
    "NOTICE",
    "CITATION.cff",
    "notes.txt",
    ".gitattributes",
    ".gitignore",
    ".git",
}

Shape = tuple[int, ...]


def is_harmless(name: str) -> bool:
    """Whether a file of this name may stand in a checkpoint beside its own."""
    return name in HARMLESS_FILES or name in HARMLESS_NAMES or Path(name).suffix in HARMLESS_SUFFIXES


def file_bytes(path: Path) -> int:
    """The bytes of an ordinary file, 0 of anything else."""
    return path.stat().st_size if path.is_file() else 0


def tensor_shapes(config: Mapping) -> dict[str, Shape]:
    """Shape of every tensor of this model, by its name; the config is one of ours."""
    if is_numbers(config):
        return numbers_shapes(config)
    return family_of(config["model_type"]).tensor_shapes(config)


def check_shapes(config: Mapping, found: Mapping[str, Shape]) -> None:
    """Raise CheckpointError unless these are exactly the tensors that the config asks for."""
    layers = len(config["blocks"]) if is_numbers(config) else config["num_hidden_layers"]
    if layers > len(found):  # before any work that grows with the number of layers
        raise CheckpointError(f"{CONFIG} has {layers} layers, but {WEIGHTS} has {len(found)} tensors.")
    expected = tensor_shapes(config)
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            raise CheckpointError(f"{WEIGHTS} has no tensor {name}, which {CONFIG} asks for.")
        if name not in expected:
            raise CheckpointError(f"{WEIGHTS} has a tensor {name:.60}, for which {CONFIG} has no place.")
        if tuple(found[name]) != expected[name]:
            raise CheckpointError(
                f"{WEIGHTS} has {name} of shape {tuple(found[name])}, but {CONFIG} asks for {expected[name]}."
            )
