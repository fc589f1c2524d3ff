"""What is proved of a construction and what is only tested: the one place that words it.

The manifest, the model card, `construct verify` and the README say what stands here. The proof is the checker's
(`verify/checker`, docs/proofs.md), run on what is saved.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from compiler.language.arguments import counted
from compiler.language.data import language_to_data, to_data
from verify.certificates import Refused
from verify.checker.check import RESTS_ON, UNREAD, UNSTATED, Verdict, prove, prove_answers
from verify.checker.files import in_memory
from verify.checker.formats import Rejected, at_least
from verify.checker.values.language import parse

if TYPE_CHECKING:
    from compiler.artifact.numeric import NumericStack
    from constructions.checkpoints.built import Built

Proof = tuple[dict[str, Any] | None, str]  # (what a program reads, one sentence for people)
NOT_ASKED: Proof = (None, "not asked for")
_NO_CHECKPOINT = "there is no checkpoint of this mixer"


def stated_task(built: Built, proof: Proof) -> dict[str, Any] | None:
    """The task that the manifest names, to which the checker then holds the circuit. A construction that promises only
    most answers names one where all are proved nevertheless."""
    proved = proof[0] is not None and proof[0].get("parts", {}).get("task")
    told = built.construction.promise() == "all" or proved
    if built.over_numbers:
        return None
    return built.construction.asks() if told else None


def refused(proof: Proof) -> str:
    """Why the task that a checkpoint of one's own states is none of its circuit's; "" where it is one. What is refused
    is neither proved nor tested, so nothing that states it is as it says.
    """
    return "" if proof[0] is None else proof[0].get("refused", "")


def weights_proved(proof: Proof) -> bool:
    """Whether it is proved that the weights give the circuit's scores."""
    return proof[0] is not None and proof[0].get("level") == "bit-exact"


def proof_of(built: Built) -> Proof:
    """Run the checker on a construction that is about to be saved, or was just built again.

    A mixer of which there is no checkpoint has its circuit proved, and its weights if it has a certificate of its own;
    Violated where that one fails.
    """
    if built.over_numbers:
        return numbers_proof(built, built.stack())
    verdict = verdict_of(built)
    found = {
        "kind": "Checker",
        "level": "bit-exact" if verdict.weights is None else "tested",
        "holds": verdict.accepted and verdict.task is None,
        "margin": None if verdict.margin is None else float(verdict.margin),
        "domain": verdict.domain,
        "parts": {name: why is None for name, why in verdict.parts().items()},
        "asks": verdict.asks,
        "rests_on": list(RESTS_ON),
    }
    if verdict.refused and not built.construction.registered:
        found["refused"] = verdict.task
    if built.model is None:
        return _without_checkpoint(built, found, verdict)
    said = sentence(verdict, built.construction.promise() != "untold", _asked_where(built))
    return found, said + _also_tested(built, found["holds"])


def _asked_where(built: Built) -> str:
    """Of which answers a proof of the stated task is."""
    stated = "that the task of construction.json asks for" if built.construction.unstated_answers() else ""
    return built.construction.asks_where() or stated


def _also_tested(built: Built, holds: bool) -> str:
    """What is said behind a proof of the stated task where the author gave other answers as well."""
    beyond = built.construction.unstated_answers()
    return f"; {counted(beyond, 'answer')} of answers.json beside these: only tested" if holds and beyond else ""


def numbers_proof(built: Built, stack: NumericStack) -> Proof:
    """Of a model over numbers: its construction's certificate, where there is one and it goes through."""
    tested = f"{_of_errors(built)}; {_of_number_answers(built)}"
    try:
        certificate = built.construction.certificate(stack, built.compiled)
    except Refused as reason:
        return None, f"{tested} and its certificate stops: {reason}"
    if certificate is None or not certificate.holds:
        return None, tested
    margin = "" if certificate.margin is None else f", with margin {at_least(Fraction(certificate.margin))}"
    return certificate.to_json(), (
        f"proved from the weights: every score is the circuit's and every answer right{margin}, on "
        f"{certificate.domain}; only tested: a whole sequence at once, and inputs beside these (no token, "
        "positions in another order)"
    )


def _of_errors(built: Built) -> str:
    """How near outputs over numbers are to the circuit's, and why."""
    bound = built.compiled.error_bound
    if bound is None:
        return "no bound on errors is known"
    said = "that every output is exact follows" if bound == 0 else "the bounds on errors follow"
    return f"{said} from the circuit, operation by operation"


def _of_number_answers(built: Built) -> str:
    """What is said of right outputs: nothing, where nobody says what they are."""
    if built.construction.promise() == "untold":
        return "nobody says what its answers should be"
    return "the answers are only tested, for the checker proves models over letters and this one reads numbers"


def promise_of(built: Built) -> dict[str, Any]:
    """What the checker reads of a promise: the input language, its length and the dtype."""
    return language_to_data(built.compiled.source.token_language) | {"dtype": built.compiled.dtype}


def verdict_of(built: Built) -> Verdict:
    """The checker's verdict, from the very numbers that are saved."""
    source = built.compiled.source
    asked = built.construction.asks()
    circuit = json.loads(json.dumps(to_data(source)))
    promise = promise_of(built)
    if built.model is None:
        said = prove_answers(parse(promise), circuit, asked)
        stopped = (_NO_CHECKPOINT,) * 3
        return Verdict("the circuit alone", *stopped, said.reason, said.margin, said.says)
    tensors = {name: tensor.numpy() for name, tensor in built.model.tensors.items()}
    try:
        return prove(in_memory(dict(built.model.config), tensors, promise), circuit, asked)
    except Rejected as reason:
        stopped = (str(reason),) * 3
        return Verdict("none", *stopped, UNSTATED if asked is None else UNREAD)


def sentence(verdict: Verdict, told: bool = True, where: str = "") -> str:
    """The guarantee in words, without a full stop. told: whether anyone said what should be answered; where: at which
    questions alone ("" for all)."""
    right = f"every answer is right{where and f' {where}'}{_with(verdict)}{', at every length' * verdict.every_length}"
    rests = f"it rests on {'; '.join(RESTS_ON)}"
    if verdict.task is None and verdict.weights is None:
        return f"proved from the weights: {right}; {rests}"
    if verdict.task is None:
        return (
            f"proved of the circuit: {right}; that the weights compute the circuit is only tested ({verdict.weights})"
        )
    no_task = f"; the task that is stated is refused: {verdict.task}" if verdict.refused else ""
    if verdict.weights is not None:
        answers = no_task or ", and what they answer" * told
        return f"only tested: that the scores are the circuit's ({verdict.weights}){answers}"
    why = "" if verdict.task == UNSTATED else f" ({verdict.task})"
    tested = no_task or f"; what they answer is only tested{why}" * told
    score = f"every score is the circuit's{', at every length' * verdict.every_length}"
    return f"proved from the weights: {score}{tested}; {rests}"


def without_tests(said: str) -> str:
    """The same sentence where no sequence was run: what is not proved was not tested either."""
    return said.replace("only tested", "neither proved nor tested here")


def _with(verdict: Verdict) -> str:
    return "" if verdict.margin is None else f", with margin {at_least(verdict.margin)}"


def _without_checkpoint(built: Built, found: dict[str, Any], verdict: Verdict) -> Proof:
    try:
        certificate = built.construction.certificate(built.bare_stack(), built.compiled)
    except Refused as reason:
        return found, f"{sentence(verdict, where=built.construction.asks_where())}; {reason}"
    if certificate is None or not certificate.holds or verdict.task is not None:
        return found, sentence(verdict, where=built.construction.asks_where())
    return (
        certificate.to_json(),
        f"every answer is right with margin {at_least(Fraction(certificate.margin))}, on {certificate.domain}",
    )
