"""Programs in processes that have nothing of ours, nor mamba_ssm, at a tenth of what such processes take to start.

Each is forked from one process that has imported torch and transformers, which takes some four processor seconds. That
one starts with the first program of a session and ends with the session. Where a test asks what is imported of other
people's packages, or what their environment variables do, it starts Python itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVER = """
import json, os, runpy, signal, sys, traceback, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this suite runs in the background
import torch
import transformers.generation, transformers.modeling_utils, transformers.models.auto

torch.set_num_threads(1)
ours = ("compiler", "constructions", "verify", "conformance", "tests", "mamba_ssm")
loaded = [name for name in sys.modules if name.split(".")[0] in ours]
if loaded:
    sys.exit(f"a process with nothing of ours has {loaded}")

def run(first, *rest):
    try:
        if first == "-c":
            sys.argv, sys.modules["__main__"] = ["-c", *rest[1:]], types.ModuleType("__main__")
            exec(compile(rest[0], "<string>", "exec"), sys.modules["__main__"].__dict__)
        elif first == "-m":
            sys.argv = ["-m", *rest[1:]]
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [first, *rest]
            runpy.run_path(first, run_name="__main__")
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, file in ((1, asked["out"]), (2, asked["err"])):
            os.dup2(os.open(file, os.O_WRONLY), number)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        first = asked["command"][0]
        sys.path[:0] = ["" if first in ("-c", "-m") else os.path.dirname(first), *asked["path"]]
        code = run(*asked["command"])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, flush=True)
"""


_used: list[float] = []


def spent() -> float:
    """The processor seconds of all these programs. Of a process that has not ended the system counts none."""
    return sum(_used)


@cache
def _server() -> subprocess.Popen[str]:
    """The process that all are forked from. It ends with its input, so with this process at the latest."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["HF_HOME"] = _home().name  # transformers keeps code of checkpoints there; it looks when imported
    command = [sys.executable, "-P", "-c", SERVER]
    return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def fresh(*command: str, cwd: Path = ROOT, path: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    """What `python *command` gives; the command is -c PROGRAM, -m MODULE or FILE.py, and its arguments. Modules are
    found in the folders of `path`, as with PYTHONPATH, and here.
    """
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        places = {"cwd": str(cwd), "path": [*map(str, [*path, ROOT])], "out": out.name, "err": err.name}
        server.stdin.write(json.dumps(places | {"command": command, "env": dict(os.environ)}) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline().split()
        assert answer, "the process that others are forked from has ended"
        _used.append(float(answer[1]))
        return subprocess.CompletedProcess(command, int(answer[0]), out.read(), err.read())
