"""Checkpoints damaged at random, and what `construct verify` says of them.

    python -m tests.artifact.hostile 10000 [first case] [--over numbers|oversized] [--json]

Some hundred of these run in the test suite. Each takes a good checkpoint, damages one file (its bytes, a value
anywhere in its JSON, a tensor), writes the seal anew in half of the cases, and verifies in this process, by the
command and by the checker. Every case must end within ten seconds of processor time and 2 GB of memory, in
one-sentence refusals or complaints, and be accepted only where every file that a program reads is what it was.

`--over oversized` asks for too much instead: a circuit, a language, a config, a construction's parameters or a file of
any size up to 10^15 (`oversized.py`).
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from compiler import (
    Alphabet,
    Circuit,
    CompileError,
    InputLanguage,
    Int,
    Real,
    Tokens,
    compile,
    count,
    dot,
    numbers,
    readout_integer,
)
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CIRCUIT, MANIFEST, SEALED_FILES, WEIGHTS
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import sealed
from constructions.checkpoints import artifact, saved
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.guarantee import Proof, proof_of
from constructions.checkpoints.saved import verify_checkpoint
from constructions.construction import CircuitFamily
from constructions.registry import families
from constructions.selectivity.mqar import MQAR
from tests.artifact import oversized
from verify.certificates import Violated
from verify.checker.check import check

LONGEST = 10.0  # seconds of processor time
MOST_MEMORY = 2 << 30  # bytes of this process, at its largest
STOPPED = 120.0  # seconds after which a case is stopped that waits for something
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 10**9, -(10**9), 2**31, 2**63, 10**30, 0.0, -0.5, 1.5, 1e30, 1e308,
    "", "x", "mqar", "mamba", "mamba2", "s4d", "float16", "bfloat16", "<eos>", "a", "v0", "1/0", "\x00", "é" * 1000,
    [], {}, [[]], {"": {}}, [None] * 3, [0, 1], [-1, 10**9], ["a"], {"type": "Lowercase"}, {"x": 1},
]  # fmt: skip


def make(root: Path) -> list[Path]:
    """Two good checkpoints: a construction with a proof, and a circuit of one's own."""
    built = build(MQAR(kappa=2, vocab=3, length=16, max_length=64))
    artifact.save(built, {}, root / "mqar", None, proof_of(built))
    letters = Alphabet.of("a", "b", *(str(n) for n in range(5)))
    x = Tokens(letters)
    answer = readout_integer(count(x.is_in("a"), reset=x.is_in("b")), letters, {str(n): n for n in range(5)})
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 4, "strings of a and b")
    compile(Circuit("count-since", answer, language, end="b")).save(root / "own")
    return [root / "mqar", root / "own"]


def make_over_numbers(root: Path) -> list[Path]:
    """Three good models over numbers: exact ones on two mixers, and one with real inputs and a bound on its error."""
    n, x = numbers(Int(-9, 9), "n"), numbers(Real(-8, 8, 2), "x")
    compile(Circuit("sums", n.cumsum() - 3 * n.shift(1), length=6), "mamba2").save(root / "sums")
    compile(Circuit("products", n.cumsum() * n, length=4)).save(root / "products")
    compile(Circuit("reals", dot(x, x) * n, length=4)).save(root / "reals")
    return [root / name for name in ("sums", "products", "reals")]


MAKERS = {"tokens": make, "numbers": make_over_numbers, "oversized": make}


def files_of(directory: Path) -> tuple[str, ...]:
    """The files of a good checkpoint that its manifest seals, and the manifest."""
    return (*(name for name in SEALED_FILES if (directory / name).exists()), MANIFEST)


def damage(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """Damage one of the files and say how."""
    what = rng.choice((_bytes, _json, _json, _json, _text, _tensor, _missing))
    return what(directory, rng, files)


def reseal(directory: Path, files: tuple[str, ...]) -> None:
    """Write the manifest anew around the files, where that can be done."""
    path = directory / MANIFEST
    if not all((directory / name).is_file() for name in files):
        return  # reading a pipe would wait for ever
    with suppress(OSError, ValueError, RecursionError, CheckpointError):
        content = json.loads(path.read_text())
        if isinstance(content, dict):
            path.write_text(canonical_json(sealed(content, directory)))


def verdict(directory: Path) -> tuple[str, list[str]]:
    """("accepted", "failed" or "refused", what is said), as the command would."""
    try:
        found = verify_checkpoint(directory, "random", 2)
    except CompileError as error:  # a sentence for each reason
        return "refused", str(error).splitlines()[:1]
    except (CheckpointError, Violated, ValueError) as error:
        return "refused", str(error).splitlines()
    return ("accepted", []) if found.good else ("failed", found.complaints)


def judge(good: Path | None, bad: Path) -> tuple[str, str | None]:
    """(the verdict, what is wrong with it or None).

    good: what it was before it was damaged; None where another checkpoint, if it is a good one, may be accepted.
    """
    start, held = time.process_time(), largest_memory()
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, STOPPED)  # a case that would wait for ever is not waited for
    try:
        check(bad)  # the checker has its own reader; what it may accept is measured in tests/verify/checker
        name, said = verdict(bad)
    except Exception as error:  # what the command would show as a traceback
        return "traceback", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if (wrong := beyond(start, held)) is not None:
        return name, wrong
    if good is not None and name == "accepted" and (changed := _changed(good, bad)):
        return name, f"it was accepted, and {changed} changed"
    if name == "refused" and (len(said) != 1 or not said[0] or len(said[0]) > 2000):
        return name, f"it was not refused in one sentence: {said}"
    return name, None


def beyond(start: float, held: int) -> str | None:
    """What a case took too much of; None where it kept within the limits.

    start: the processor time when it began; held: the memory of this process at its largest before.
    """
    seconds, memory = time.process_time() - start, largest_memory()
    Worst.seconds = max(Worst.seconds, seconds)
    Worst.memory = max(Worst.memory, memory if memory > held else 0)
    if seconds > LONGEST:
        return f"it took {seconds:.0f} s"
    return f"it took {memory} bytes" if memory > max(held, MOST_MEMORY) else None


def largest_memory() -> int:
    """Bytes of this process at its largest until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class Worst:
    """The slowest case of this process, and its memory at its largest where a case made it larger."""

    seconds, memory = 0.0, 0


@contextmanager
def bounded_memory() -> Iterator[None]:
    """No more address space than the process has now and MOST_MEMORY: what asks for more gets a MemoryError."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MOST_MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _too_long(number: int, frame: object) -> None:
    raise RuntimeError(f"it was stopped after {STOPPED:.0f} s")


def run(
    cases: Iterable[int], report: Callable[[str], None] = lambda line: None, over: str = "tokens"
) -> tuple[Counter, list[str]]:
    """(how often each verdict came out, a line for each case that broke a rule); the same number, the same case."""
    counts: Counter = Counter()
    broken = []
    with tempfile.TemporaryDirectory() as folder, _built_once(), bounded_memory():
        root = Path(folder)
        originals = MAKERS[over](root)
        for case in cases:
            rng = random.Random(f"0/{case}")
            good, bad = rng.choice(originals), root / "bad"
            shutil.copytree(good, bad)
            how = (enlarge if over == "oversized" else damage)(bad, rng, files_of(good))
            if over == "oversized" or rng.random() < 0.5:
                reseal(bad, files_of(good))
                how += ", resealed"
            name, wrong = judge(None if over == "oversized" else good, bad)
            counts[name] += 1
            if wrong:
                broken.append(f"case {case}, {good.name}: {how}: {wrong}")
                report(broken[-1])
            shutil.rmtree(bad)
    return counts, broken


@contextmanager
def _built_once() -> Iterator[None]:
    """What is built again from the same parameters is built, and proved, once: most damage leaves them alone."""
    build, proof = saved.build, saved.proof_of
    known: dict[str, Built] = {}
    proofs: dict[Built, Proof] = {}

    def built(construction: CircuitFamily, most: int | None = None) -> Built:
        if not isinstance(construction, MQAR):
            return build(construction, most)
        key = repr(construction)
        known[key] = known.get(key) or build(construction, most)
        return known[key]

    def proved(one: Built) -> Proof:
        if one not in proofs:
            proofs[one] = proof(one)
        return copy.deepcopy(proofs[one])

    saved.build, saved.proof_of = built, proved
    try:
        yield
    finally:
        saved.build, saved.proof_of = build, proof


# Too much ----------------------------------------------------------------------------------------------


def enlarge(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """Let one of the files ask for too much, and say how."""
    what = rng.choice((_circuit, _circuit, _circuit, _circuit, _config_size, _parameter, _promise, _large_file))
    return what(directory, rng, files)


def any_size(rng: random.Random, most: float) -> int:
    """Up to 10^most, each order of magnitude as often."""
    return int(10 ** rng.uniform(1, most))


def _circuit(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """One of the families, in the promise too; a list is as long as a file of some MB holds it."""
    name = rng.choice(sorted(oversized.FAMILIES))
    n = any_size(rng, 5.5 if name in oversized.WRITTEN_OUT else 15)
    data = oversized.FAMILIES[name](json.loads((directory / CIRCUIT).read_text()), n)
    (directory / CIRCUIT).write_text(json.dumps(data))
    manifest = json.loads((directory / MANIFEST).read_text())
    manifest["promise"] |= data["promise"]
    (directory / MANIFEST).write_text(json.dumps(manifest))
    return f"{name} {n}"


def _config_size(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    content = json.loads((directory / "config.json").read_text())
    keys = rng.sample([key for key, value in content.items() if type(value) is int], rng.choice((1, 1, 2, 3)))
    for key in keys:
        content[key] = any_size(rng, 15)
    (directory / "config.json").write_text(json.dumps(content))
    return f"config.json: {', '.join(f'{key} = {content[key]}' for key in keys)}"


def _parameter(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """Of a construction: sizes, and a promise that fits them as far as it is looked at before the work."""
    manifest = json.loads((directory / MANIFEST).read_text())
    if not manifest.get("params"):
        manifest |= {"construction": rng.choice(sorted(families())), "params": {}}
        kind = families()[manifest["construction"]]
        manifest["params"] = {f.name: any_size(rng, 6) for f in dataclasses.fields(kind) if f.type == "int"}
    else:
        for key in rng.sample([k for k, v in manifest["params"].items() if type(v) is int], 2):
            manifest["params"][key] = any_size(rng, 8)
    with suppress(Exception):  # parameters that fit nothing are refused by themselves
        built = families()[manifest["construction"]](**manifest["params"])
        manifest["promise"]["language"]["tokens"] = built.letters()
    (directory / MANIFEST).write_text(json.dumps(manifest))
    return f"{manifest['construction']} {manifest['params']}"


def _promise(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    manifest = json.loads((directory / MANIFEST).read_text())
    key = rng.choice(("length", "error_bound", "tokens", "description", "last"))
    n = any_size(rng, 15)
    if key == "error_bound":
        text = rng.choice(("NaN", "Infinity", "-Infinity", "1e999", "-1e999"))
        manifest["promise"]["error_bound"] = 77777
        (directory / MANIFEST).write_text(json.dumps(manifest).replace("77777", text))
        return f"promise.error_bound = {text}"
    if key == "length":
        manifest["promise"]["length"] = n
    elif key == "tokens":
        manifest["promise"]["language"]["tokens"] = n
    elif key == "last":
        manifest["promise"]["language"]["edges"][0]["tokens"] = [[0, n]]
    else:
        manifest["promise"]["description"] = "x" * min(n, 10**7)
    (directory / MANIFEST).write_text(json.dumps(manifest))
    return f"promise: {key} {n}"


def _large_file(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """A file that is long, and holes for the most part; or weights whose header tells of much."""
    n = any_size(rng, 10)
    path = directory / rng.choice(files)
    if path.name == WEIGHTS and rng.random() < 0.5:
        header = json.dumps({"x": {"dtype": "F32", "shape": [n, n], "data_offsets": [0, 4 * n * n]}}).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        return f"{WEIGHTS} of {n} × {n} numbers"
    if rng.random() < 0.5:
        path.write_text(rng.choice(("[[],", '{"":', "1,", " ")) * min(n, 10**7))
    else:
        os.truncate(path, n)
    return f"{path.name} of {path.stat().st_size} bytes"


# Damage ----------------------------------------------------------------------------------------------


def _json_files(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in files if name.endswith(".json"))


def _bytes(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(files)
    data = bytearray(path.read_bytes())
    how = rng.choice(("flip", "cut", "append", "noise", "empty", "header"))
    if how == "flip":
        for _ in range(rng.choice((1, 1, 5, 50))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == "cut":
        data = data[: rng.randrange(len(data))]
    elif how == "append":
        data += rng.randbytes(rng.choice((1, 8, 1000)))
    elif how == "noise":
        data = bytearray(rng.randbytes(rng.choice((1, 100, 10_000))))
    elif how == "empty":
        data = bytearray()
    else:  # of a safetensors file: its length in 8 bytes
        data[:8] = rng.choice((b"\xff" * 8, b"\x00" * 8, (1 << 40).to_bytes(8, "little"), rng.randbytes(8)))
    path.write_bytes(data)
    return f"{how} {path.name}"


def _text(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(_json_files(files))
    deep = rng.choice((500, 5_000, 200_000))
    text = rng.choice(("[" * deep, "[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep, "7", "[]", "null", '"x"',
                       "NaN", "1" * 10_000, '{"a": 1, "a": 2}', "\ufeff{}"))  # fmt: skip
    path.write_text(text)
    return f"{path.name} is {text[:20]}"


def _json(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(_json_files(files))
    content = json.loads(path.read_text())
    place, where = content, ""
    while True:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        where += f".{key}"
        if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.25:
            break
        place = place[key]
    how = rng.choice(("value", "value", "value", "remove", "add", "near"))
    value = rng.choice(VALUES)
    if how == "remove":
        del place[key]
    elif how == "add":
        if isinstance(place, dict):
            place[rng.choice(("suppress_tokens", "x", "auto_map", "dtype", "stop"))] = value
        else:
            place.insert(key, value)
    elif how == "near" and type(place[key]) in (int, float):
        place[key] += rng.choice((-1, 1, 0.5, 10**9))
    elif how == "near" and isinstance(place[key], str):
        place[key] += rng.choice(("x", " ", "\n"))
    else:
        place[key] = value
    path.write_text(json.dumps(content))
    return f"{how} {path.name}{where} {value!r:.40}"


def _tensor(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / WEIGHTS
    tensors = load_file(path)
    name = rng.choice(sorted(tensors))
    flat, at = tensors[name].view(-1), rng.randrange(tensors[name].numel())
    how = rng.choice(("one", "one", "nan", "inf", "integers", "half", "missing", "extra", "shape", "metadata"))
    if how == "one":
        flat[at] = flat[at] * 1.5 + rng.choice((0, 0, 1, -0.0, 1e-30))
    elif how in ("nan", "inf"):
        flat[at] = float(how)
    elif how in ("integers", "half"):
        tensors[name] = tensors[name].to(torch.int64 if how == "integers" else torch.float16)
    elif how == "missing":
        del tensors[name]
    elif how == "extra":
        tensors[rng.choice(("lm_head.bias", "x", "backbone.layers.7.mixer.D"))] = torch.zeros(3)
    elif how == "shape":
        tensors[name] = tensors[name].reshape(-1)
    save_file(tensors, path, metadata={"format": "np"} if how == "metadata" else {"format": "pt"})
    return f"{how} {name}[{at}]"


def _missing(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(files)
    path.unlink()
    how = rng.choice(("gone", "directory", "endless", "pipe", "beside"))
    if how == "directory":
        path.mkdir()
    elif how == "endless":
        path.symlink_to("/dev/zero")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "beside":
        path.with_name("adapter_config.json").write_text("{}")
    return f"{how} {path.name}"


# What must not change ----------------------------------------------------------------------------------


def _changed(good: Path, bad: Path) -> str | None:
    """The first file that a program reads and that is another one now."""
    for name in files_of(good):
        if name == WEIGHTS:
            same = _bits(load_file(good / name)) == _bits(load_file(bad / name))
        else:
            same = _meaning(name, good / name) == _meaning(name, bad / name)
        if not same:
            return name
    extra = {p.name for p in bad.iterdir()} - {p.name for p in good.iterdir()}
    return min(extra, default=None)


def _bits(tensors: dict[str, torch.Tensor]) -> dict[str, tuple]:
    return {name: (tensor.shape, tensor.numpy().tobytes()) for name, tensor in tensors.items()}


def _meaning(name: str, path: Path) -> str:
    """The JSON text without what nobody computes with."""
    content = json.loads(path.read_text())
    if name == CIRCUIT:
        content.pop("groups", None)  # names for sets of letters; the streams tell ids
        for stream in content["streams"]:
            stream.pop("source", None)
    if name == MANIFEST:
        for key in ("files", "sha256", "card", "versions", "verification"):
            content.pop(key, None)
    if name in ("config.json", "generation_config.json"):
        content.pop("transformers_version", None)
    return json.dumps(content, sort_keys=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.artifact.hostile", description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=1000)
    parser.add_argument("first", type=int, nargs="?", default=0, help="number of the first case")
    parser.add_argument("--over", choices=sorted(MAKERS), default="tokens", help="what the checkpoints read")
    parser.add_argument("--numbers", nargs="+", type=int, help="the cases of these numbers instead")
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    cases = options.numbers or range(options.first, options.first + options.cases)
    verdicts, broken = run(cases, lambda line: None if options.json else print(line, flush=True), options.over)
    if options.json:
        worst = {"slowest": round(Worst.seconds, 1), "memory": Worst.memory}
        print(json.dumps({"cases": len(cases), "verdicts": verdicts, "failures": broken} | worst))
    else:
        print(", ".join(f"{name} {n}" for name, n in sorted(verdicts.items())), f"; {len(broken)} broke a rule")
        print(f"the slowest took {Worst.seconds:.1f} s of processor time, the process {Worst.memory >> 20} MiB at most")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
