"""The command: python -m noether_ml."""

from __future__ import annotations

import os
import subprocess
import sys

from ._command import Error, program


def main() -> None:
    try:
        if sys.argv[1:2] == ["export-wandb"]:  # in Python, as it uses the package wandb
            from . import _wandb

            sys.exit(_wandb.main(sys.argv[2:]))
        path = program()
    except Error as e:
        sys.exit(f"noether: {e}")
    if os.name == "nt":  # Windows, where execv does not wait for the program
        sys.exit(subprocess.call([path, *sys.argv[1:]]))
    os.execv(path, ["noether", *sys.argv[1:]])


if __name__ == "__main__":
    main()
