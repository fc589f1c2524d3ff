"""What a checkpoint writes after a prompt, up to the letter that ends it, within what its promise covers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from compiler.artifact.config import check_config
from compiler.artifact.errors import CheckpointError, ScoreError, of_damage
from compiler.artifact.files import CONFIG, GENERATION, MANIFEST
from compiler.artifact.json_files import read_json
from compiler.artifact.load import load_over_tokens, tokens_of
from compiler.artifact.manifest import check_files, read_manifest
from compiler.artifact.prompts import complaint, first_prompt
from compiler.formats import format_of
from compiler.language.alphabet import Alphabet
from compiler.language.arguments import close_to, instance, integer, shown
from compiler.language.arguments import path as path_of
from compiler.language.data.languages import language_from_data
from compiler.language.input_language import InputLanguage
from compiler.language.markdown import one_line
from compiler.runtime.generation import NoNumberError, by_stepping, by_transformers

RUNTIMES = ("mamba-ssm", "transformers")
MOST_UNASKED = 10_000  # tokens after a prompt where nobody says how many: a promise of every length has no end


@dataclass(frozen=True)
class Written:
    """What came after a prompt.

    ended: whether the letter that ends a generation came; promised: how many of the tokens the recorded promise speaks
    of (no weight is compared with it), which are those before which the whole text lies in its language; left: whether
    the text has left that language without an end, as it does where answers are no inputs; limited: whether it would go
    on within the promise, and only the limit for which nobody asked (`MOST_UNASKED`) stopped it; cut: whether the
    promise's length stopped it, before its end and before as many tokens as were asked for.
    """

    prompt: str
    tokens: tuple[str, ...]
    ended: bool
    promised: int
    left: bool
    limited: bool = False
    cut: bool = False

    @property
    def inside(self) -> bool:
        """Whether every token is promised."""
        return self.promised == len(self.tokens)

    @property
    def text(self) -> str:
        return " ".join(self.tokens)


class Writer:
    """A checkpoint that writes: the model on one of the runtimes, with its promise.

    runtime: "mamba-ssm" steps the real modules (ours where they are missing), "transformers" calls `generate()`.
    """

    def __init__(self, directory: str | Path, runtime: str = "mamba-ssm"):
        if runtime not in RUNTIMES:
            raise ValueError(f"runtime is {runtime!r}, and it must be one of {', '.join(RUNTIMES)}")
        self.directory, self.runtime = path_of(directory, "the directory"), runtime
        self.manifest = read_manifest(directory)
        check_files(self.directory, self.manifest)
        if self.manifest.promise.language is None:
            raise CheckpointError(f"{directory} holds a model over numbers, and only one over tokens writes.")
        with of_damage():
            self.tokens = tokens_of(self.directory, read_json(self.directory / CONFIG))
        self._language = self.manifest.promise.language
        self.ids = {name: i for i, name in enumerate(self.tokens)}

    @cached_property
    def language(self) -> InputLanguage:
        promise = self.manifest.promise
        letters = Alphabet(tuple(self.tokens[: self._language["tokens"]]))
        data = {"language": self._language, "length": promise.length, "description": promise.description}
        return replace(language_from_data(data, letters), asked=self.manifest.asked)

    def _run(self, *arguments: Any) -> list[list[int]]:
        """What the model writes; ScoreError where its scores are no numbers."""
        try:
            return self._model(*arguments)
        except NoNumberError as reason:
            forbids = f" and {GENERATION}, which may forbid a token" if self.runtime == "transformers" else ""
            raise ScoreError(f"{reason}; construct verify {self.directory} compares the weights{forbids}.") from reason

    @cached_property
    def _model(self) -> Callable[..., list[list[int]]]:
        dtype = self.manifest.dtype
        if self.runtime == "mamba-ssm":
            stack = load_over_tokens(self.directory)
            return lambda *arguments: by_stepping(stack, *arguments)
        with of_damage():
            model = transformers_model(self.directory, dtype)
        return lambda *arguments: by_transformers(model, *arguments)

    def load(self) -> None:
        """Read the weights now; otherwise the first `write` does."""
        _ = self._model

    def write(
        self, prompts: Sequence[str], most: int | None = None, told: Callable[[int, str], None] | None = None
    ) -> list[Written]:
        """What comes after each prompt, at most `most` tokens [default: as far as the promise reaches, and no
        more than 10,000].

        ValueError for a prompt that is empty, has an unknown token, lies outside of the promise's language, or is
        only the beginning of a prompt, where the manifest says what a whole one is; and for one that goes on behind a
        whole prompt otherwise than the model does. ScoreError where a token would be chosen from scores that are no
        numbers.
        """
        rows = [self._encoded(prompt) for prompt in prompts]
        stop = self.manifest.promise.stop
        for row in rows:
            self._check_begun(row)
        room = [self.language.max_length - len(row) for row in rows]
        limits = [min(MOST_UNASKED if most is None else integer(most, "most", 1), left) for left in room]
        paths, promised = [self.language.paths(row) for row in rows], [0] * len(rows)

        def heard(row: int, token: int) -> bool:
            if told:
                told(row, self.tokens[token])
            promised[row] += bool(paths[row])
            paths[row] = self.language.paths([token], paths[row])
            return most is None and not paths[row]

        chains = self._run(rows, None if stop is None else self.ids[stop], limits, heard)
        found = []
        for i, chain in enumerate(chains):
            words = tuple(self.tokens[token] for token in chain)
            ended = words[-1] == stop
            left = not paths[i] and not ended
            limited = most is None and not ended and not left and len(words) < room[i]
            short = not left if most is None else len(words) < most
            cut = short and not ended and len(words) == room[i]
            found.append(Written(prompts[i], words, ended, promised[i], left, limited, cut))
        return found

    def _check_begun(self, ids: list[int]) -> None:
        """ValueError where the prompt holds a whole prompt and then a text that the model does not write: nothing is
        promised behind that."""
        prompt = first_prompt(self.language, ids)
        begun = ids[len(prompt) :]
        if not begun:
            return
        # behind its end too, as the language has it
        (chain,) = self._run([prompt], None, [len(begun)], lambda *_: False)
        for given, right in zip(begun, chain, strict=True):
            if given != right:
                names = " ".join(self.tokens[i] for i in prompt)
                raise ValueError(
                    f"behind {names!r} the prompt goes on with {self.tokens[given]!r}, where the model writes "
                    f"{self.tokens[right]!r}; nothing is promised of that, so give {names!r} alone."
                )

    def _encoded(self, prompt: str) -> list[int]:
        words = instance(prompt, str, "the prompt", 'a text such as "a b"').split()
        letters = self.language.alphabet
        if not words:
            raise ValueError("the prompt is empty, and at least one token is needed.")
        for word in words:
            if word not in self.ids or self.ids[word] >= letters.size:
                near = close_to(word, letters.tokens, ".")
                raise ValueError(f"the prompt has {shown(word)}, which is no token of this model{near}")
        ids = [self.ids[word] for word in words]
        if len(ids) >= self.language.max_length:
            raise ValueError(
                f"the prompt has {len(ids)} tokens, and the promise reaches "
                f"{self.language.max_length} with what is written."
            )
        wrong = complaint(self.language, ids)
        if wrong is not None:
            raise ValueError(
                f"the prompt {shown(prompt)} is outside of what {MANIFEST} promises "
                f"({one_line(self.language.description)}): "
                f"{wrong}."
            )
        return ids


def generate(directory: str | Path, prompt: str, most: int | None = None, runtime: str = "mamba-ssm") -> str:
    """What the checkpoint writes after a prompt of tokens with spaces between, its end included: at most `most` tokens,
    by default as far as the promise reaches, and no more than 10,000.
    """
    return Writer(directory, runtime).write([prompt], most)[0].text


def transformers_model(directory: str | Path, dtype: str):
    """The checkpoint through AutoModelForCausalLM, on transformers' own PyTorch code, in this dtype.

    CheckpointError, one sentence, where transformers cannot read it.
    """
    from transformers.utils.logging import disable_progress_bar

    from compiler.runtime import torch_only_transformers
    from compiler.runtime.saved_model import saved_model

    check_config(read_json(Path(directory) / CONFIG))  # it would take others as they are
    torch_only_transformers()
    disable_progress_bar()
    return saved_model(Path(directory), format_of(dtype).torch_dtype)
