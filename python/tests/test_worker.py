"""Functions of Python in study files, each in a process that the command starts."""

import csv
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from noether_ml import _command

MODULE = '''
import os, sys, time, numpy, pathlib
with open(pathlib.Path(__file__).with_name("imported"), "a") as f:
    f.write("yes\\n")
import torch
from torch import nn

def net(factor=1):
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)).eval(), (3, 16, 16)

class Broken(nn.Module):
    def __init__(self, fail):
        super().__init__()
        self.net, self.fail, self.calls = net()[0], fail, 0
    def forward(self, x):
        self.calls += 1
        y = self.net(x)
        return self.fail(y) if self.calls > 8 else y

def broken(fail): return Broken(fail), (3, 16, 16)
def dies(): return broken(lambda y: os._exit(7))
def hangs(): return broken(lambda y: time.sleep(600))
def nan(): return broken(lambda y: y * float("nan"))
def shape(): return broken(lambda y: y[:, :2])
def batch(): return broken(lambda y: y[:1])
def prints(): print("a model that prints"); return broken(lambda y: print("and again") or y)
def slow():
    pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()))
    return broken(lambda y: time.sleep(1) or y)
def raises(): raise ValueError("no luck\\nand more")
def slowly():
    pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()))
    time.sleep(2)
    return broken(lambda y: y)

class Identity(torch.autograd.Function):
    """The identity, whose derivatives fail."""
    @staticmethod
    def forward(ctx, x, back, ahead):
        ctx.back, ctx.ahead = back, ahead
        return x.clone()
    @staticmethod
    def backward(ctx, dy): return ctx.back(dy), None, None
    @staticmethod
    def jvp(ctx, dx, *_): return ctx.ahead(dx)

class Sloped(nn.Module):
    def __init__(self, back=lambda d: d, ahead=lambda d: d):
        super().__init__()
        self.net, self.fails = net()[0], (back, ahead)
    def forward(self, x): return Identity.apply(self.net(x), *self.fails)

def slope_dies(): return Sloped(back=lambda d: os._exit(7)), (3, 16, 16)
def slope_stalls(): return Sloped(back=lambda d: time.sleep(600)), (3, 16, 16)
def sloped(ahead):
    import torch._dynamo, torch._decomp.decompositions_for_jvp  # which PyTorch imports at the first tangent, and takes seconds for
    return Sloped(ahead=ahead), (3, 16, 16)

def tangent_dies(): return sloped(lambda d: os._exit(7))
def tangent_stalls(): return sloped(lambda d: time.sleep(600))
def tangent_prints(): return sloped(lambda d: print("from a tangent") or d)

def dark(image, strength): return image * (1 - strength)
def dark_later(image):
    pathlib.Path(__file__).with_name("pid").touch()
    time.sleep(0 if "later" in sys.modules else 2)
    import later
    return image * later.FACTOR
def flip(image): print("to standard output"); return image[:, ::-1]
def dark_nan(image): return image * float("nan")
def dark_dies(image): os._exit(3)
def dark_hangs(image): time.sleep(600)
def dark_shape(image): return image[1:]
def largest(clean, moved): return abs(clean - moved).max(1)
def largest_dies(clean, moved): os._exit(3)
def largest_hangs(clean, moved): time.sleep(600)
def largest_nan(clean, moved): return clean[:, 0] * float("nan")
def largest_of_the_batch(clean, moved): return abs(clean - moved).max(1) / abs(clean).max()
'''

STUDY = {
    "name": "worker", "python": sys.executable, "data": [{"name": "shapes", "shapes": {"n": 40, "size": 16, "seed": 2}}],
    "models": [{"name": "net", "python": "mine:net", "preprocess": "none", "layers": ["0", "output"], "scores": "logits"}],
    "transforms": [{"name": "flip", "flip": "horizontal"}], "measures": ["distance"],
}


@pytest.fixture
def noether(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MODULE)
    environment = {**os.environ, "PYTHONPATH": "", "NOETHER_SERVER_TIMEOUT": "20s"}

    def run(study, *flags, folder="out", command="run", allow=True):
        (tmp_path / "study.yaml").write_text(json.dumps({**STUDY, **study}))
        if "hangs" in json.dumps(study):
            environment["NOETHER_SERVER_TIMEOUT"] = "4s"
        arguments = ["run", "study.yaml", "-o", folder] if command == "run" else [command]
        return subprocess.run([_command.program(), *arguments, *(["--allow-python"] if allow else []), *flags], cwd=tmp_path, env=environment,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=180)

    run.path, run.environment = tmp_path, environment
    return run


def scores(path):
    with open(path / "scores.csv", newline="") as f:
        return list(csv.DictReader(f))


def processes(marker):
    """Return the numbers of running processes whose folder of modules is marker."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cwd/mine.py"), open(f"/proc/{entry}/cmdline") as f:
                if "noether_ml._worker" in f.read() and os.readlink(f"/proc/{entry}/cwd") == str(marker):
                    found.append(int(entry))
        except OSError:
            pass
    return found


def test_models_transformations_and_measures(noether):
    whole = {"transforms": [{"name": "flip", "flip": "horizontal"}, {"name": "mine", "python": {"function": "mine:flip"}},
                            {"name": "dark", "python": {"function": "mine:dark", "strength": {"values": [0.1, 0.3]}}}],
             "measures": ["distance", "effective-invariance", {"python": {"function": "mine:largest"}}]}
    done = noether(whole, "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)  # what functions print is not there
    assert "mine:flip prints: to standard output" in done.stderr
    found = {(r["transform"], r["parameter"], r["layer"], r["statistic"]): float(r["value"]) for r in scores(noether.path / "out")}
    assert found["flip", "", "0", "l2"] == pytest.approx(found["mine", "", "0", "l2"], abs=1e-6) != 0
    assert 0 < found["dark", "0.1", "0", "largest"] < found["dark", "0.3", "0", "largest"]
    assert not processes(noether.path)
    # The resolved study has the hashes, and says where the modules are.
    study = noether.path / "out/study.yaml"
    assert "mine:dark@" in study.read_text() and "sha256" in study.read_text()
    again = subprocess.run([_command.program(), "run", study, "-o", noether.path / "again", "--allow-python"], env=noether.environment, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert [{**r, "study": ""} for r in scores(noether.path / "again")] == [{**r, "study": ""} for r in scores(noether.path / "out")]
    # Another source is another function.
    (noether.path / "mine.py").write_text(MODULE.replace("1 - strength", "1 - 2 * strength"))
    other = subprocess.run([_command.program(), "run", study, "-o", noether.path / "again", "--allow-python"], env=noether.environment, capture_output=True, text=True)
    assert other.returncode == 1 and "differs from the one recorded in the study" in other.stderr and other.stderr.count("\n") == 1
    done = noether(whole)
    assert done.returncode == 0, done.stderr
    changed = {(r["transform"], r["parameter"], r["layer"], r["statistic"]): float(r["value"]) for r in scores(noether.path / "out")}
    assert changed["dark", "0.1", "0", "l2"] > 1.5 * found["dark", "0.1", "0", "l2"]


def test_modules_that_are_edited_under_a_run(noether):
    """A module is edited when a run has begun: before its source is hashed, before it is imported, and while its code runs."""
    (noether.path / "later.py").write_text("FACTOR = 0.5\n")
    net = {**STUDY["models"][0], "layers": ["output"]}
    dark = {"transforms": [*STUDY["transforms"], {"name": "dark", "python": {"function": "mine:dark_later"}}]}
    edited = MODULE.replace("manual_seed(1)", "manual_seed(2)")
    few = {"data": [{"name": "shapes", "shapes": {"n": 8, "size": 16, "seed": 2}}], "batch": 2}

    def disturbed(study, edit):
        (noether.path / "pid").unlink(missing_ok=True)
        shutil.rmtree(noether.path / "out", ignore_errors=True)
        (noether.path / "study.yaml").write_text(json.dumps({**STUDY, **few, "models": [net], **study}))
        process = subprocess.Popen([_command.program(), "run", "study.yaml", "-o", "out", "--allow-python"], cwd=noether.path, env=noether.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not (noether.path / "pid").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        edit()
        return process.communicate(timeout=120)[1]

    edit = (noether.path / "mine.py").write_text
    errors = disturbed({"models": [{**net, "python": "mine:slowly"}]}, lambda: edit(edited))
    assert "mine.py has changed since it was imported: run again" in errors and not (noether.path / "out/scores.csv").exists()
    edit(MODULE)
    errors = disturbed(dark, lambda: (noether.path / "later.py").write_text("FACTOR = 0.25\n"))
    assert "later.py was imported after it had changed since its source was hashed: run again" in errors
    assert {r["transform"] for r in scores(noether.path / "out")} == {"flip"}
    # A model whose code is in memory is measured as it was hashed. The next run measures the new one.
    assert noether({**few, "models": [net]}, folder="before").returncode == 0
    running = disturbed({"models": [{**net, "python": "mine:slow"}]}, lambda: (time.sleep(3), edit(edited)))
    before, during = scores(noether.path / "before"), scores(noether.path / "out")
    assert [r["value"] for r in during if r["layer"] == "output"] == [r["value"] for r in before] != [], running
    assert noether({**few, "models": [{**net, "python": "mine:slow"}]}).returncode == 0
    assert [r["value"] for r in scores(noether.path / "out")] != [r["value"] for r in during]


def test_nothing_runs_unless_it_is_allowed(noether):
    refused = noether({}, allow=False)
    assert refused.returncode == 1 and refused.stderr == "noether: the study runs Python: mine:net; --allow-python allows it\n"
    assert not (noether.path / "imported").exists()
    assert noether({}).returncode == 0
    (noether.path / "imported").unlink()
    shutil.copytree(noether.path / "out", noether.path / "other")
    for command in (["check", "out"], ["report", "out"], ["diff", "out", "other"]):
        done = subprocess.run([_command.program(), *command], cwd=noether.path, env=noether.environment, capture_output=True, text=True)
        assert not (noether.path / "imported").exists(), command
        if command[0] != "check":
            assert done.returncode == 0, done.stderr


def on_terminal(noether, keys):
    """Run the study on a terminal of its own, press keys when it asks, and return the exit status and what is on the screen."""
    (noether.path / "study.yaml").write_text(json.dumps(STUDY))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(noether.path)
        os.execve(_command.program(), ["noether", "run", "study.yaml", "-o", "out"], {**noether.environment, "TERM": "dumb"})
    screen, pressed, deadline = b"", False, time.monotonic() + 60
    try:
        while time.monotonic() < deadline and select.select([terminal], [], [], 60)[0]:
            try:
                read = os.read(terminal, 1 << 16)
            except OSError:  # the terminal has no user left
                break
            screen += read
            if not pressed and b"[y/N]" in screen:
                os.write(terminal, keys)
                pressed = True
            if not read:
                break
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), screen.decode()


def test_the_question_on_a_terminal(noether):
    status, screen = on_terminal(noether, b"y\n")
    assert status == 0, screen
    assert f"{sys.executable} calls mine:net." in screen.replace("\r\n", " ") and "Allow it? [y/N]" in screen
    assert scores(noether.path / "out")
    shutil.rmtree(noether.path / "out")
    (noether.path / "imported").unlink()
    for keys in (b"n\n", b"\n", b"yes please\n", b"\x04", b"\x03"):  # the last are the end of input and an interrupt
        status, screen = on_terminal(noether, keys)
        assert status != 0, (keys, screen)
        assert "--allow-python allows it" in screen or keys == b"\x03", (keys, screen)
        assert not (noether.path / "imported").exists() and not (noether.path / "out").exists()
        assert not processes(noether.path)


def test_shards_start_the_worker_again(noether):
    assert noether({}).returncode == 0
    for shard in ("1/2", "2/2"):
        done = noether({}, "--shard", shard, folder="parts")
        assert done.returncode == 0, done.stderr
    merged = subprocess.run([_command.program(), "merge", "parts", "--allow-python"], cwd=noether.path, env=noether.environment, capture_output=True, text=True)
    assert merged.returncode == 0, merged.stderr
    assert scores(noether.path / "parts") == scores(noether.path / "out")


@pytest.mark.parametrize("name, want", [
    ("mine:dies", "its Python process ended: exit status 7"), ("mine:hangs", "does not answer within 4s"), ("mine:nan", "NaN"),
    ("mine:shape", "shape"), ("mine:batch", "changed during the run"), ("mine:raises", "ValueError: no luck"),
    ("mine:absent", "mine has no absent"), ("absent:net", "No module named 'absent'")])
def test_models_that_fail(name, want, noether):
    models = [*STUDY["models"], {**STUDY["models"][0], "name": "bad", "python": name, "layers": ["output"]}]
    done = noether({"models": models})
    assert done.returncode == 1
    assert {r["model"] for r in scores(noether.path / "out")} == {"net"}
    assert want in done.stderr
    assert not processes(noether.path)


def test_kills(noether):
    """A killed command leaves no process, and the next one completes its run. A killed process of a model fails its cells."""
    net = {**STUDY["models"][0], "layers": ["output"]}
    study = {"models": [net, {**net, "name": "slow", "python": "mine:slow"}], "transforms": [{"name": "turn", "rotate": {"values": [90, 180, 270]}}], "batch": 8}
    (noether.path / "study.yaml").write_text(json.dumps({**STUDY, **study}))

    def start(folder):
        (noether.path / "pid").unlink(missing_ok=True)
        process = subprocess.Popen([_command.program(), "run", "study.yaml", "-o", folder, "--allow-python"], cwd=noether.path, env=noether.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not (noether.path / "pid").exists() or not (noether.path / folder).exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2)
        assert process.poll() is None
        return process

    killed = start("out")
    killed.kill()
    killed.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while processes(noether.path):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert noether(study).returncode == 0
    rows = scores(noether.path / "out")
    values = {name: [r["value"] for r in rows if r["model"] == name] for name in ("net", "slow")}
    assert values["net"] == values["slow"] != []

    cut = start("cut")
    os.kill(int((noether.path / "pid").read_text()), signal.SIGKILL)
    _, errors = cut.communicate(timeout=60)
    assert cut.returncode == 1 and "its Python process ended: signal: killed" in errors
    assert [r["value"] for r in scores(noether.path / "cut") if r["model"] == "net"] == values["net"]
    assert not processes(noether.path)


DERIVATIVES = {
    "stir": ({"stir": {"between": [["net", "net"], ["slope_dies", "net"], ["slope_stalls", "net"]], "layers": "same", "steps": 2, "images": 4}},
             ["net"], ["slope_dies", "slope_stalls"]),
    "lie-derivative": ({"lie-derivative": {"images": 4, "generators": ["translate-x"]}}, ["tangent_prints"], ["tangent_dies", "tangent_stalls"]),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_that_fail(name, noether):
    """The process of a model ends, or hangs, in a vector-Jacobian or a Jacobian-vector product."""
    if name == "lie-derivative" and torch.__version__ < "2":
        pytest.skip("the models import torch._dynamo, which PyTorch 1.13 lacks")
    measure, good, bad = DERIVATIVES[name]
    models = [{**STUDY["models"][0], "name": n, "python": f"mine:{n}", "layers": ["output"]} for n in [*good, *bad]]
    noether.environment["NOETHER_SERVER_TIMEOUT"] = "20s"
    done = noether({"models": models, "measures": ["distance", measure]}, "--json")
    assert done.returncode == 1 and done.stdout, done.stderr
    json.loads(done.stdout)
    rows = scores(noether.path / "out")
    assert {(r["model"], r["measure"]) for r in rows} == {*((n, name) for n in good), *((n, "distance") for n in [*good, *bad])}, done.stderr
    errors = {f["model"]: f["error"] for f in json.loads((noether.path / "out/run.json").read_text())["failed"]}
    assert set(errors) == set(bad)
    assert "its Python process ended: exit status 7" in errors[bad[0]], errors
    assert "does not answer within 20s" in errors[bad[1]]
    assert not any("\n" in e for e in errors.values())
    assert ("tangent_prints prints: from a tangent" in done.stderr) == ("tangent_prints" in good)
    assert not processes(noether.path)


def test_a_model_that_prints(noether):
    done = noether({"models": [{**STUDY["models"][0], "python": "mine:prints", "layers": ["output"]}]}, "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


@pytest.mark.parametrize("name, want", [
    ("dark_nan", "returns NaN"), ("dark_dies", "its Python process ended: exit status 3"), ("dark_hangs", "does not answer within 4s"),
    ("dark_shape", "must keep the size"), ("absent", "mine has no absent"),
    ("largest_dies", "its Python process ended: exit status 3"), ("largest_hangs", "does not answer within 4s"), ("largest_nan", "returns NaN"),
    ("largest_of_the_batch", "depends on the batch")])
def test_functions_that_fail(name, want, noether):
    function = {"python": {"function": f"mine:{name}"}}
    study = {"measures": ["distance", function]} if name.startswith("largest") else {"transforms": [*STUDY["transforms"], {"name": "mine", **function}]}
    done = noether(study)
    assert done.returncode == 1
    rows = scores(noether.path / "out")
    assert {(r["transform"], r["measure"]) for r in rows} == {("flip", "distance")}
    assert want in done.stderr


@pytest.mark.parametrize("study", [{"models": [{**STUDY["models"][0], "python": "mine:hangs", "layers": ["output"]}]}, {"transforms": [{"python": {"function": "mine:dark_hangs"}}]}])
def test_interrupts_reach_a_function_that_hangs(study, noether):
    (noether.path / "study.yaml").write_text(json.dumps({**STUDY, **study}))
    environment = {**noether.environment, "NOETHER_SERVER_TIMEOUT": "10m"}
    process = subprocess.Popen([_command.program(), "run", "study.yaml", "-o", "out", "--allow-python"], cwd=noether.path, env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(12)
    assert process.poll() is None
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert time.monotonic() - started < 10
    assert not processes(noether.path)
