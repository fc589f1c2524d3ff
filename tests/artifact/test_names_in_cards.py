"""Names that a user gives stand in a model card as text: no line, mark or tag of theirs becomes one of the card's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, emit
from compiler.disguise.directory import _card as disguise_card
from compiler.graft.card import graft_card
from compiler.language.markdown import code, one_line, prose

HOSTILE = "x\n\n## Proof\n\nproved `for` <b>all</b> [texts](http://a.b) *now* | \x1b[31m\u202e"
LETTERS = ("a", "b", "y", "n", "`", "``</p><h2>Proof</h2>", "<b>", "|", "*", "[x](y)", "\x1b[31m", "#")


def _made(**changed):
    letters = Alphabet.of(*LETTERS)
    tokens = Tokens(letters)
    said = changed.get("description", "strings of a and b")
    inputs = tuple(letter for letter in LETTERS if letter not in ("y", "n"))
    language = InputLanguage.of(letters, "s", [("s", "s", inputs)], 20, said)
    output = emit(letters, (tokens.is_in("a").cumsum() >= 3, "y"), otherwise="n")
    return Circuit(changed.get("name", "three"), output, language)


def task(tokens):
    return "y" if tokens.count("a") >= 3 else "n"


def hostile_task():
    def wanted(tokens):
        return task(tokens)

    wanted.__name__ = HOSTILE.replace("`for`", "for`")  # what follows is outside where the backtick ends a span
    wanted.__doc__ = "Whether <h2>Proof</h2> `a`\u2028## Proof stands *three* times."
    return wanted


def _skeleton(card: str) -> list[tuple[str, str]]:
    """What a reader of Markdown makes of a card: its blocks, and the marks within them."""
    found = []
    for token in MarkdownIt().enable("table").parse(card.split("---\n", 2)[2]):
        if token.type == "heading_open":
            found.append(("heading", token.tag))
        found += [
            (part.type, "") for part in token.children or () if part.type in ("html_inline", "link_open", "em_open")
        ]
        if token.type.startswith("html"):
            found.append((token.type, ""))
    return found


def test_a_hostile_name_changes_no_heading_and_adds_no_mark(tmp_path: Path) -> None:
    compile(_made()).save(tmp_path / "plain", task=task)
    compile(_made(name=HOSTILE, description=HOSTILE)).save(tmp_path / "hostile", task=hostile_task())
    plain, hostile = ((tmp_path / name / "README.md").read_text("utf-8") for name in ("plain", "hostile"))
    assert _skeleton(plain) == _skeleton(hostile)
    assert {kind for kind, _ in _skeleton(plain)} == {"heading", "em_open"}
    assert "\x1b" not in plain + hostile and "\u202e" not in hostile
    assert hostile.count("\n## ") == plain.count("\n## ") and "\n# x ## Proof" in hostile


def _report(name: str) -> dict:
    """Of a graft, as its card reads it."""
    promise = {
        "description": name,
        "length": 5,
        "lead_needed": 1.0,
        "least_lead": 1.0,
        "level": "exact",
        "ties": "none",
    }
    sizes = {"class": "Host", "layers": 1, "d_model": 8}
    return {
        "circuit": name,
        "host": sizes,
        "result": sizes,
        "host_promise": {"text": "all stays", "proved": "no"},
        "circuit_promise": promise | {"loudest_stream": 1.0},
        "mapped": ["a"],
        "letters": {"|" if name == HOSTILE else "b": 7},
        "warnings": [],
    }


def test_other_cards_keep_their_headings_too() -> None:
    disguised = lambda name: disguise_card({"circuit": name, "promise": {"description": name}}, 1, None)
    for card in (disguised, lambda name: graft_card(_report(name))):
        assert _skeleton(card("plain")) == _skeleton(card(HOSTILE))
    assert "<td><code>|</code></td>" in MarkdownIt().enable("table").render(graft_card(_report(HOSTILE)))


@pytest.mark.parametrize("text", [HOSTILE, *LETTERS, "a` ``b", "``", "- a", "1. a", "> a", "~~~", "a\\`b", "&lt;"])
def test_text_stays_text(text: str) -> None:
    (_, inline, *rest) = MarkdownIt().parse(prose(text) or "-")
    assert inline.type == "inline" and len(rest) == 1
    assert "".join(part.content for part in inline.children) == (one_line(text) or "-")
    (_, inline, *rest) = MarkdownIt().parse(f"a {code(text)} b")
    assert len(rest) == 1 and [part.type for part in inline.children] == ["text", "code_inline", "text"]
    assert inline.children[1].content.strip() == one_line(text).strip()
    (row,) = re.findall(r"<td>(.*)</td>", MarkdownIt().enable("table").render(f"| a |\n| - |\n| {code(text, True)} |"))
    assert row.startswith("<code>") and row.endswith("</code>") and row.count("<code>") == 1


def test_plain_names_stay_as_they_are() -> None:
    for name in ("count-since", "my_circuit", "keep nth (2)", "S_5, every element", "k0 … k15", "strings of a, b, c"):
        assert prose(name) == name
    assert code("a b") == "`a b`"


class Loud(str):
    """A text that holds itself equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize("kind", [np.str_, Loud, type("Plain", (str,), {"__str__": lambda self: "z"})])
def test_a_subclass_of_str_answers_by_its_value(kind: type, tmp_path: Path) -> None:
    from verify import verify

    compile(_made()).save(tmp_path / "c", task=lambda tokens: kind(task(tokens)))
    assert '"y"' in (tmp_path / "c" / "answers.json").read_text("utf-8")
    assert "right on all" in str(verify(_made(), lambda tokens: kind(task(tokens)), upto=2))
    with pytest.raises(ValueError, match="the circuit answers 'n', the task 'y'"):
        compile(_made()).save(tmp_path / "d", task=lambda tokens: kind("y"))
    assert "right on all" not in str(verify(_made(), lambda tokens: kind("y"), upto=2))
