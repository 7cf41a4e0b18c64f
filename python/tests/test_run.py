"""Tests of run folders, of functions other than measure, and of stopping and resuming runs."""

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import time

import networks
import numpy
import pytest
import torch

import noether_ml
from noether_ml import _command, _export


# A run folder holds the results of a measurement, here of 16 images (a fixture of conftest.py).
@pytest.fixture
def run(images, tmp_path):
    torch.manual_seed(1)
    return noether_ml.measure(networks.Shared(), images, layers=["relu"], samples=True, folder=tmp_path / "run", quiet=True)


def test_run(run, tmp_path):
    assert run.folder == tmp_path / "run" and run.report.is_file() and run.failures == []
    scores = run.scores
    assert scores.value.dtype == float and set(scores.transformation) == {"quarter", "tilt"}  # the default transformations: rotations
    columns = [*scores, *(run.samples if importlib.util.find_spec("pyarrow") else ())]
    assert not [name for name in columns if hasattr(type(scores), name)]  # s.NAME is the column, not a method
    assert scores.p.dtype == scores.p_adjusted.dtype == float and scores.parameter.dtype == float and (scores.trial == 0).all()
    cosine = scores[(scores.statistic == "cosine") & (scores.transformation == "tilt")]
    means, values = cosine[cosine.mean_over == "values"], cosine[cosine.mean_over == ""]
    assert set(values.parameter) == {-15, -5, 5, 15} and means.parameter.isna().all()
    assert means.value.iloc[0] == pytest.approx(values.value.mean())
    again = noether_ml.load(run.folder)
    assert again.scores.equals(scores)
    assert "scores" in repr(run)
    page = run._repr_html_()
    assert len(page) < 300_000 and "<td>effective-invariance</td>" in page and str(run.report) in page
    assert page.count('src="data:image/svg+xml;base64,') == 2  # charts over depth and over the parameter
    assert run.show()._repr_html_().startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="&lt;!')
    with pytest.raises(noether_ml.Error, match="not a run folder"):
        noether_ml.load(tmp_path)


def test_without_pandas(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    rows = run.scores
    assert isinstance(rows, list) and isinstance(rows[0]["value"], float) and rows[0]["depth"] is None and "transformation" in rows[0]
    with pytest.raises(noether_ml.Error, match="pip install pandas pyarrow"):
        print(run.samples)


def test_diff(run, images, tmp_path):
    torch.manual_seed(2)
    other = noether_ml.measure(networks.Shared(), images, layers=["relu"], folder=tmp_path / "other", quiet=True)
    # Without all, only the scores that differ beyond chance are returned.
    everything = run.diff(other, all=True)
    assert len(everything) > len(run.diff(other))
    with pytest.raises(noether_ml.Error, match="are one run"):
        run.diff(run)
    # A row has both scores and their difference, as columns.
    assert (everything.new_value - everything.value - everything.difference).abs().max() < 1e-6
    assert everything.beyond.any() and set(everything.transformation) == {"quarter", "tilt"}
    assert not [name for name in everything if hasattr(type(everything), name)]


def test_diff_of_models_with_other_names(run, images, tmp_path):
    other = noether_ml.measure(networks.Shared(), images, layers=["relu"], name="second", folder=tmp_path / "other", quiet=True)
    rows = run.diff(other, all=True, models={"shared": "second"})
    assert set(rows.model) == {"shared"} and set(rows.new_model) == {"second"}


def test_trials_are_averaged(images):
    run = noether_ml.measure(networks.Shared(), images, layers=["relu"], trials=2, measures=["distance"], quiet=True,
                             transforms=[{"name": "tilt", "rotate": {"values": [5, 20]}}, {"name": "flip", "flip": "horizontal"}])
    scores = run.scores[run.scores.statistic == "l2"]
    assert dict(scores[scores.transformation == "tilt"].mean_over.value_counts()) == {"": 4, "trials": 2, "values": 2, "values and trials": 1}
    # A transformation without values has no parameter, though its scores are no means.
    assert dict(scores[scores.transformation == "flip"].mean_over.value_counts()) == {"": 2, "trials": 1}
    curve = run.curve("distance.l2@tilt")
    trials = scores[(scores.mean_over == "") & (scores.transformation == "tilt")]
    assert list(curve.parameter) == [5, 20] and list(curve.value) == pytest.approx(list(trials.groupby("parameter").value.mean()))


def test_curve(run):
    curve = run.curve("distance.cosine@tilt")
    assert list(curve.parameter) == [-15, -5, 5, 15] and set(curve.layer) == {"relu"}
    scores = run.scores
    assert list(curve.value) == list(scores[(scores.statistic == "cosine") & (scores.transformation == "tilt") & (scores.mean_over == "")].sort_values("parameter").value)
    assert len(run.curve("distance.cosine")) == 7  # of both transformations
    for bad, text in (("distance.cosin", 'no score "distance.cosin": it has .*distance.cosine'), ("distance.cosine@tild", "no transformation \"tild\": it has 'quarter', 'tilt'")):
        with pytest.raises(noether_ml.Error, match=text):
            run.curve(bad)
    with pytest.raises(noether_ml.Error, match='no layer "conv"'):
        run.curve("distance.cosine", layer="conv")


def test_keys_of_models(images, tmp_path):
    """The keys of a model and of data in a study, for all models or for one of them."""
    run = noether_ml.measure({"a": networks.Shared(), "b": {"model": networks.small_resnet(), "scores": "none", "layers": "layer4"}}, images, limit=4, quiet=True,
                             layers="relu", scores="logits", tags={"family": "conv"}, classes=[3, 1], labels=numpy.arange(16) % 2, axes={"relu": "NCHW"}, folder=tmp_path / "run")
    study = (run.folder / "study.yaml").read_text("utf-8")
    assert "classes:\n      - 3\n      - 1\n" in study
    models = {m["name"]: m for m in run.record["models"]}
    assert models["a"]["tags"] == models["b"]["tags"] == {"family": "conv"}
    scores = run.scores
    assert set(scores[scores.measure == "effective-invariance"].model) == {"a"}  # b has no predictions
    assert set(scores[scores.model == "b"].layer) == {"layer4"}
    with pytest.raises(noether_ml.Error, match="not a dict with 'model', 'score'"):
        noether_ml.measure({"a": {"model": networks.Shared(), "score": "none"}}, images)


def test_a_name_in_place_of_the_path_of_the_command(monkeypatch, tmp_path):
    """The GitHub action and others set NOETHER to the name of the command."""
    monkeypatch.setenv("NOETHER", "noether")
    for number in range(2):  # the second: with the script of the wheel as the only noether on PATH
        path = _command.program()
        assert os.path.isabs(path) and os.access(path, os.X_OK), number
        script = tmp_path / "noether"
        script.write_text("#!/usr/bin/python3\n")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_command, "__file__", str(tmp_path / "a" / "b" / "_command.py"))
    with pytest.raises(noether_ml.Error, match="the command noether was not found"):
        _command.program()
    monkeypatch.setenv("NOETHER", "nowhere/noether")
    with pytest.raises(noether_ml.Error, match="no file nowhere/noether"):
        _command.program()


def test_a_script_of_another_package(monkeypatch, tmp_path):
    """A package named noether that brings a script of that name is told from this one, on import."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _command.shadow() is None
    script = tmp_path / "noether"
    for line, shadowed in (("from noether_ml.__main__ import main", False), ("from noether.cli import main", True)):
        script.write_text(f"#!/usr/bin/python3\n{line}\n")
        script.chmod(0o755)
        code = "import sys; sys.path[:0] = sys.argv[1:]; import noether_ml"
        done = subprocess.run([sys.executable, "-c", code, next(p for p in sys.path if p.endswith("python"))], capture_output=True, text=True)
        assert done.returncode == 0 and (f"{script} is the script of another package" in done.stderr) == shadowed, done.stderr
    script.write_bytes(b"\x7fELF")  # a program: of which package, the file does not say
    assert _command.shadow() is None


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_types(tmp_path):
    """mypy finds misspelt keywords."""
    (tmp_path / "user.py").write_text("import noether_ml\nnoether_ml.measure('a', 'b', preproces='imagenet')\nnoether_ml.measure('a', 'b', preprocess='imagenet', memory='1GiB', scores='none')\n")
    path = next(p for p in sys.path if p.endswith("python"))
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent", "user.py"]
    found = subprocess.run(command, cwd=tmp_path, env={**os.environ, "MYPYPATH": path}, capture_output=True, text=True)
    assert 'user.py:2: error: Unexpected keyword argument "preproces"' in found.stdout and "user.py:3" not in found.stdout


def test_failures_are_reported(images, tmp_path):
    entries = [{"name": "good", "arrays": "x.npy"}, {"name": "bad", "arrays": "y.npy"}]
    numpy.save(tmp_path / "x.npy", images)
    (tmp_path / "y.npy").write_text("no array")
    for e in entries:
        e["arrays"] = str(tmp_path / e["arrays"])
    with pytest.warns(UserWarning, match="failures"):
        run = noether_ml.measure(networks.Shared(), entries, input=(3, 32, 32), layers=["relu"], quiet=True)
    assert set(run.scores.data) == {"good"} and run.failures[0]["data"] == "bad"


def test_several_models(images):
    run = noether_ml.measure({"a": networks.Shared(), "b": networks.small_resnet()}, images, layers=["penultimate"], measures=["distance"], quiet=True)
    assert set(run.scores.model) == {"a", "b"}


def test_compare(tmp_path):
    x = numpy.random.default_rng(1).normal(size=(200, 8))
    table = noether_ml.compare(x, torch.from_numpy(x), measure=["linear-cka"])
    # The null is the value for shuffled pairs of rows.
    assert table.value[0] == pytest.approx(1) and table["null"][0] < 0.5
    numpy.save(tmp_path / "x.npy", x)
    assert noether_ml.compare(tmp_path / "x.npy", x[:, ::-1], measure="linear-cka").value[0] == pytest.approx(1)
    with pytest.raises(noether_ml.Error) as e:
        noether_ml.compare(x, x[:10])
    assert "\n" not in str(e.value) and ".tmp" not in str(e.value)


def test_inspect_and_grad(tmp_path):
    module = networks.Shared()
    found = noether_ml.inspect(module, layers="conv*", input=(3, 32, 32))
    assert "conv1" in [layer["name"] for layer in found["layers"]]
    written = noether_ml.grad(module, tmp_path / "grad.onnx", sum=True, input=(3, 32, 32))
    assert (tmp_path / "grad.onnx").is_file() and written["gradients"]


def test_misspelt_parameters(images):
    with pytest.raises(noether_ml.Error, match='no parameter "preproces"; did you mean "preprocess"'):
        noether_ml.measure(networks.Shared(), images, preproces="cifar10")
    run = noether_ml.measure(networks.Shared(), images, layers=["relu"], description="a key of a study file", quiet=True)
    assert "a key of a study file" in (run.folder / "study.yaml").read_text("utf-8")


def test_an_error_of_several_lines_is_whole(tmp_path):
    torch.save(networks.Shared().state_dict(), tmp_path / "model.pt")
    with pytest.raises(noether_ml.Error) as e:
        noether_ml.inspect(tmp_path / "model.pt")
    text = str(e.value)
    assert "is a PyTorch file" in text.split("\n")[0] and "torch.onnx.export(" in text


def test_model_proto(images):
    import onnx

    path = _export.export(networks.Shared(), (3, 32, 32))
    found = noether_ml.inspect(onnx.load(str(path)))
    assert found["parameters"] == noether_ml.inspect(path)["parameters"]


def test_invert(images, tmp_path):
    numpy.save(tmp_path / "x.npy", images)
    # Inversion: gradient descent on an input until its representation is that of the image.
    found = noether_ml.invert(networks.Shared(), tmp_path / "x.npy", tmp_path / "inverted", input=(3, 32, 32), limit=2, steps=3, quiet=True)
    assert found.x.shape == found.inverted.shape == (2, 3, 32, 32) and len(found.summary["samples"]) == 2
    assert found._repr_png_().startswith(b"\x89PNG")


def test_train(images, tmp_path):
    numpy.savez(tmp_path / "set.npz", images=images, labels=numpy.arange(16) % 2)
    (tmp_path / "train.yaml").write_text(textwrap.dedent("""
        name: small
        data: {name: set, arrays: "${SET}"}
        network: {mlp: {hidden: [4]}}
        optimiser: {adam: {rate: 0.01}}
        epochs: 1
        batch: 8
    """))
    with pytest.raises(noether_ml.Error, match="SET"):
        noether_ml.train(tmp_path / "train.yaml", tmp_path / "out", quiet=True)
    summary = noether_ml.train(tmp_path / "train.yaml", tmp_path / "out", SET=tmp_path / "set.npz", quiet=True)
    assert summary["epochs"] == 1 and (tmp_path / "out" / "model.onnx").is_file()


# A program whose measurement takes long enough to be stopped. Its arguments are the run folder and folders to import from.
INTERRUPTIBLE = textwrap.dedent("""
    import sys; sys.path[:0] = sys.argv[2:]
    import networks, noether_ml, numpy, torch
    torch.manual_seed(1)
    x = numpy.random.default_rng(1).integers(0, 256, (300, 64, 64, 3), dtype=numpy.uint8)
    try:
        run = noether_ml.measure(networks.small_resnet(), x, transforms=[{"rotate": {"values": list(range(10, 34))}}], measures=["distance"],
                                 layers=["layer1"], folder=sys.argv[1], quiet=True, preprocess="none", memory="1MiB")
    except KeyboardInterrupt:
        sys.exit("stopped")
    print(len(run.scores))
""")


def start(folder):
    """Start the program INTERRUPTIBLE, which Ctrl-C stops even if these tests run in the background of a shell, where it is ignored."""
    paths = [p for p in sys.path if p.endswith(("python", "tests"))]
    return subprocess.Popen([sys.executable, "-c", INTERRUPTIBLE, str(folder), *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def children(parent):
    """Return the process IDs of the children of a process: the commands noether that it runs."""
    with open(f"/proc/{parent}/task/{parent}/children") as f:
        return f.read().split()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs /proc")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_stopping_and_resuming(stop, tmp_path):
    folder = tmp_path / "run"
    first = start(folder)
    while not (folder / "run.json").exists() and first.poll() is None:
        time.sleep(0.02)
    child = children(first.pid)[0]
    first.send_signal(stop)
    _, errors = first.communicate()
    assert first.returncode != 0 and (stop == signal.SIGKILL or errors.decode().strip() == "stopped")
    if stop == signal.SIGINT:
        assert not os.path.exists(f"/proc/{child}")
        assert not (folder / "scores.csv").exists()
    else:
        while os.path.exists(f"/proc/{child}"):  # the child ends when it cannot write its next line of progress, at most ten seconds later
            time.sleep(0.1)
        for p in (tmp_path / "cache").rglob(".tmp-*"):  # a killed process cannot remove its own files
            p.rename(tmp_path / p.name)
    second = start(folder)
    printed, errors = second.communicate()
    assert second.returncode == 0, errors
    assert int(printed) > 0 and (folder / "scores.csv").exists()


def test_import_loads_no_large_package():
    code = "import sys; sys.path[:0] = sys.argv[1:]; import noether_ml; print(*{name.split('.')[0] for name in sys.modules})"
    path = next(p for p in sys.path if p.endswith("python"))
    loaded = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=True, text=True).stdout.split()
    assert "noether_ml" in loaded
    assert not {"numpy", "onnx", "pandas", "torch"} & set(loaded)


def test_breaking_point(images):
    run = noether_ml.measure(networks.small_resnet(), images, layers="output", measures=["distance"], quiet=True,
                             transforms=[{"name": "tilt", "rotate": {"values": [5, 20, 40]}}])
    curve = run.curve("distance.l2").set_index("parameter").value
    limit = (curve[5] + curve[20]) / 2
    point = run.breaking_point(f"distance.l2 <= {limit}").iloc[0]
    assert point.state == "found" and point.strength == pytest.approx(12.5)
    assert run.breaking_point("distance.l2 <= 1e9").iloc[0].state == "beyond"
    with pytest.raises(noether_ml.Error, match="invalid tolerance"):
        run.breaking_point("distance")


def test_wrong_samples(images):
    run = noether_ml.measure(networks.small_resnet(), images, labels=[i % 5 for i in range(16)], layers="output", measures=["accuracy"],
                             quiet=True, transforms=[{"rotate": 90}])
    wrong = run.wrong_samples
    clean = run.scores[run.scores.statistic == "clean"].value.iloc[0]
    assert (wrong.kind == "wrong").sum() == round(16 * (1 - clean))
    assert set(wrong.columns) >= {"path", "label", "predicted_clean", "predicted_moved", "cost", "transformation", "parameter"}
