"""Installs the wheel in dist/ in a new environment and runs it."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WHEELS = sorted((Path(__file__).resolve().parents[2] / "dist").glob("noether_ml-*.whl"), key=lambda p: p.stat().st_mtime)


@pytest.mark.skipif(not WHEELS, reason="run make wheel first")
def test_wheel(tmp_path):
    wheel = WHEELS[-1]
    assert wheel.stat().st_size < 60 << 20  # 60 MiB

    def run(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}).stdout

    run(sys.executable, "-m", "venv", "env")
    python = str(tmp_path / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", str(wheel))
    # doctor checks the installation; its output has the path of the library ONNX Runtime.
    assert "noether_ml/bin/libonnxruntime.so" in run(str(tmp_path / "env" / "bin" / "noether"), "doctor")
    # With the package on which the wheel depends, which another active environment may have, the
    # program computes with OpenBLAS and no package of the system is asked for.
    if importlib.util.find_spec("scipy_openblas32"):
        found = subprocess.run([str(tmp_path / "env" / "bin" / "noether"), "doctor"], capture_output=True, text=True, env={"PATH": "", "HOME": str(tmp_path), "VIRTUAL_ENV": sys.prefix})
        assert "libscipy_openblas.so" in found.stdout and "OpenBLAS" in found.stdout, found.stdout
    # A version such as 0.1.0-dev is 0.1.0.dev0 in the name of the wheel. Parts after + may differ.
    version = run(python, "-m", "noether_ml", "version").split()[1]
    assert version.split("+")[0].replace("-dev", ".dev0") == wheel.name.split("-")[1].split("+")[0]
    share = tmp_path / "env" / "share"
    assert (share / "man/man1/noether-run.1").is_file() and (share / "bash-completion/completions/noether").is_file()
    (notices,) = (tmp_path / "env").glob("lib/python3*/site-packages/noether_ml-*.dist-info/licenses/THIRD_PARTY_NOTICES")
    assert "google.golang.org/protobuf" in notices.read_text("utf-8")
    # noether_ml.demo() measures three small networks that come with the wheel. The text of its run
    # states that it has 3828 scores.
    assert "3828" in run(python, "-c", "import noether_ml; print(noether_ml.demo())")
    assert (tmp_path / "runs" / "demo" / "report.html").is_file()


@pytest.mark.skipif(not WHEELS, reason="run make wheel first")
def test_the_action_installs_a_wheel(tmp_path):
    """Run the steps of the GitHub action as its runner does: a script for each, with the inputs in variables."""
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((Path(__file__).resolve().parents[2] / ".github/actions/noether/action.yml").read_text("utf-8"))
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    environment = {"PATH": f"{tmp_path / 'env' / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
                   "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    inputs = {name: value.get("default", "") for name, value in action["inputs"].items()}
    inputs.update({"wheel": str(WHEELS[-1]), "approved": "approved", "candidate": "candidate", "fail-if": "accuracy.clean < -0.02"})

    def step(script, variables=()):
        return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True, env={**environment, **dict(variables)})

    for i, s in enumerate(action["runs"]["steps"]):
        if i == 1:  # installed, so that there are runs to compare
            for run in ("approved", "candidate"):
                done = step(f"noether demo -o {run}")
                assert done.returncode == 0, done.stderr
        done = step(s["run"], {name: inputs[re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) }}", text)[1]] for name, text in s["env"].items()})
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("### Noether: passed")


@pytest.mark.skipif(not WHEELS, reason="run make wheel first")
@pytest.mark.skipif(shutil.which("pipx") is None, reason="needs pipx")
def test_pipx(tmp_path):
    """Run the wheel by pipx, which takes the package on which it depends from the index."""
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = ["pipx", "run", "--python", "/usr/bin/python3", "--spec", str(WHEELS[-1]), "noether", "doctor"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert found.returncode == 0 and "noether_ml/bin/libonnxruntime.so" in found.stdout, found.stderr
    if Path("/usr/share/doc/libturbojpeg0").exists():  # from which make wheel takes it
        assert "noether_ml/bin/libturbojpeg.so.0" in found.stdout
