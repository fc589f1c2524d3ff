"""JUnit XML of a report, for services that run tests: one test case for each case."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from conformance.findings import RAN, Finding
from conformance.report import Tested

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(tested: Sequence[Tested]) -> str:
    """The whole document. A wrong case is a failure, one that failed to run an error; no times, for they differ."""
    root = ET.Element("testsuites", name="conformance")
    for each in tested:
        counts = {
            status: sum(f.status == status for f in each.findings) for status in ("failed", "failed to run", "skipped")
        }
        suite = ET.SubElement(
            root, "testsuite", name=_text(f"{each.name} ({each.kind})"), tests=str(len(each.findings)),
            failures=str(counts["failed"]), errors=str(counts["failed to run"]), skipped=str(counts["skipped"]),
        )  # fmt: skip
        for finding in each.findings:
            _case(suite, each, finding)
    return _document(root)


def no_verdict(why: str) -> str:
    """The document of a run that came to none: one error, which says why."""
    root = ET.Element("testsuites", name="conformance")
    suite = ET.SubElement(root, "testsuite", name="conformance", tests="1", failures="0", errors="1", skipped="0")
    case = ET.SubElement(suite, "testcase", classname="conformance", name="the run")
    ET.SubElement(case, "error", message=_text(why))
    return _document(root)


def _document(root: ET.Element) -> str:
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, tested: Tested, finding: Finding) -> None:
    stage = f"{finding.op}.{finding.stage}" if tested.several else finding.stage
    where = _text(f"{tested.name}.{tested.kind}.{stage}")
    case = ET.SubElement(suite, "testcase", classname=where, name=_text(_name(finding)))
    said = {"failed": "failure", "failed to run": "error", "skipped": "skipped"}.get(finding.status)
    if said is not None:
        ET.SubElement(case, said, message=_text(finding.says)).text = _text("\n".join(details(finding)))


def _name(finding: Finding) -> str:
    """That of the case, and what was compared, where its name promises more."""
    return f"{finding.case} ({finding.compared})" if finding.compared and finding.status in RAN else finding.case


def details(finding: Finding) -> list[str]:
    """What is known of a wrong case beside what it says, a line each."""
    if finding.status != "failed":
        return []
    known = [f"wrong: {finding.entries}"] if finding.entries else []
    if finding.position is not None:
        known.append(f"first at position {finding.position}{finding.near and ', '}{finding.near}")
    return [*known, f"likely: {finding.cause}" if finding.cause else f"asked there: {finding.asks}"]


def _text(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
