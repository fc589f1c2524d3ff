"""What others raise, in one line."""

from __future__ import annotations

from conformance.interrupt import interrupted


def sentence(error: BaseException) -> str:
    """What was raised, in one line; its type alone where that is all it says, or its text cannot be had. What no file
    or terminal shows, such as half a surrogate pair, is escaped.
    """
    try:
        said = str(error).strip()
    except BaseException as another:  # also one that says to end the process
        if isinstance(another, KeyboardInterrupt) and interrupted():
            raise
        said = ""
    line = ": ".join(filter(None, [type(error).__name__, said])).splitlines()[0][:300]
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
