"""The entry point of `construct`: whatever happens, a sentence for people and an exit code, never a traceback of
theirs.

Exit codes: 0 done and verified, 1 verification failed, 2 bad usage, 130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import re
import sys
from pathlib import Path
from typing import TextIO

from constructions.command.ending import keep_code, no_silent_end

_YOUNG = 20_000  # objects; what is imported and compiled stays, and is gone over in vain at each 700


def main() -> None:
    """Run the command line; nothing heavy is imported before this, so that an early Ctrl-C is met here too."""
    gc.set_threshold(_YOUNG)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by numpy and torch; with more, threads mostly wait, and spin
    alone = sys.stdout is sys.__stdout__  # and not called by a program of others
    sys.stdout, sys.stderr = (_open(stream) for stream in (sys.stdout, sys.stderr))
    try:
        with no_silent_end(_ended):
            code = _run()
        sys.stdout.flush()
        if _is_for_programs():
            from constructions.command.stdout import end_stdout

            end_stdout()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        _leave_stdout()
        code = 128 + 13  # as a shell tells SIGPIPE: 1 would say that something is wrong
    except OSError as full:  # what was still held back could not be written
        _leave_stdout()
        code = _told(_unwritten(full), 2)
    if code == 130:
        print("interrupted", file=sys.stderr)
    if code and alone:
        keep_code(code)
    raise SystemExit(code)


def _ended() -> int:
    """What is said where a file of the user's ends the process as if all were done; the exit code."""
    code = _told("a file that this command runs has ended it by os._exit(0): there is no result.", 2)
    sys.stdout.flush()
    return code


def _open(stream: TextIO | None) -> TextIO:
    """The stream, or one that nobody reads where it was closed before the program began (`>&-`)."""
    return stream if stream is not None else Path(os.devnull).open("w")


def _run() -> int:
    starting = _show_life()
    from constructions.command.cli import command_line

    if starting:
        sys.stderr.write(_CLEAR)
    try:
        return command_line()(standalone_mode=False) or 0
    except BrokenPipeError:
        raise
    except SystemExit:
        raise BrokenPipeError from None  # click ends the program itself, with 1, where its output is closed
    except (ValueError, OSError, ImportError, MemoryError, OverflowError) as error:
        return _refused(error)
    except Exception as error:
        if type(error).__name__ == "Abort":  # what an interrupt becomes inside of a command
            return 130
        if type(error).__name__ == "Miscompiled":  # a mistake of ours; the sentence says so, and what to report
            return _told(str(error), 1)
        if not hasattr(error, "format_message"):
            raise
        return _misused(error)


def _leave_stdout() -> None:
    from constructions.command.stdout import leave_stdout

    leave_stdout()


def _unwritten(error: OSError) -> str:
    return f"the output cannot be written: {(error.strerror or str(error)).lower()}."


_CLEAR = "\r\x1b[2K"


def _show_life() -> bool:
    """Say at once, on a terminal, that the program has started: its own libraries take most of a second to import."""
    shown = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb" and len(sys.argv) > 1
    if shown:
        sys.stderr.write("starting …")
        sys.stderr.flush()
    return shown


def _refused(error: Exception) -> int:
    """What a command refuses, or finds wrong: one sentence for each reason."""
    from compiler.artifact.errors import CheckpointError
    from verify.certificates.certificate import Violated

    if isinstance(error, Violated):
        return _told(f"the certificate fails: {error}", 1)
    if isinstance(error, CheckpointError):
        return _told(str(error), error.exit_code or 2)
    if isinstance(error, OSError) and error.filename is not None:
        return _told(f"{error.filename}: {(error.strerror or str(error)).lower()}.", 2)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # of a stream, which has no name
        try:
            sys.stdout.flush()
        except OSError:
            _leave_stdout()
        return _told(_unwritten(error), 2)
    if isinstance(error, MemoryError):
        size = re.search(r"[\d.]+ \w*B\b", str(error))
        at_once = f" ({size[0]} for one array)" if size else ""
        return _told(f"there is not enough memory for this{at_once}; choose smaller sizes.", 2)
    return _told(str(error) or f"this is refused without a reason ({type(error).__name__}).", 2)


def _told(sentence: str, code: int) -> int:
    """A sentence for people, and with --json an object for programs; the exit code."""
    from compiler.language.markdown import printable

    print(printable(sentence), file=sys.stderr)
    if _is_for_programs():
        from constructions.command.stdout import told

        try:
            told(json.dumps({"error": sentence, "exit_code": code}))
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError:  # full: there is no place for it either, and the sentence stands on standard error
            _leave_stdout()
    return code


def _is_for_programs() -> bool:
    return "--json" in sys.argv


def _misused(error) -> int:
    """An error of the command line itself: its sentence, and where the options are told."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    path = context.command_path if context else _command_named()
    said = error.format_message().rstrip(".").replace("Value error, ", "")
    return _told(f"{said}; `{path} --help` shows what there is.", error.exit_code)


def _command_named() -> str:
    """The command that the arguments name, for an error that does not say of which it is."""
    from constructions.command.cli import command_line

    path, found = ["construct"], command_line()
    for word in sys.argv[1:]:
        found = getattr(found, "commands", {}).get(word)
        if found is None:
            break
        path.append(word)
    return " ".join(path)


if __name__ == "__main__":
    main()
