"""A server with TLS, whose certificate is of an authority of its own, and that wants a token."""

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer

import numpy
import pytest

from noether_ml import _command, _server

TOKEN = "a-token-that-nobody-else-knows"

if shutil.which("openssl") is None:
    pytest.skip("needs openssl", allow_module_level=True)


class Means:
    """The mean of each channel, and twice that."""

    inputs = (_server.Port("image", "FP32", (-1, 3, 16, 16)),)
    outputs = (_server.Port("mean", "FP32", (-1, 3)),)
    layers = ()
    digest = "1"

    def infer(self, inputs, wanted, room):
        for name in wanted:
            x = inputs["image"]
            room(name, (len(x), 3))[:] = x[:, :, :8].mean((2, 3))


class Handler(_server._Handler):
    def do_GET(self):
        if self.allowed():
            super().do_GET() if self.path != "/v2" else self._json({"error": "unknown"}, 404)

    def do_POST(self):
        if self.allowed():
            super().do_POST()

    def allowed(self):
        given = self.headers.get("Authorization")
        if given != f"Bearer {TOKEN}" or self.server.refuses:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._json({"error": f"{given} is not allowed"}, 403)
            return False
        return True


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority, and certificates of it for localhost and for another name."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.pem", "-subj", "/CN=authority", "-days", "2")
    for name in ("localhost", "elsewhere"):
        (folder / "extensions").write_text(f"subjectAltName=DNS:{name}\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", "extensions")
    return folder


@contextlib.contextmanager
def serving(certificates, name="localhost", refuses=False):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.models, server.runner, server.refuses = {"net": Means()}, ThreadPoolExecutor(1), refuses
    server.try_alone = lambda *_: None  # the worker's own server compares batches with single samples
    server.handle_error = lambda *_: None  # of clients that do not accept the certificate
    if name is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"https://localhost:{server.server_address[1]}/v2/models/net"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def noether(tmp_path, certificates):
    numpy.save(tmp_path / "x.npy", numpy.random.default_rng(1).integers(0, 256, (12, 16, 16, 3), dtype=numpy.uint8))

    def run(url, authority=certificates / "authority.pem", token=TOKEN):
        study = {"name": "tls", "data": [{"name": "x", "arrays": {"inputs": "x.npy"}}], "transforms": [{"name": "flip", "flip": "vertical"}], "measures": ["distance"],
                 "models": [{"name": "net", "url": url, "preprocess": {"crop": [16, 16], "mean": [0], "std": [1]}, "layers": ["mean"], "scores": "none"}]}
        (tmp_path / "study.yaml").write_text(json.dumps(study))
        environment = {**os.environ, "SSL_CERT_FILE": str(authority), "NOETHER_SERVER_TOKEN": token}
        done = subprocess.run([_command.program(), "run", "study.yaml", "-o", "out", "--log", "json"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert TOKEN not in done.stdout + done.stderr
        return done

    run.path = tmp_path
    return run


def contents(folder):
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    yield from ((path, archive.read(name)) for name in archive.namelist())


@pytest.mark.parametrize("token", [TOKEN, TOKEN + "\n"])
def test_an_authority_of_its_own(token, noether, certificates):
    with serving(certificates) as url:
        done = noether(url, token=token)
    assert done.returncode == 0, done.stderr
    assert (noether.path / "out/scores.csv").exists()
    assert not [path for path, content in contents(noether.path / "out") if TOKEN.encode() in content]


@pytest.mark.parametrize("case, want", [
    ("unknown", "certificate signed by unknown authority; SSL_CERT_FILE is"), ("absent", "SSL_CERT_FILE cannot be read"), ("elsewhere", "certificate is valid for elsewhere, not localhost"),
    ("plain", "does not speak TLS: give an address that begins with http"), ("refuses", "the server answers 403: Bearer *** is not allowed"),
    ("spaces", "NOETHER_SERVER_TOKEN contains a space")])
def test_one_line_at_once(case, want, noether, certificates):
    authority = {"unknown": certificates / "authority.key", "absent": certificates / "none.pem"}.get(case, certificates / "authority.pem")
    name = {"elsewhere": "elsewhere", "plain": None}.get(case, "localhost")
    with serving(certificates, name, case == "refuses") as url:
        done = noether(url, authority, "two words" if case == "spaces" else TOKEN)
    lines = [line for line in done.stderr.splitlines() if "localhost" in line or "TOKEN" in line]
    assert done.returncode == 1 and want in done.stderr, done.stderr
    assert "tried" not in done.stderr and "trying again" not in done.stderr
    assert 1 <= len(lines) <= 2, lines  # the log, and the error
    assert not [path for path, content in contents(noether.path) if TOKEN.encode() in content]
