"""Installs mamba-ssm without its CUDA kernels, beside the torch that is there: `construct install-mamba`.

Its set-up script imports torch, hence torch first and no build isolation. Both variables are needed: the first keeps
it from compiling CUDA kernels, the second from guessing the address of a prebuilt CUDA wheel. Its declared
dependencies are several GB of GPU compilers that nothing here uses, hence --no-deps.

Standard library only, so that it also runs as a file, before anything is installed:
`python constructions/command/install_mamba.py --constraint constraints.txt`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

WITHOUT_CUDA = {"MAMBA_SKIP_CUDA_BUILD": "TRUE", "MAMBA_FORCE_BUILD": "TRUE"}
NEEDED = ("torch", "transformers", "einops", "setuptools", "wheel", "packaging")
WANTED = "mamba-ssm>=2.3,<3"


class InstallError(ValueError):
    """pip did not do it; the message is one sentence for people."""


def install(constraints: Sequence[Path] = (), say: Callable[[str], None] = print) -> None:
    """Install what mamba-ssm needs, then mamba-ssm, into the running Python; an installed torch stays as it is.

    constraints: pip constraint files. InstallError where pip fails; nothing to do where mamba-ssm is installed.
    """
    found = installed_version("mamba-ssm")
    if found is not None:
        say(f"mamba-ssm {found} is installed already")
        return
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "torch.txt"
        torch = installed_version("torch")
        kept.write_text("" if torch is None else f"torch=={torch}\n")
        options = [part for path in (*constraints, kept) for part in ("--constraint", str(path))]
        say("installing what mamba-ssm needs" + ("" if torch is None else f"; torch {torch} stays"))
        _pip([*options, *NEEDED], {})
        say("building mamba-ssm without CUDA kernels")
        _pip([*options, "--no-build-isolation", "--no-deps", WANTED], WITHOUT_CUDA)
    say(f"mamba-ssm {installed_version('mamba-ssm')} is installed")


def installed_version(package: str) -> str | None:
    """The version of an installed distribution, None where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _pip(arguments: list[str], variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
    if subprocess.run(command, env=os.environ | variables).returncode:
        raise InstallError(f"pip could not install {arguments[-1]}: its own message stands above.")


def main() -> None:
    """The same as a file: options --constraint FILE (may be repeated)."""
    parser = argparse.ArgumentParser(description="Install mamba-ssm without its CUDA kernels.")
    parser.add_argument("--constraint", type=Path, action="append", default=[], help="a pip constraint file")
    try:
        install(parser.parse_args().constraint)
    except InstallError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
