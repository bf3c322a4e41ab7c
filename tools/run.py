#!/usr/bin/env python3
"""The two commands of the README: `python3 tools/run.py demo` and `python3 tools/run.py test`.

Each needs Python 3.11 or newer and nothing else. The first run makes a virtual environment and installs pullback
into it (editable); later runs find it there, and install again only when pyproject.toml has changed.
The environment is `.venv` beside pyproject.toml, or the folder that PULLBACK_VENV names.

Further arguments go to the command: `python3 tools/run.py test tests/ir -x`, `python3 tools/run.py demo --quick`.

This file keeps to syntax that old versions of Python read, so that they reach the sentence about the version.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)

# name: (what pip installs, what Python runs, what it is for)
COMMANDS = {
    "demo": (".", ["-m", "pullback", "demo"], "train two models on handwritten digits with compiled gradients"),
    "test": (".[dev]", ["-m", "pytest", "-n", "2"], "run the test suite"),
}


def main(arguments: list[str]) -> int:
    """Run one command in the project's environment and return its exit status."""
    if sys.version_info < OLDEST:
        return complain(f"pullback needs Python 3.11 or newer, this is {sys.version_info[0]}.{sys.version_info[1]}.")
    if not arguments or arguments[0] not in COMMANDS:
        lines = [f"  python3 tools/run.py {name:5} {entry[2]}" for name, entry in COMMANDS.items()]
        return complain("which command?\n" + "\n".join(lines))
    requirement, command, _ = COMMANDS[arguments[0]]
    python = environment_with(requirement)
    if python is None:
        return 1
    return subprocess.call([python, *command, *arguments[1:]], cwd=str(ROOT))


def environment_with(requirement: str) -> str | None:
    """Return the environment's interpreter with `requirement` installed, or None after saying what failed."""
    folder = Path(os.environ.get("PULLBACK_VENV") or ROOT / ".venv").absolute()
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        print(f"making the environment {folder}", file=sys.stderr)
        try:
            venv.create(str(folder), with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            complain(f"no virtual environment in {folder}: {error}\n(Debian and Ubuntu: install python3-venv.)")
            return None
    stamp = folder / f"installed-{hashlib.sha256(requirement.encode()).hexdigest()[:8]}"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {requirement}", file=sys.stderr)
        if subprocess.call([str(python), "-m", "pip", "install", "-q", "-e", requirement], cwd=str(ROOT)):
            complain("the installation failed: see pip's message above.")
            return None
        stamp.write_text(wanted)
    return str(python)


def complain(message: str) -> int:
    """Print one message and return the exit status of wrong usage."""
    print("tools/run.py: " + message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
