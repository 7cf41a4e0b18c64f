"""A server of the Open Inference Protocol for models that live in a Python process.

It speaks version 2 over HTTP at a Unix socket, with the binary tensor data and the system
shared-memory extensions, so that activations are written once, to where the reader has them.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socketserver
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from . import _sources
from ._command import Error, first_line

HEADER = "Inference-Header-Content-Length"

# Element types of the protocol, by the names that NumPy has for them.
DATATYPES = {"float32": "FP32", "float64": "FP64", "float16": "FP16", "int8": "INT8", "int32": "INT32", "int64": "INT64",
             "uint8": "UINT8", "bool": "BOOL"}
TYPES = {datatype: name for name, datatype in DATATYPES.items()}


class Port(NamedTuple):
    """An input, an output or a layer. The first axis of shape is the batch, which is -1."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    parameters: Mapping[str, Any] = {}

    def json(self) -> dict[str, Any]:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape), "parameters": dict(self.parameters)}


# The most samples of a batch that the command compares with a sample alone before it measures.
TRIED = 8

# A Room is called with the name and the shape of an output and returns the array of float32 that the
# model writes it to.
Room = Callable[[str, Sequence[int]], Any]


class Model(Protocol):
    """What the server asks of a model. It calls infer from one thread at a time."""

    @property
    def inputs(self) -> Sequence[Port]: ...

    @property
    def outputs(self) -> Sequence[Port]: ...

    @property
    def layers(self) -> Sequence[Port]:
        """What else infer can be asked for."""

    @property
    def digest(self) -> str:
        """A text that identifies what the model computes."""

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        """Compute outputs and layers by name. Each has the parameters of the request."""


class Served(Model, Protocol):
    """A model with layers that measures read."""

    def default_layers(self) -> list[str]:
        """Return the layers that are measured if none are named."""

    def derivatives(self) -> Mapping[str, Model]:
        """Return the models of derivatives by the ends of their names: see _gradients."""


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open
    disable_nagle_algorithm = False  # a Unix socket has none
    server: _Server

    def do_GET(self) -> None:
        s = self.server
        if self.path == "/v2":
            self._json({"name": "noether", "version": "1", "extensions": ["binary_tensor_data", "system_shared_memory"]})
            return
        name = self.path.removeprefix("/v2/models/").removesuffix("/ready")
        if self.path in ("/v2/health/live", "/v2/health/ready") or self.path == f"/v2/models/{name}/ready" and name in s.models:
            self._json({"ready": True})
        elif self.path == f"/v2/models/{name}" and name in s.models:
            m = s.models[name]
            self._json({"name": name, "versions": ["1"], "platform": "python", "inputs": [p.json() for p in m.inputs],
                        "outputs": [p.json() for p in m.outputs],
                        "parameters": {"digest": m.digest, "layers": [p.json() for p in m.layers], **getattr(m, "extensions", {})}})
        else:
            self._json({"error": f"there is no {self.path}"}, 404)

    def do_POST(self) -> None:
        body = bytearray(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        try:
            self._post(body)
        except _Refused as e:
            self._json({"error": str(e)}, e.status)
        except BaseException as e:  # of the model, sys.exit too: the server goes on
            self._json({"error": f"{type(e).__name__}: {first_line(e)}"}, 500)

    def _post(self, body: bytearray) -> None:
        s = self.server
        kind, _, rest = self.path.removeprefix("/v2/").partition("/")
        model, _, kept = rest.removesuffix("/infer").partition("/kept/")
        if self.path == f"/v2/models/{model}/infer" and model in s.models:
            self._infer(model, body)
        elif kept and (forget := getattr(s.models.get(model), "forget", None)) is not None:
            forget(kept.removesuffix("/unregister"))
            self._json({})
        elif kind == "systemsharedmemory":
            name, _, action = rest.removeprefix("region/").partition("/")
            s.register(name, json.loads(body)) if action == "register" else s.unregister(name)
            self._json({})
        else:
            raise _Refused(404, f"there is no {self.path}")

    def _infer(self, name: str, body: bytearray) -> None:
        import numpy

        model = self.server.models[name]

        header = int(self.headers.get(HEADER, len(body)))
        request = json.loads(body[:header])
        rest = memoryview(body)[header:]
        inputs = {}
        for given in request["inputs"]:
            inputs[given["name"]], rest = self._tensor(given, rest)
        asked = {o["name"]: o.get("parameters") or {} for o in request.get("outputs") or [p._asdict() for p in model.outputs]}
        arrays: dict[str, Any] = {}

        def room(name: str, shape: Sequence[int]) -> Any:
            region = asked[name].get("shared_memory_region")
            if region is None:
                arrays[name] = numpy.empty(shape, numpy.float32)
            else:
                size = asked[name]["shared_memory_byte_size"]
                if size != 4 * int(numpy.prod(shape)):
                    raise _Refused(400, f"{name} has the shape {list(shape)}, which does not take {size} bytes")
                arrays[name] = self.server.region(region, asked[name]["shared_memory_offset"], size).view(numpy.float32).reshape(shape)
            return arrays[name]

        # In one thread: each thread that runs a model has a pool of threads of its own for it.
        self.server.runner.submit(model.infer, inputs, asked, room).result()
        self.server.try_alone(name, inputs, asked, arrays)
        _sources.check()
        for name in [name for name, parameters in asked.items() if "keep" in parameters]:
            del asked[name]
        missing = [name for name in asked if name not in arrays]
        if missing:
            raise _Refused(500, f"the model did not compute {missing[0]}")
        self._answer(name, asked, arrays)

    def _answer(self, model: str, asked: Mapping[str, Mapping[str, Any]], arrays: Mapping[str, Any]) -> None:
        outputs, data = [], []
        for name, parameters in asked.items():
            a = arrays[name]
            out: dict[str, Any] = {"name": name, "shape": list(a.shape), "datatype": "FP32"}
            if "shared_memory_region" in parameters:
                out["parameters"] = parameters
            elif parameters.get("binary_data"):
                out["parameters"] = {"binary_data_size": a.nbytes}
                data.append(a)
            else:
                out["data"] = a.ravel().tolist()
            outputs.append(out)
        head = json.dumps({"model_name": model, "outputs": outputs}, allow_nan=False).encode()
        self._head(200, len(head) + sum(a.nbytes for a in data), {HEADER: str(len(head))} if data else {})
        self.wfile.write(head)
        for a in data:
            self.wfile.write(a.reshape(-1).view("uint8").data)

    def _tensor(self, given: Mapping[str, Any], rest: memoryview) -> tuple[Any, memoryview]:
        """Return an input of a request, and what of the binary data belongs to the next ones."""
        import numpy

        parameters, datatype = given.get("parameters") or {}, given["datatype"]
        if datatype not in TYPES:
            raise _Refused(400, f"input {given['name']} has the type {datatype}: use one of {', '.join(TYPES)}")
        if "data" in given:
            return numpy.array(given["data"], TYPES[datatype]).reshape(given["shape"]), rest
        if "shared_memory_region" in parameters:
            size = parameters["shared_memory_byte_size"]
            raw = self.server.region(parameters["shared_memory_region"], parameters.get("shared_memory_offset", 0), size)
            return raw.view(TYPES[datatype]).reshape(given["shape"]), rest
        size = parameters["binary_data_size"]
        return numpy.frombuffer(rest[:size], TYPES[datatype]).reshape(given["shape"]), rest[size:]

    def _json(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self._head(status, len(body), {"Content-Type": "application/json"})
        self.wfile.write(body)

    def _head(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64  # connections that wait to be accepted: a Unix socket refuses more
    block_on_close = False  # connections end with the process or when their client closes them

    def __init__(self, path: str, models: Mapping[str, Model]) -> None:
        super().__init__(path, _Handler)
        self.models = models
        self.runner = ThreadPoolExecutor(1)
        self._regions: dict[str, mmap.mmap] = {}
        self._tried: dict[str, int] = {}  # samples of the largest batch that was compared with a sample alone

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing when a client has closed its connection."""

    def try_alone(self, name: str, inputs: Mapping[str, Any], asked: Mapping[str, Mapping[str, Any]], arrays: Mapping[str, Any]) -> None:
        """Warn if a model gives other values for the first sample of the largest batch so far than for that sample alone."""
        import numpy

        model = self.models[name]
        size = max((len(x) for x in inputs.values()), default=0)
        if size <= self._tried.get(name, TRIED) or not getattr(model, "independent", False) or any({"keep", "reduction"} & {*parameters} for parameters in asked.values()):
            return
        self._tried[name] = size
        alone: dict[str, Any] = {}
        one = {key: x[:1] if len(x) == size else x for key, x in inputs.items()}
        with contextlib.suppress(Exception):  # it takes batches of some size alone
            self.runner.submit(model.infer, one, asked, lambda key, shape: alone.setdefault(key, numpy.empty(shape, numpy.float32))).result()
        for key, a in alone.items():
            if a.shape == (1, *arrays[key].shape[1:]) and numpy.linalg.norm(a - arrays[key][:1]) > 0.05 * numpy.linalg.norm(a):
                warnings.warn(f"noether: {key} of a sample is another alone than in a batch of {size}: scores depend on the size of batches, or on the other samples", stacklevel=2)
                self._tried[name] = sys.maxsize
                return

    def register(self, name: str, region: Mapping[str, Any]) -> None:
        key = str(region["key"]).lstrip("/")
        if "/" in key or region.get("offset", 0) != 0:
            raise _Refused(400, f"{region['key']} is no name of shared memory")
        try:
            with open(f"/dev/shm/{key}", "r+b") as file:
                self._regions[name] = mmap.mmap(file.fileno(), region["byte_size"])
        except (OSError, ValueError) as e:
            raise _Refused(400, f"shared memory {key}: {first_line(e)}") from None

    def unregister(self, name: str) -> None:
        self._regions.pop(name, None)  # the memory is freed with the last array in it

    def region(self, name: str, offset: int, size: int) -> Any:
        """Return part of a region as bytes."""
        import numpy

        memory = self._regions.get(name)
        if memory is None or offset < 0 or offset + size > len(memory):
            raise _Refused(400, f"there is no shared memory {name} of {offset + size} bytes")
        return numpy.frombuffer(memory, numpy.uint8, size, offset)


@contextlib.contextmanager
def serving(models: Mapping[str, Model]) -> Iterator[str]:
    """Serve models to this user while the block runs. Yields the address below which they are, at /v2/models/NAME."""
    if sys.platform == "win32":
        raise Error("a model cannot be served from Python on Windows, which has no Unix sockets there: export it to ONNX")
    # The path of a socket has at most some hundred characters, so it is not in the cache.
    with tempfile.TemporaryDirectory(prefix="noether-") as folder:
        os.chmod(folder, 0o700)
        path = Path(folder) / "socket"
        server = _Server(str(path), models)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield f"unix:{path}:"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
            server.runner.shutdown(wait=False, cancel_futures=True)
