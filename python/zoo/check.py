"""Checks of one network: by tracing, by dynamo's file, and served by this process."""

from __future__ import annotations

import functools
import json
import re
import signal
import time
import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch

import noether_ml
from noether_ml import _command, _dynamo, _export, _torch, _trace

from . import float64
from .networks import networks

SAMPLES = 4
RATE = 16000  # of waveforms, in Hz
NONE = {"none": "PyTorch has no gradient"}
EXPORTERS = {"tracing": _trace.write, "dynamo": _dynamo.write}


def check(name: str, out: Path, ways: Sequence[str], seconds: int = 0) -> dict[str, Any]:
    """Check a network and return what was found.

    It is also written to a file after each step, so that it is there if the process is stopped. Each
    way has so many seconds, if they are given.
    """
    found = Check(name, out)
    for way in ways:
        try:
            signal.signal(signal.SIGALRM, functools.partial(_late, seconds))
            signal.alarm(seconds)
            found.by(way)
        except Late as e:
            found.found[way]["late"] = str(e)
        finally:
            signal.alarm(0)
    found.save()
    return found.found


class Late(BaseException):
    """A way takes too long. It is no Exception, which a step would store as its error."""


def _late(seconds: int, *_signal: Any) -> None:
    raise Late(f"not finished after {seconds} s")


class Check:
    """What was found for a network, in a file."""

    def __init__(self, name: str, out: Path) -> None:
        self.out, self.folder = out, out.parent
        self.network = networks()[name]
        torch.manual_seed(1)
        self.module = self.network.make().eval()
        self.x = torch.rand((SAMPLES, *self.network.shape), generator=torch.Generator().manual_seed(1))
        self.compared = ""  # the name of the output or layer whose distance and gradient are compared; "": the first output
        self.found: dict[str, Any] = {"parameters": sum(p.numel() for p in self.module.parameters())}
        if self.vanishes():
            for p in self.module.parameters():
                if p.dim() > 1:
                    torch.nn.init.kaiming_normal_(p)
            self.module.train()
            with torch.no_grad(), _export.called(self.module, self.x):
                for _ in range(20):  # batch normalisation learns the statistics of the samples
                    self.module(self.x)
            self.module.eval()

    def vanishes(self) -> bool:
        """Report whether the gradient is too small for float32, as with small random weights in many layers.

        Any gradient would then agree with it.
        """
        try:
            weights = torch.ones_like(self.first(self.x)[0])
            return float(self.derived(self.x, torch.float32, weights).norm()) < 1e-20
        except Exception:  # which the step that needs it reports
            return False

    def save(self) -> None:
        self.out.write_text(json.dumps(self.found), "utf-8")

    def step(self, way: str, key: str, do: Callable[[], Any]) -> Any:
        """Store what a step returns, or its error, and return it; None if it failed."""
        found = self.found[way]
        start, value = time.time(), None
        try:
            value = do()
            found[key] = value if isinstance(value, (dict, float, int, str)) else True
        except Exception as e:
            kind = "" if isinstance(e, noether_ml.Error) else f"{type(e).__name__}: "
            found[key] = f"error: {kind}{_command.first_line(e)}".replace(str(self.folder) + "/", "")
        found[key + "_s"] = round(time.time() - start, 1)
        self.save()
        return value

    def by(self, way: str) -> None:
        """Do the steps of a way. Without a file there are no others."""
        self.found[way] = {}
        if way not in EXPORTERS:
            self.step(way, "layers", self.served_layers)
            self.step(way, "run", self.served)
            self.step(way, "gradient", self.served_gradient)
            return
        path = self.step(way, "export", lambda: self.exported(way))
        if path is not None:
            self.step(way, "layers", lambda: self.layers(path))
            self.step(way, "run", lambda: self.run(way, path))
            difference = self.step(way, "gradient", lambda: self.gradient(path))
            if isinstance(difference, float) and difference > rounding(self.found):
                self.step(way, "gradient in float64", self.gradient_in_float64)

    def exported(self, way: str) -> Path:
        """Export the module by one exporter, and compare the file with it."""
        example = _export._example(self.module, self.network.shape)
        with _export.called(self.module, example) as names:
            _export.check_random(self.module, example)
            return _export._kept(self.module, example, names, EXPORTERS[way])

    def layers(self, path: Path) -> dict[str, Any]:
        found = noether_ml.inspect(path)["layers"]
        return self.named([layer["name"] for layer in found if layer.get("role")], len(found))

    def named(self, chosen: Sequence[str], all: int) -> dict[str, Any]:
        """Return the number of layers, of default layers and of those that have the name of a module or begin with one."""
        modules = {name for name, _ in self.module.named_modules()} - {""}

        def named(layer: str) -> bool:
            parts = re.sub(r"_\d+$", "", layer).split(".")
            return parts[0] in ("output", "result") or any(".".join(parts[:n]) in modules for n in range(len(parts), 0, -1))

        others = [layer for layer in chosen if not named(layer)]
        return {"all": all, "default": len(chosen), "named": len(chosen) - len(others), **({"others": others} if others else {})}

    def run(self, way: str, path: Path) -> dict[str, int]:
        """Run the study that init writes for images, recordings or arrays. Return the number of scores."""
        if self.network.processor is not None:
            self.network.processor().save_pretrained(path.parent)
        study, folder = self.folder / f"{way}.yaml", self.folder / f"run-{way}"
        _command.call(["init", str(path), str(self.data()), f"--out={study}", "--force"], silent=True)
        _command.call(["run", str(study), f"--out={folder}"], silent=True)
        return self.scores(noether_ml.load(folder))

    def data(self) -> Path:
        """Write images, recordings or, of other samples, an array, and return the path."""
        folder, shape = self.folder / "data", self.network.shape
        folder.mkdir(exist_ok=True)
        if len(shape) == 3 and shape[0] == 3:
            from PIL import Image

            for i, x in enumerate(self.x):
                Image.fromarray((x.permute(1, 2, 0) * 255).byte().numpy()).save(folder / f"{i}.png")
        elif len(shape) <= 2 and (len(shape) == 1 or shape[0] == 1 or self.network.processor is not None):
            for i in range(SAMPLES):
                samples = numpy.random.default_rng(i).normal(0, 3000, RATE if len(shape) == 2 else shape[0]).clip(-32768, 32767).astype("<i2")
                with wave.open(str(folder / f"{i}.wav"), "wb") as file:
                    file.setnchannels(1)
                    file.setsampwidth(2)
                    file.setframerate(RATE)
                    file.writeframes(samples.tobytes())
        else:
            numpy.save(self.folder / "x.npy", self.x.numpy())
            return self.folder / "x.npy"
        return folder

    def pairs(self) -> dict[str, Any]:
        numpy.save(self.folder / "x.npy", self.x.numpy())
        numpy.save(self.folder / "moved.npy", self.x.flip(-1).numpy())
        return {"name": "x", "pairs": {"clean": str(self.folder / "x.npy"), "moved": str(self.folder / "moved.npy"), "layout": "raw"}}

    def scores(self, run: noether_ml.Run) -> dict[str, int]:
        if run.failures:
            raise noether_ml.Error(str(run.failures[0]["error"]))
        rows = run._rows()
        return {"scores": len(rows), "undefined": sum(row["value"] is None for row in rows), "layers": len({row["layer"] for row in rows} - {""})}

    def gradient(self, path: Path) -> float | dict[str, str]:
        """Return the difference of a gradient from that of PyTorch, relative to its norm, or that PyTorch has none.

        It is that of the first output, weighted at random, by the input. The weights are those of an
        operator that is added to the file: the sum of an output after a normalisation is constant.
        """
        import onnx

        weights, want = self.gradient_of_torch
        if want is None:
            return NONE
        folder = self.folder / "gradient"
        folder.mkdir(exist_ok=True)
        model = onnx.load(str(path), load_external_data=True)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights.numpy(), "zoo_weights"))
        model.graph.node.append(onnx.helper.make_node("Mul", [model.graph.output[0].name, "zoo_weights"], ["zoo_weighted"]))
        model.graph.output.append(onnx.helper.make_tensor_value_info("zoo_weighted", onnx.TensorProto.FLOAT, None))
        (folder / "weights.bin").unlink(missing_ok=True)  # to which onnx appends
        onnx.save(model, folder / "weighted.onnx", save_as_external_data=True, location="weights.bin")
        written = noether_ml.grad(folder / "weighted.onnx", folder / "gradient.onnx", of="zoo_weighted", sum=True)
        name = written["gradients"][0]["output"] if isinstance(written["gradients"], list) else next(iter(written["gradients"].values()))
        numpy.save(folder / "x.npy", self.x.numpy())
        request = {"model": str(folder / "gradient.onnx"), "inputs": [str(folder / "x.npy")], "tensors": [name], "out": str(folder)}
        (folder / "request.json").write_text(json.dumps(request), "utf-8")
        _command.call(["forward", str(folder / "request.json")])
        self.gradient_name = name
        return _difference(torch.from_numpy(numpy.load(folder / "0-0.npy")), want)

    def gradient_in_float64(self) -> float:
        """Return the same difference for the file computed in float64.

        There rounding does not decide on which side of a kink, such as that of a ReLU, a value lies.
        """
        _, want = self.gradient_of_torch
        assert want is not None
        return _difference(torch.from_numpy(float64.run(self.folder / "gradient" / "gradient.onnx", self.gradient_name, self.x.numpy())), want)

    @functools.cached_property
    def gradient_of_torch(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The weights of the first output, and its gradient by PyTorch in float64; None if it has none, as that of codes.

        What rounding does to it is stored: the difference of the gradient in float32, and of that at an
        input whose values differ by 1e-6.
        """
        first = self.first(self.x)
        weights = torch.randn(first.shape[1:], generator=torch.Generator().manual_seed(2))
        moved = self.x * (1 + 1e-6 * torch.randn(self.x.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64))
        try:
            single = self.derived(self.x, torch.float32, weights)
        except RuntimeError as e:
            if "does not require grad" in str(e):
                return weights, None
            raise
        try:
            want, near = (self.derived(x, torch.float64, weights) for x in (self.x, moved))
        except Exception:  # a module that makes tensors of float32 in forward
            want, near = single, self.derived(moved, torch.float32, weights)
        self.found["gradient in float32"] = _difference(single, want)
        self.found["gradient after 1e-6"] = _difference(near, want)
        return weights, want

    def first(self, x: torch.Tensor) -> torch.Tensor:
        """Return the first output, or what compared names."""
        with torch.no_grad():
            return self.call(x)

    def call(self, x: torch.Tensor) -> torch.Tensor:
        found: dict[str, torch.Tensor] = {}

        def keep(_module: Any, _inputs: Any, out: Any) -> None:
            found.setdefault(self.compared, next(_export.outputs(out, ""))[1])  # of the first call

        inside = dict(self.module.named_modules()).get(self.compared)
        hook = inside.register_forward_hook(keep) if self.compared and inside is not None else None
        try:
            with _export.called(self.module, self.x) as names:
                out = self.module(x)
            outputs = dict(zip(names, [out] if isinstance(out, torch.Tensor) else out, strict=True))
        finally:
            if hook is not None:
                hook.remove()
        return (outputs | found)[self.compared] if self.compared else next(iter(outputs.values()))

    def derived(self, x: torch.Tensor, dtype: torch.dtype, weights: torch.Tensor) -> torch.Tensor:
        x = x.clone().to(dtype).requires_grad_()
        try:
            self.module.to(dtype)
            with torch.enable_grad():
                out = self.call(x)
            (out * weights.to(dtype)).sum().backward()
        finally:
            self.module.float()
        if x.grad is None:
            raise RuntimeError("the output does not require grad of the input")
        return x.grad.double()

    def served_layers(self) -> dict[str, Any]:
        with _torch.model(self.module, self.network.shape) as model:
            self.chosen = model.default_layers()
            # The boxes of a detector are of no batch: then the last default layer is compared.
            self.compared = next((p.name for p in model.outputs if p.shape[0] == -1), self.chosen[-1])
            self.__dict__.pop("gradient_of_torch", None)
            return self.named(self.chosen, len(model.layers))

    def served(self) -> dict[str, int]:
        """Measure the module, which this process serves, and compare its output with the module's."""
        layers = list(dict.fromkeys([*self.chosen, self.compared]))
        run = noether_ml.measure(self.module, self.pairs(), input=self.network.shape, measures=["distance"], transforms=[], layers=layers, engine="torch", quiet=True)
        want = float((self.first(self.x) - self.first(self.x.flip(-1))).double().flatten(1).norm(dim=1).mean())
        (got,) = (r["value"] for r in run._rows() if r["statistic"] == "l2" and r["layer"] == self.compared)
        if not abs(got - want) <= 1e-3 * abs(want):
            raise noether_ml.Error(f"the distance at {self.compared} is {got}, not {want}")
        return self.scores(run)

    def served_gradient(self) -> float | dict[str, str]:
        """Return the difference of the gradient that the module's server computes, as gradient does."""
        weights, want = self.gradient_of_torch
        if want is None:
            return NONE
        found: dict[str, Any] = {}

        def room(name: str, shape: Sequence[int]) -> Any:
            found[name] = numpy.zeros(shape, numpy.float32)
            return found[name]

        with _torch.model(self.module, self.network.shape) as model:
            inputs = {"input": self.x.numpy(), f"cotangent {self.compared}": weights.expand(SAMPLES, *weights.shape).contiguous().numpy()}
            model.derivatives()[".vjp"].infer(inputs, {"gradient input": {}}, room)
        return _difference(torch.from_numpy(found["gradient input"]), want)


def rounding(found: dict[str, Any]) -> float:
    """Return the difference of gradients that rounding explains: ten times what it does to PyTorch's own, at least 1e-4."""
    return max(1e-4, *(10 * found.get(key, 0.0) for key in ("gradient in float32", "gradient after 1e-6")))


def _difference(got: torch.Tensor, want: torch.Tensor) -> float:
    """Return the norm of the difference relative to that of the second."""
    return float((got.double() - want).norm()) / (float(want.norm()) or 1.0)
