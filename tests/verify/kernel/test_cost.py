"""The page says what the checker's files are for, and how large they are."""

from tests.verify.checker.size import FOLDER
from tests.verify.kernel.cost import ROLES, TABLE, files, functions, goes_on, makes_facts, table
from tests.verify.kernel.page import said


def test_the_page_has_the_cost():
    assert said(*TABLE) == table()


def test_each_file_has_one_role():
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py") if path.name != "__init__.py"}
    assert set(files()) == found and sum(len(names.split()) for names in ROLES.values()) == len(found)


def test_what_makes_facts_and_what_tries_again():
    code = "@kept\ndef a(): pass\ndef b(w): w.root('x')\ndef c():\n try: f()\n except Rejected: pass\n"
    code += "def d():\n try: f()\n except Rejected as r: raise r\ndef e():\n try: f()\n except OSError: pass\n"
    named = {f.name: f for f in functions(code)}
    assert [n for n, f in named.items() if makes_facts(f)] == ["a", "b"]
    assert [n for n, f in named.items() if goes_on(f)] == ["c"]
