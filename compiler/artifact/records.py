"""What construction.json holds, as the records that it is parsed into once (`manifest.py`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from compiler.artifact.numbers_config import NumberInput


@dataclass(frozen=True)
class Fingerprint:
    """Size and hash of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class ErrorRecord:
    """No output is further than `error` from the circuit's where no real input exceeds `inputs` in size."""

    inputs: float
    error: float


Dtype: TypeAlias = Literal["float32", "bfloat16", "float16"]  # as `formats.FORMATS`


@dataclass(frozen=True)
class PromiseRecord:
    """What is promised, and for which inputs: `language` is the automaton as `language_to_data` writes it.

    A model over numbers has none (null), but `inputs`, what each of them may be; error_bounds: how far an output may
    be from the circuit's where no real input exceeds a size.

    length: most positions, null where no sequence is too long; stop: the letter that ends a generation.
    level: "bit-exact" or "bounded-error".
    error_bound: how far a score may be from the circuit's, where the level is "bounded-error" and a bound is known.
    """

    language: dict[str, Any] | None
    length: int | None
    description: str
    stop: str | None
    dtype: Dtype
    level: str
    error_bound: float | None = None
    inputs: list[NumberInput] = field(default_factory=list)
    error_bounds: list[ErrorRecord] = field(default_factory=list)

    @property
    def over_numbers(self) -> bool:
        return self.language is None


@dataclass(frozen=True)
class BlockNames:
    """Names of a block's channels and state columns, in the order in which they were allocated."""

    channels: list[str]
    columns: list[str]


@dataclass(frozen=True)
class Meanings:
    """What the named lanes, channels and columns hold, in the same order: stream, token or bit, and scale."""

    lanes: list[str]
    blocks: list[BlockNames]


@dataclass(frozen=True)
class SizesRecord:
    """Sizes of the bare stack as it runs, what each block uses of them, and those of the language model."""

    d_model: int
    d_inner: int
    d_state: int
    layers: int
    blocks: list[dict[str, int]]
    parameters: int | None
    packaged: dict[str, int] | None


@dataclass(frozen=True)
class CodesRecord:
    """How random key codes were drawn, and how often these fail; null where nothing was asked of them.

    error: half of the 95 % interval of `expected_failure`, an estimate for this code; average_error: the same of the
    guarantee's, 0 where that is an exact sum over all codes; average_at_most: what is proved of it. Older checkpoints
    have none.
    """

    size: int
    length: int
    epsilon: float | None
    coherence: float
    seed: int
    draws: int
    kind: str
    expected_failure: float
    sets: int
    error: float | None = field(default=None, kw_only=True)
    average_error: float | None = field(default=None, kw_only=True)
    average_at_most: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class GuaranteeRecord:
    """What a construction says of its answers, and the proof if there is one.

    answers: "all" where that is proved; "tested", "not asked" or "not tested" where it is not; "random" of most of
    them; "untold" where nobody says what is right. asks_where: of a model over numbers, of which of the promised inputs
    `answers` speaks; "" for all.
    """

    level: str
    answers: str
    expected_failure: float
    certificate: dict[str, Any] | None
    proof: str
    domain: str
    codes: CodesRecord | None = field(default=None, kw_only=True)
    asks_where: str = field(default="", kw_only=True)


def right_answers(guarantee: Mapping[str, Any], verification: Mapping[str, Any] | None) -> str:
    """Which answers are right, in words, of a guarantee and of what was run, as JSON: "all" stands alone, or before
    "where …", only if that is proved. Else it is said how many were tested, that none was, or that some are wrong.
    """
    answers, where = answers_word(guarantee, verification), guarantee.get("asks_where", "")
    if answers == "tested":
        answers = f"all that were tested ({(verification or {}).get('queries', 0):,})"
    if answers == "random":
        answers = _most_answers(verification or {})
    return f"{answers}{where and f', {where}'}"


def _most_answers(run: Mapping[str, Any]) -> str:
    """What was measured of a promise for most answers that no proof makes one for all."""
    if not run.get("queries"):
        return "most, on average over codes; none was tested"
    wrong = (run.get("failure") or {}).get("rate") or run.get("accuracy") != 1
    return (
        "not all; some are wrong, at a rate that was measured"
        if wrong
        else f"all that were tested ({run['queries']:,}); others may be wrong"
    )


def answers_word(guarantee: Mapping[str, Any], verification: Mapping[str, Any] | None) -> str:
    """The same in the one word that JSON has. Manifests of earlier versions have "all" of tested answers as well. Of
    "random" ones all are right where the checkpoint's own proof says so.
    """
    answers, run, certificate = guarantee["answers"], verification or {}, guarantee["certificate"] or {}
    if answers == "random" and certificate.get("holds") and (certificate.get("parts") or {}).get("task"):
        return "all"
    if answers == "tested" or (answers == "all" and not certificate.get("holds")):
        return tested_word(run.get("queries"), run.get("sequences"))
    return answers


def uncounted(arch: str) -> str:
    """What a saved model has beside the layers that are told; "" where it has nothing."""
    return "; its last layer, an attention that adds 0, is not counted" if arch == "gated-deltanet" else ""


UNTESTED = NOT_ASKED, NOT_TESTED = "not asked", "not tested"  # what was run had no question; nothing was run


def tested_word(queries: int | None, sequences: int | None) -> str:
    """What is said of right answers that are not proved, by how many were asked, in how many sequences."""
    if queries:
        return "tested"
    return NOT_ASKED if sequences else NOT_TESTED


@dataclass(frozen=True)
class RunRecord:
    """What was run when the checkpoint was made, and how it came out."""

    sequences: int
    queries: int
    accuracy: float | None
    exact_sequences: int
    bit_exact: bool | None
    margin: float | None
    share_of_bound: float | None = field(default=None, kw_only=True)  # of numbers: the largest error
    left_out: int | None = field(default=None, kw_only=True)  # adversarial sequences beyond the budget
    not_drawn: int | None = field(default=None, kw_only=True)  # random ones


@dataclass(frozen=True)
class FormRecord(RunRecord):
    """The same for all tasks of one form, and for each."""

    tasks: dict[str, RunRecord]


@dataclass(frozen=True)
class FailureRecord:
    """The measured rate of wrong answers, and its interval: two numbers."""

    rate: float
    interval: list[float]


@dataclass(frozen=True)
class VerificationRecord(FormRecord):
    """The language model's results, and those of the bare form."""

    bare: FormRecord | None = None
    failure: FailureRecord | None = None  # of a promise for most answers


@dataclass(frozen=True)
class AnswersRecord:
    """What answers.json holds: answers of the author's function to so many questions, in so many sequences."""

    function: str
    says: str
    sequences: int
    questions: int


@dataclass(frozen=True)
class Manifest:
    """The typed content of construction.json.

    circuit: name of the circuit; arch: the compiler's target; lanes, blocks: the names in the weights; meanings: what
    these hold;
    card: hash of the README.md that was written beside it (which the user may edit); versions: of what wrote it;
    max_d_state, n_groups: what was asked of its state, where that is not the default: `compile` is given them again.
    asked: the state of the language behind which the model writes, "" where any beginning of a sequence is a prompt.
    The entries from `construction` on are those of a construction of a paper, and absent for any other circuit.
    task: which function the answers are, by the name and parameters that the checker knows (`checker/tasks/task.py`).
    answers: of a circuit of one's own, what its author's function was asked.
    theorem: the statement that this very circuit builds, or after which it goes beyond the paper.
    bound, bound_source: sizes that a paper states, and where; older manifests do not say where.
    obstructions: lower bounds for any exact model of the task, beside what this one has; needed: the largest of them.
    """

    format: str
    format_version: int
    sha256: str
    files: dict[str, Fingerprint]
    card: str
    circuit: str
    arch: str
    dtype: Dtype
    promise: PromiseRecord
    sizes: SizesRecord
    lanes: list[str]
    blocks: list[BlockNames]
    cuda_limits: list[str]
    versions: dict[str, str]
    max_d_state: int | None = None
    n_groups: int = 1
    asked: str = ""
    meanings: Meanings | None = None
    construction: str | None = None
    theorem: str | None = None
    params: dict[str, int | float | str | bool | None] = field(default_factory=dict)
    bound: dict[str, int] = field(default_factory=dict)
    bound_source: str | None = None
    guarantee: GuaranteeRecord | None = None
    verification: VerificationRecord | None = None
    task: dict[str, Any] | None = None
    answers: AnswersRecord | None = None
    obstructions: list[str] = field(default_factory=list)
    needed: str = ""


def without_bound(needed: str) -> str:
    """`needed` of a manifest, behind which earlier versions repeated a bound: nobody compares or shows that now."""
    return re.sub(r"; (?:the paper's|our) bound\b.*", "", needed)
