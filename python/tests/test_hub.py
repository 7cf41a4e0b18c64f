"""Models of the Hugging Face hub, and local folders with the same files."""

import hashlib
import http.server
import json
import threading

import networks
import numpy
import pytest

import noether_ml
from noether_ml import _export

COMMIT = "0123456789abcdef0123456789abcdef01234567"
# A preprocessor_config.json, the preprocessing in the format of transformers.
CONFIG = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.25, 0.2, 0.2], "size": {"height": 40, "width": 40}, "crop_size": {"height": 32, "width": 32}}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files of a repository on the hub: a model and its preprocessing."""
    import os

    folder = tmp_path_factory.mktemp("hub")
    before = os.environ.get("NOETHER_CACHE")
    os.environ["NOETHER_CACHE"] = str(folder)
    try:
        model = _export.export(networks.small_resnet(), (3, 32, 32)).read_bytes()
    finally:
        os.environ.pop("NOETHER_CACHE") if before is None else os.environ.update(NOETHER_CACHE=before)
    return {"onnx/model.onnx": model, "preprocessor_config.json": json.dumps(CONFIG).encode()}


@pytest.fixture
def hub(files, tmp_path, monkeypatch):
    """A local server that stands for the hub and has the repository org/net."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.removeprefix(f"/org/net/resolve/{COMMIT}/")
            if self.path == "/api/models/org/net/revision/main":
                body = json.dumps({"sha": COMMIT, "siblings": [{"rfilename": n} for n in files]}).encode()
            elif name in files:
                body = files[name]
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def test_hub_and_local_folder_agree(hub, files, images, tmp_path):
    for name, content in files.items():
        path = tmp_path / "local" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    runs = [noether_ml.measure(m, images, measures=["distance"], quiet=True) for m in ("hf://org/net", tmp_path / "local")]
    assert [set(r.scores.model) for r in runs] == [{"net"}, {"local"}]
    # The columns study and model have the name of the model.
    a, b = (r.scores.drop(columns=["study", "model"]) for r in runs)
    assert a.equals(b)
    with pytest.raises(noether_ml.Error, match="no repository"):
        noether_ml.measure("hf://org/none", images, quiet=True)


def test_floats_are_not_resized(hub, images):
    """Images of floats are not resized: only the mean and standard deviation of the repository's preprocessing are used."""
    floats = images.transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    options = dict(measures=["distance"], quiet=True, name="net")
    default = noether_ml.measure("hf://org/net", floats, **options).scores
    explicit = noether_ml.measure("hf://org/net", floats, preprocess={"mean": CONFIG["image_mean"], "std": CONFIG["image_std"], "crop": 32}, **options).scores
    assert numpy.allclose(default.value, explicit.value, rtol=1e-6)
    resized = noether_ml.measure("hf://org/net", images, **options).scores  # uint8: resized and cropped
    assert not numpy.allclose(default.value, resized.value, rtol=1e-3)
