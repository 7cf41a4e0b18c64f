"""Writes dynamo.onnx, by PyTorch's exporter that records modules, and dynamo.json: the module of each tensor.

The modules are found by values: a tensor has the name of the outermost module that returns its values.
Run with the current torch, onnx and onnxruntime.
"""

import json
import pathlib

import numpy
import onnx
import onnxruntime
import torch
from torch import nn

HERE = pathlib.Path(__file__).parent


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shortcut, self.conv1, self.conv2, self.act = nn.Identity(), nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 1), nn.ReLU()

    def forward(self, x):
        y = self.conv2(self.act(self.conv1(x)))
        return self.act(self.shortcut(x) + y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid())
        self.stages = nn.Sequential(nn.Sequential(Block(4), Block(4)), Block(4))
        self.norm, self.pool, self.drop, self.fc = nn.LayerNorm(4), nn.AdaptiveAvgPool2d(1), nn.Dropout(), nn.Linear(4, 5)

    def forward(self, x):
        x = self.stages(self.stem(x))
        x = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.fc(self.drop(self.pool(x).flatten(1)))


torch.manual_seed(3)
net, x = Net().eval(), torch.rand(2, 3, 8, 8)
program = torch.onnx.export(net, (x,), dynamo=True, dynamic_shapes={"x": {0: torch.export.Dim("batch")}}, input_names=["input"], output_names=["scores"], verbose=False)
model = program.model_proto
for n in model.graph.node:  # paths of files and code
    for entry in [e for e in n.metadata_props if e.key not in ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy")]:
        n.metadata_props.remove(entry)
onnx.save(model, HERE / "dynamo.onnx")

returned, calls = [], {}


def keep(name):
    def hook(_module, _inputs, out):
        count = calls[name] = calls.get(name, -1) + 1
        returned.append((name if count == 0 else f"{name}_{count}", name, out.detach().numpy().copy()))
    return hook


for name, module in net.named_modules():
    if name:
        module.register_forward_hook(keep(name))
net(x)
tensors = [o for n in model.graph.node for o in n.output]
extended = onnx.ModelProto()
extended.CopyFrom(model)
del extended.graph.output[:]
extended.graph.output.extend(onnx.helper.make_empty_tensor_value_info(t) for t in tensors)
values = dict(zip(tensors, onnxruntime.InferenceSession(extended.SerializeToString()).run(None, {"input": x.numpy()})))
names = {}
for tensor, value in values.items():
    same = [(call, name) for call, name, out in returned if out.shape == value.shape and numpy.allclose(out, value, atol=1e-5)]
    same = [(call, name) for call, name in same if not isinstance(net.get_submodule(name), (nn.Identity, nn.Dropout))]  # they pass a tensor on
    if same:
        names[tensor] = min(same, key=lambda s: s[0].count("."))[0]
last = {module: tensor for tensor, module in names.items()}  # of several tensors with the same values
names = {tensor: module for module, tensor in last.items()}
(HERE / "dynamo.json").write_text(json.dumps(names, indent=1, sort_keys=True) + "\n")
