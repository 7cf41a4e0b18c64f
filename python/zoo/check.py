"""Checks one network: by tracing, by dynamo's file, and served by this process.

    python -m zoo.check NAME FILE WAY...

FILE is written after each step, so that it has what was found if the process is stopped.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch

import noether_ml
from noether_ml import _command, _dynamo, _export, _torch, _trace

from .networks import networks

SAMPLES = 4
EXPORTERS = {"tracing": _trace.write, "dynamo": _dynamo.write}


class Check:
    """What was found for a network, in a file."""

    def __init__(self, name: str, out: Path) -> None:
        self.out, self.folder = out, out.parent
        self.network = networks()[name]
        torch.manual_seed(1)
        self.module = self.network.make().eval()
        self.x = torch.rand((SAMPLES, *self.network.shape), generator=torch.Generator().manual_seed(1))
        self.found: dict[str, Any] = {"parameters": sum(p.numel() for p in self.module.parameters())}

    def step(self, way: str, key: str, do: Callable[[], Any]) -> Any:
        """Store what a step returns, or its error, and return it; None if it failed."""
        found = self.found.setdefault(way, {})
        start, value = time.time(), None
        try:
            value = do()
            found[key] = value if isinstance(value, (dict, float, int, str)) else True
        except Exception as e:
            found[key] = f"error: {type(e).__name__ if not isinstance(e, noether_ml.Error) else ''} {_command.first_line(e)}"
        found[key + "_s"] = round(time.time() - start, 1)
        self.out.write_text(json.dumps(self.found), "utf-8")
        return value

    def by_file(self, way: str) -> None:
        """Export the module by one exporter, which compares the file with it, and use the file."""
        def export() -> Path:
            with _export.called(self.module, example) as names:
                _export.check_random(self.module, example)
                return _export._kept(self.module, example, names, EXPORTERS[way])

        example = _export._example(self.module, self.network.shape)
        path = self.step(way, "export", export)
        if path is None:
            return
        self.step(way, "layers", lambda: self.layers(path))
        self.step(way, "run", lambda: self.run(path))
        self.step(way, "gradient", lambda: self.gradient(path))

    def layers(self, path: Path) -> dict[str, int]:
        """Return the number of default layers, and of those that have the name of a module or begin with one."""
        modules = {name for name, _ in self.module.named_modules()} - {""}
        layers = noether_ml.inspect(path)["layers"]
        chosen = [layer["name"] for layer in layers if layer.get("role")]

        def named(layer: str) -> bool:
            parts = re.sub(r"_\d+$", "", layer).split(".")
            return parts[0] == "output" or any(".".join(parts[:n]) in modules for n in range(len(parts), 0, -1))

        return {"all": len(layers), "default": len(chosen), "named": sum(map(named, chosen))}

    def run(self, path: Path) -> dict[str, int]:
        """Run the study that init writes, or where that takes other data, one of pairs of arrays. Return the number of scores."""
        if len(self.network.shape) == 3 and self.network.shape[0] == 3:
            from PIL import Image

            images = self.folder / "images"
            images.mkdir(exist_ok=True)
            for i, x in enumerate(self.x):
                Image.fromarray((x.permute(1, 2, 0) * 255).byte().numpy()).save(images / f"{i}.png")
            study = self.folder / "study.yaml"
            _command.call(["init", str(path), str(images), f"--out={study}", "--force"], silent=True)
            folder = self.folder / f"run-{path.parent.name}"
            _command.call(["run", str(study), f"--out={folder}"], silent=True)
            run = noether_ml.load(folder)
        else:
            run = noether_ml.measure(str(path), self.pairs(), measures=["distance"], transforms=[], quiet=True)
        return self.scores(run)

    def pairs(self) -> dict[str, Any]:
        numpy.save(self.folder / "x.npy", self.x.numpy())
        numpy.save(self.folder / "moved.npy", self.x.flip(-1).numpy())
        return {"name": "x", "pairs": {"clean": str(self.folder / "x.npy"), "moved": str(self.folder / "moved.npy"), "layout": "raw"}}

    def scores(self, run: noether_ml.Run) -> dict[str, int]:
        if run.failures:
            raise noether_ml.Error(str(run.failures[0]["error"]))
        rows = run._rows()
        return {"scores": len(rows), "undefined": sum(row["value"] is None for row in rows), "layers": len({row["layer"] for row in rows} - {""})}

    def gradient(self, path: Path) -> float:
        """Return the difference of a gradient from that of PyTorch in float64, relative to its norm.

        It is that of the first output, weighted at random, by the input. The weights are those of an
        operator that is added to the file: the sum of an output after a normalisation is constant.
        """
        import onnx

        folder = self.folder / "gradient"
        folder.mkdir(exist_ok=True)
        with torch.no_grad(), _export.called(self.module, self.x):
            out = self.module(self.x)
        first = out if isinstance(out, torch.Tensor) else out[0]
        weights = torch.randn(first.shape[1:], generator=torch.Generator().manual_seed(2))
        model = onnx.load(str(path), load_external_data=True)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights.numpy(), "zoo_weights"))
        model.graph.node.append(onnx.helper.make_node("Mul", [model.graph.output[0].name, "zoo_weights"], ["zoo_weighted"]))
        model.graph.output.append(onnx.helper.make_tensor_value_info("zoo_weighted", onnx.TensorProto.FLOAT, None))
        onnx.save(model, folder / "weighted.onnx", save_as_external_data=True, location="weights.bin")
        written = noether_ml.grad(folder / "weighted.onnx", folder / "gradient.onnx", of="zoo_weighted", sum=True)
        name = written["gradients"][0]["output"] if isinstance(written["gradients"], list) else next(iter(written["gradients"].values()))
        numpy.save(folder / "x.npy", self.x.numpy())
        request = {"model": str(folder / "gradient.onnx"), "inputs": [str(folder / "x.npy")], "tensors": [name], "out": str(folder)}
        (folder / "request.json").write_text(json.dumps(request), "utf-8")
        _command.call(["forward", str(folder / "request.json")])
        got = torch.from_numpy(numpy.load(folder / "0-0.npy")).double()

        def of_torch(dtype: torch.dtype) -> torch.Tensor:
            x = self.x.clone().to(dtype).requires_grad_()
            try:
                self.module.to(dtype)
                with _export.called(self.module, self.x), torch.enable_grad():
                    out = self.module(x)
                ((out if isinstance(out, torch.Tensor) else out[0]) * weights.to(dtype)).sum().backward()
            finally:
                self.module.float()
            return x.grad.double()

        single = of_torch(torch.float32)
        try:
            want = of_torch(torch.float64)
        except Exception:  # a module that makes tensors of float32 in forward
            want = single
        scale = float(want.norm()) or 1.0
        self.found["gradient of PyTorch"] = float((single - want).norm()) / scale
        return float((got - want).norm()) / scale

    def served(self) -> dict[str, int]:
        """Measure the module, which this process serves, and compare its output with the module's."""
        with _torch.model(self.module, self.network.shape) as model:
            layers = [*model.default_layers(), model.outputs[0].name]
        run = noether_ml.measure(self.module, self.pairs(), input=self.network.shape, measures=["distance"], transforms=[], layers=layers, engine="torch", quiet=True)
        with torch.no_grad(), _export.called(self.module, self.x):
            first = [out if isinstance(out, torch.Tensor) else out[0] for out in (self.module(self.x), self.module(self.x.flip(-1)))]
        want = float((first[0] - first[1]).flatten(1).norm(dim=1).mean())
        (got,) = (r["value"] for r in run._rows() if r["statistic"] == "l2" and r["layer"] == layers[-1])
        if abs(got - want) > 1e-3 * abs(want):
            raise noether_ml.Error(f"the distance at {layers[-1]} is {got}, not {want}")
        return self.scores(run)


def main() -> int:
    check = Check(sys.argv[1], Path(sys.argv[2]))
    for way in sys.argv[3:]:
        if way in EXPORTERS:
            check.by_file(way)
        else:
            check.step(way, "run", check.served)
    return 0


if __name__ == "__main__":
    sys.exit(main())
