"""`python -m verify.kernel DIR [CERTIFICATE]`: exit code 0 if the certificate proves the checkpoint, 1 if not.

It is 2 for bad usage. The certificate is DIR/certificate.json where none is named.
"""

import os
import sys
from pathlib import Path

from verify.kernel.certificate import NAME, claims_of, replay
from verify.kernel.claims import Refused
from verify.kernel.floats import Unproved

USAGE = "usage: python -m verify.kernel DIR [CERTIFICATE]"


def main(arguments: list[str]) -> int:
    """The command; returns its exit code."""
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    if not os.path.isdir(directory):  # also where the system cannot say
        print(f"{directory} is not a directory", file=sys.stderr)
        return 2
    try:
        proof = replay(directory, claims_of(Path(arguments[1]) if arguments[1:] else directory / NAME))
    except (Unproved, Refused) as reason:
        print(f"not proved: {reason}")
        return 1
    print("\n".join([*proof.lines(), f"  {proof.claims} claims"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
