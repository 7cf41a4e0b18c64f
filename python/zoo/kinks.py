"""Explains differences of gradients by the kinks of networks: python -m zoo.kinks NAME...

At a kink, such as the 0 of a ReLU, rounding decides which of two derivatives holds. For each network a
line has the error of the gradient that noether grad adds to the exported file, that of PyTorch in
float32, and what remains of the first if PyTorch's reference in float64 takes the derivatives of all
ReLUs and max-pools on the side that the file computed. All are relative to the norm of the reference.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import onnx
import torch
from torch.overrides import TorchFunctionMode

from noether_ml import _command, _export

from .check import Check

RELUS = {torch.relu, torch.relu_, torch.Tensor.relu, torch.Tensor.relu_, torch.nn.functional.relu6}
POOLS = {torch.max_pool2d: torch.nn.functional.max_pool2d, torch.max_pool3d: torch.nn.functional.max_pool3d}


class Relu(torch.autograd.Function):
    """ReLU with a given derivative."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        ctx.slope = slope
        return x.relu()

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, None]:
        return dy * ctx.slope, None


class Kinks(TorchFunctionMode):
    """Records the results of ReLUs and the operands of max-pools or, with those of a file, takes their derivatives there."""

    def __init__(self, relus: list[torch.Tensor] | None = None, pools: list[torch.Tensor] | None = None) -> None:
        super().__init__()
        self.relus: list[torch.Tensor] = []
        self.pools: list[torch.Tensor] = []
        self.of_file: tuple[Iterator[torch.Tensor], Iterator[torch.Tensor]] | None = None if relus is None else (iter(relus), iter(pools or ()))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in RELUS and self.of_file is not None:
            return Relu.apply(args[0], (next(self.of_file[0]) > 0).to(args[0]))
        if func in POOLS and self.of_file is not None:
            _, at = POOLS[func](next(self.of_file[1]).to(args[0]), *args[1:], **kwargs, return_indices=True)
            return args[0].flatten(2).gather(2, at.flatten(2)).view_as(at)
        if func in POOLS:
            self.pools.append(args[0].detach().clone())
        out = func(*args, **kwargs)
        if func in RELUS:
            self.relus.append(out.detach().clone())
        return out


def explain(name: str, folder: Path) -> str:
    check = Check(name, folder / "found.json")
    check.x = check.x[:1]
    example = _export._example(check.module, check.network.shape)
    path = check.exported("tracing", example)
    weights, _, want = check.gradients_of_torch

    def error(got: torch.Tensor, reference: torch.Tensor) -> float:
        return float((got - reference).norm() / reference.norm())

    exact, single = Kinks(), Kinks()
    check.gradient_of_torch(torch.float64, weights, exact)
    of_single = check.gradient_of_torch(torch.float32, weights, single)

    model, gradient = check.gradient_file(path, weights)
    nodes = onnx.load(model, load_external_data=False).graph.node
    ends = {x for n in onnx.load(str(path), load_external_data=False).graph.node for x in n.output}
    relus = [n.output[0] for n in nodes if n.op_type == "Relu" and n.output[0] in ends]
    pools = [n.input[0] for n in nodes if n.op_type == "MaxPool" and n.output[0] in ends]
    names = list(dict.fromkeys([gradient, *relus, *pools]))
    numpy.save(folder / "x.npy", check.x.numpy())
    request = {"model": str(model), "inputs": [str(folder / "x.npy")], "tensors": names, "out": str(folder)}
    (folder / "request.json").write_text(json.dumps(request), "utf-8")
    _command.call(["forward", str(folder / "request.json")])
    read = {n: torch.from_numpy(numpy.load(folder / f"0-{i}.npy")) for i, n in enumerate(names)}
    got = read[gradient].double()
    sided = check.gradient_of_torch(torch.float64, weights, Kinks([read[r] for r in relus], [read[p] for p in pools]))

    def sides(found: list[torch.Tensor]) -> int:
        return sum(int(((a > 0) != (b > 0)).sum()) for a, b in zip(found, exact.relus))

    count = sum(r.numel() for r in exact.relus)
    return (f"| {name} | {count:,} | {sides([read[r] for r in relus])} | {sides(single.relus)} | {error(got, want):.0e} | {error(of_single, want):.0e} | "
            f"{error(got, sided):.0e} |")


def main() -> None:
    torch.set_num_threads(2)
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
            print(explain(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
