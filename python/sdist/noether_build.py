"""The build backend (PEP 517) of the source distribution, which internal/dist writes.

The command is a Go program, so this builds it, with ONNX Runtime from npm, and packs the wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDS = "building noether-ml from source needs Go 1.26 or later, a C compiler and npm, and {} not found: install a wheel with pip install --only-binary :all: noether-ml, or see https://go.dev/dl"


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    compiler = os.environ.get("CC", "cc").split()[0]
    missing = [name for name in ("go", compiler, "npm") if shutil.which(name) is None]
    if missing:
        sys.exit(NEEDS.format(" and ".join(missing) + (" was" if len(missing) == 1 else " were")))
    for folder in ("internal/runtime", "internal/report/html/web"):
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", folder=ROOT / folder)
    before = set(Path(wheel_directory).glob("*.whl"))
    run("go", "run", "./internal/dist", "-o", str(Path(wheel_directory).resolve()), folder=ROOT)
    (built,) = set(Path(wheel_directory).glob("*.whl")) - before
    return built.name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    sys.exit("the source distribution of noether-ml is written by make release, in a checkout")


def run(*command: str, folder: Path) -> None:
    # GOFLAGS: the source has no repository, of which Go could write a commit into the program.
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -buildvcs=false"})
