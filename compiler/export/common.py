"""What several formats write: the tokenizer files of a checkpoint."""

from __future__ import annotations

import json

from compiler.artifact.tokenizer import tokenizer_files
from compiler.export.checkpoint import Package


def tokenizer_texts(package: Package) -> dict[str, str]:
    """The text of each tokenizer file by its name, as in the checkpoint."""
    files = tokenizer_files(package.model.tokens, package.manifest["promise"]["stop"])
    return {name: json.dumps(content, indent=1, ensure_ascii=False) + "\n" for name, content in files.items()}
