"""Run every client on every checkpoint and write the table of docs/export.md: `python -m tests.export`.

`make runtimes` does. Clients whose packages differ from the project's own (another transformers, Triton) are taken
from folders that it installs, given as CLIENT=FOLDER; without its folder such a client keeps the row that it has.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from compiler.artifact.formats import HUGGING_FACE, writer_of
from compiler.export import read
from tests.export.cases import GATED, GROUPED, LARGE, SMALL, Case, ask, made

ROOT = Path(__file__).parents[2]
NUMBERS, PAGE = ROOT / "docs" / "export.json", ROOT / "docs" / "export.md"
BEGIN, END = "<!-- clients: written by `make runtimes` -->", "<!-- end of clients -->"


@dataclass(frozen=True)
class Client:
    """A program: the format that it reads, whether it needs a folder of its own, and which checkpoints it takes."""

    format: str
    own_folder: bool = False
    second: bool = True  # Mamba-2 too
    large: bool = True
    groups: bool = True  # each with a norm of its own
    gated: bool = False  # those for gated MLPs, and no others

    def takes(self, name: str) -> bool:
        """Whether it is asked of the checkpoint of this name."""
        if self.gated or name in GATED:
            return self.gated and name in GATED
        small = self.large or name not in LARGE
        return small and (self.second or name.endswith("-mamba")) and (self.groups or name not in GROUPED)


CLIENTS = {
    "transformers_client": Client(HUGGING_FACE),
    "transformers_old": Client(HUGGING_FACE, own_folder=True, groups=False),
    "mambapy_client": Client(HUGGING_FACE, second=False, groups=False),
    "llama_cpp": Client("gguf"),
    "onnx_runtime": Client("onnx"),
    "mlx_client": Client("mlx", groups=False),
    "mamba_ssm_client": Client("mamba-ssm"),
    "mamba_ssm_mlp": Client("mamba-ssm-mlp", gated=True),
    "triton_client": Client("mamba-ssm", own_folder=True, large=False),
}
_SCRIPTS = {"transformers_old": "transformers_client", "mamba_ssm_mlp": "mamba_ssm_client"}


@dataclass
class Row:
    """What one client said: version, checkpoints, logits compared, ways of running, chains written, differences."""

    client: str
    version: str
    format: str
    checkpoints: int
    logits: int
    modes: list[str]
    chains: int
    wrong: list[str]


def row(client: str, cases: list[Case], place: Path, folder: str | None) -> Row:
    """Export the checkpoints that a client takes and ask it."""
    what = CLIENTS[client]
    taken = [case for case in cases if what.takes(case.name)]
    pairs = []
    for case in taken:
        path = case.directory
        if what.format != HUGGING_FACE:
            path = place / f"{case.name}.{what.format}"
            if not path.exists():
                writer_of(what.format)(read(case.directory), path, False)
        pairs.append((case, path))
    extra = {"PYTHONPATH": os.pathsep.join([*([folder] if folder else []), str(ROOT)])}
    version, answers = ask(_SCRIPTS.get(client, client), pairs, place, extra)
    modes = list(dict.fromkeys(mode for answer in answers.values() for mode in answer.logits))
    return Row(
        client,
        version,
        what.format,
        len(taken),
        sum(logits.size for answer in answers.values() for logits in answer.logits.values()),
        modes,
        sum(len(answer.written) for answer in answers.values()),
        [sentence for case in taken for sentence in answers[case.name].wrong(case)],
    )


def table(rows: list[dict]) -> str:
    """The rows as Markdown, between the marks of the page."""
    lines = ["| client | reads | checkpoints | logits compared | run | chains written | verdict |"]
    lines.append("|---|---|---|---|---|---|---|")
    for found in rows:
        verdict = "bit-exact" if not found["wrong"] else "; ".join(found["wrong"])
        cells = (found["version"], found["format"], found["checkpoints"], f"{found['logits']:,}")
        runs = ", ".join(found["modes"])
        lines.append("| " + " | ".join(map(str, (*cells, runs, found["chains"] or "", verdict))) + " |")
    return "\n".join([BEGIN, *lines, END])


def with_table(page: str, rows: list[dict]) -> str:
    """The page with its table replaced."""
    start, end = page.index(BEGIN), page.index(END) + len(END)
    return page[:start] + table(rows) + page[end:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--own", nargs="*", default=[], metavar="CLIENT=FOLDER", help="packages of a client's own")
    parser.add_argument("--only", nargs="*", default=list(CLIENTS), help="run these clients and keep the other rows")
    given = parser.parse_args()
    folders = dict(pair.split("=", 1) for pair in given.own)
    known = {found["client"]: found for found in json.loads(NUMBERS.read_text())} if NUMBERS.exists() else {}
    asked = [name for name in CLIENTS if name in given.only and (name in folders or not CLIENTS[name].own_folder)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        every = (SMALL | GROUPED | LARGE | GATED).items()
        taken = {name: built for name, built in every if any(CLIENTS[client].takes(name) for client in asked)}
        cases = [made(name, construction, place / name) for name, construction in taken.items()]
        for client in asked:
            known[client] = asdict(row(client, cases, place, folders.get(client)))
            print(known[client]["version"], known[client]["wrong"] or "bit-exact", flush=True)
            rows = [known[name] for name in CLIENTS if name in known]
            NUMBERS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
            PAGE.write_text(with_table(PAGE.read_text("utf-8"), rows), "utf-8")
    return int(any(found["wrong"] for found in rows))


if __name__ == "__main__":
    sys.exit(main())
