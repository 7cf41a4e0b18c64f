"""Write a network of PEERS as an ONNX file, as PyTorch's exporter by tracing writes it by default.

usage: model.py PEERS OUT NAME SIZE. Weights are random; BatchNorm holds the statistics of its own
activations. OUT/model.onnx takes any number of images of SIZE pixels a side.
"""

import inspect
import os
import sys
import warnings

import torch

peers, out, name, size = sys.argv[1:]
sys.path.insert(0, peers)
sys.argv = sys.argv[:1]  # importing export.py then exports nothing
import export  # noqa: E402
import nets  # noqa: E402

warnings.filterwarnings("ignore")
torch.manual_seed(0)
net = nets.build(name)
with torch.no_grad():
    export.settle(net, int(size))
os.makedirs(out, exist_ok=True)
tracing = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
torch.onnx.export(net, (torch.rand(2, 3, int(size), int(size)),), os.path.join(out, "model.onnx"), **tracing,
                  input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
