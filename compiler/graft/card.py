"""The model card of a grafted model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.digits import at_least, at_most
from compiler.language.input_language import length_said
from compiler.language.markdown import code, prose


def graft_card(report: Mapping[str, Any]) -> str:
    """README.md for a report: what is promised of host and circuit, and what was measured."""
    host, result, promise = report["host"], report["result"], report["circuit_promise"]
    mapped = ", ".join(code(letter) for letter in report["mapped"])
    inputs = prose(promise["description"])
    letters = "\n".join(
        f"| {code(letter, in_table=True)} | {place} |" for letter, place in list(report["letters"].items())[:64]
    )
    lines = [
        "---\nlibrary_name: transformers\npipeline_tag: text-generation\n---",
        f"# {prose(report['circuit'])} in a {host['class']}",
        f"A compiled circuit stands beside the host's own weights: {host['layers']} layers of width {host['d_model']} "
        f"became {result['layers']} of width {result['d_model']}. No weight was trained. The class is the "
        "host's own, so no remote code is needed.",
        "## The host",
        f"Token ids are unchanged. After tokens of the host, {report['host_promise']['text']}.",
        f"Proved: {report['host_promise']['proved']}.",
        "## The circuit",
        f"On {inputs}, {length_said(promise['length'])}: its scores stand behind the host's last norm, "
        "so they are right up to a positive factor of each position and rounding, not bit for bit. Where a letter "
        f"leads by more than {at_most(promise['lead_needed'])} in the circuit it is the model's answer; the circuit's "
        f"own leads are multiples of {at_least(promise['least_lead'], 9)} ({promise['level']}). This holds while the "
        f"root mean square of the host's stream is below {at_least(promise['loudest_stream'])}.",
        f"Scores can tie, as where nothing is stored yet: {ties_said(report)}.",
        f"Letters that are tokens of the host: {mapped}." if mapped else "After a token of the host no letter wins.",
        f"| letter | id |\n| --- | --- |\n{letters}",
        *_measured(report.get("measured", {}), bool(mapped)),
        "## Warnings",
        "Weights are frozen: a training step of any size destroys the circuit. To train beside one, use a side branch.",
        *report["warnings"],
    ]
    return "\n\n".join(lines) + "\n"


def answers_said(found: Mapping[str, Any]) -> str:
    """How many answers were right, and at how many positions of letters there is none. found: `measure.Answers`."""
    said = f"{found['asked']} answers, {found['wrong']} wrong"
    if not found["tied"]:
        return f"{said}; no letter ties"
    return (
        f"{said}; at {found['tied']} more positions of letters none leads, and at {found['tied_otherwise']} of these "
        "the model answers otherwise than the first of the best letters"
    )


def others_said(found: Mapping[str, Any]) -> str:
    """Whether tokens of others between a circuit's letters change its answers. found: `others.Others`."""
    if not found["answers"]:
        return "no answer was run with tokens of others between its letters"
    return (
        f"of {found['answers']} answers {found['changed']} change if tokens of others between its letters are left out"
    )


def ties_said(report: Mapping[str, Any]) -> str:
    """What is so where no letter leads, with the measured steps of floats beside what the host's logits span."""
    said, found = report["circuit_promise"]["ties"], report.get("measured", {}).get("answers")
    if not (report["mapped"] and found and found["tied"]):
        return said
    least, most = found["tie_steps"]
    span = report["host_promise"]["logit_bound"]
    if least > span:
        left = "rounding decides among letters, not they"
    elif most > span:
        left = "at some positions rounding decides among letters, not they"
    else:
        left = "they are rounded to multiples of these steps"
    return (
        f"{said}; there floats had steps of {least:.3g} to {most:.3g}, and the host's logits span {at_most(span)} at "
        f"most, so {left}"
    )


def _measured(measured: Mapping[str, Any], mapped: bool) -> list[str]:
    if not measured:
        return []
    host, circuit = measured["host"], measured["answers"]
    equal = (
        "bit for bit equal"
        if host["worst"] == 0
        else f"within {at_most(host['worst'])} of values up to {host['size']:.3g}"
    )
    apart = " (letters' own after letters apart)" if mapped else ""
    return [
        "## Measured",
        f"Host logits before and after on {host['positions']} positions{apart}: {equal}. "
        f"Circuit: {answers_said(circuit)}.",
        *([f"The host's tokens: {others_said(measured['others'])}."] if "others" in measured else []),
    ]
