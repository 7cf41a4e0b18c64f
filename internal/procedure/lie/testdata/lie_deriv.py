"""Computes Lie derivatives by the paper's own code, github.com/ngruver/lie-deriv, and writes
lie_deriv.json and the graphs resnet.onnx and vit.onnx without their weights.

    python3 lie_deriv.py CHECKOUT-OF-LIE-DERIV

The networks are torchvision's, a ResNet of four basic blocks and a ViT of two. Every weight is a
formula of its name and index, which lie_deriv_test.go has too. Sides of images and maps are a power
of two plus one, at which grid positions have no rounding errors: the code takes differences to the
next position, and an error would select the position before.
"""

import json
import math
import os
import sys
import types

import numpy as np
import onnx
import torch
import torchvision

for name in ("timm", "timm.models", "timm.models.vision_transformer", "timm.models.mlp_mixer", "timm.models.layers",
             "timm.models.senet", "timm.models.efficientnet_blocks", "timm.models.convit"):
    sys.modules[name] = types.ModuleType(name)  # only names the classes of timm that have no hooks inside
for module, classes in {"vision_transformer": "Attention", "mlp_mixer": "MixerBlock Affine SpatialGatingBlock",
                        "layers": "PatchEmbed Mlp DropPath BlurPool2d GatherExcite EvoNormBatch2d", "senet": "SEModule",
                        "efficientnet_blocks": "SqueezeExcite", "convit": "MHSA GPSA"}.items():
    for c in classes.split():
        setattr(sys.modules["timm.models." + module], c, type(c, (), {}))
for name in ("tqdm", "pandas"):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
sys.path.insert(0, sys.argv[1])
from lee import layerwise_lee as layerwise, lie_derivs  # noqa: E402

torch.set_default_dtype(torch.float64)
HERE = os.path.dirname(os.path.abspath(__file__))
SIDE, CLASSES = 65, 10


def weight(name, shape):
    """The values of a weight: sin(7 s + 0.61 i + 0.013 i mod 97), with s the sum of the name's bytes."""
    n = int(np.prod(shape))
    i = np.arange(n, dtype=np.float64)
    v = np.sin(7 * sum(name.encode()) + 0.61 * i + 0.013 * (i % 97))
    if name.endswith("running_var"):
        v = 1 + 0.5 * v
    elif len(shape) == 1 and name.endswith("weight"):
        v = 1 + 0.25 * v  # of a normalisation
    elif len(shape) == 1:
        v = 0.1 * v
    else:
        v = v * math.sqrt(2 * shape[0] / n) * 1.4
    return torch.from_numpy(v.astype(np.float32).astype(np.float64).reshape(shape))


def image():
    """An image of waves and a bright square, with values in [0, 1]."""
    c, y, x = np.meshgrid(range(3), range(SIDE), range(SIDE), indexing="ij")
    v = 0.5 + 0.2 * np.sin(0.31 * x + 0.17 * y + c) + 0.2 * np.sin(0.07 * x * (1 + 0.3 * c) - 0.23 * y)
    v += 0.1 * ((abs(x - 20) < 9) & (abs(y - 40) < 7))
    return torch.from_numpy(v.astype(np.float32).astype(np.float64))[None]


def networks():
    yield "resnet", torchvision.models.resnet.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=CLASSES)
    yield "vit", torchvision.models.VisionTransformer(image_size=SIDE, patch_size=13, num_layers=2, num_heads=2, hidden_dim=16,
                                                      mlp_dim=32, num_classes=CLASSES)


def not_inplace(net):
    for name, child in net.named_children():
        if isinstance(child, torch.nn.ReLU):
            setattr(net, name, torch.nn.ReLU())
        else:
            not_inplace(child)


def export(name, net, x):
    """Writes the graph without weights and returns it with the outputs of its nodes by scope."""
    path = os.path.join(HERE, name + ".onnx")
    torch.set_default_dtype(torch.float32)
    torch.onnx.export(net.float(), x.float(), path, opset_version=17, input_names=["x"], output_names=["logits"], do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE)
    net.double()
    torch.set_default_dtype(torch.float64)
    m = onnx.load(path)
    m.graph.ClearField("value_info")
    for t in m.graph.initializer:
        assert t.name in dict(net.named_parameters()) or t.name in dict(net.named_buffers()), t.name
        for field in ("raw_data", "float_data"):
            t.ClearField(field)
    for n in m.graph.node:
        n.ClearField("doc_string")
    onnx.save(m, path)
    scopes = {}
    for n in m.graph.node:
        scopes.setdefault(n.name.rsplit("/", 1)[0].lstrip("/"), []).append(n.output[0])
    return scopes


def main():
    golden = {}
    for name, net in networks():
        net.eval()
        not_inplace(net)
        with torch.no_grad():
            for k, p in list(net.named_parameters()) + list(net.named_buffers()):
                if p.dtype.is_floating_point:
                    p.copy_(weight(k, tuple(p.shape)))
        x = image()
        scopes = export(name, net, x)
        golden[name] = {"layers": layers(net, scopes, x), "output": whole(net, x),
                        "between": [t for s, list in scopes.items() if s.split("/")[-1].startswith(("encoder", "layer")) for t in list if "/Add" in t]}
    with open(os.path.join(HERE, "lie_deriv.json"), "w") as f:
        json.dump(golden, f, indent=1)


DERIVATIVES = {
    "translate-x": lambda f, x: lie_derivs.translation_lie_deriv(f, x, "x"),
    "translate-y": lambda f, x: lie_derivs.translation_lie_deriv(f, x, "y"),
    "rotate": lie_derivs.rotation_lie_deriv,
    "scale": lie_derivs.scale_lie_deriv,
    "shear-x": lambda f, x: lie_derivs.shear_lie_deriv(f, x, "x"),
    "shear-y": lambda f, x: lie_derivs.shear_lie_deriv(f, x, "y"),
    "brightness": lie_derivs.saturate_lie_deriv,
}


def whole(net, x):
    """The mean square of the Lie derivative of the probabilities, as in e2e_lee.py."""
    f = lambda z: torch.softmax(net(z), dim=-1)
    return {g: float((d(f, x) ** 2).mean()) for g, d in DERIVATIVES.items()}


def layers(net, scopes, x):
    """For each call of a module with hooks in layerwise_lee.py: its tensor in the graph, the mean square
    of the Lie derivative of the network up to it, and its term in the attribution."""
    calls = []
    hooked = []
    layerwise.selective_apply(net, hooked.append)
    names = {m: n for n, m in net.named_modules()}
    seen = {}
    handles = []

    def note(module, inputs, output):
        k = seen.get(module, 0)
        seen[module] = k + 1
        calls.append((names[module], k, module))

    for m in hooked:
        handles.append(m.register_forward_hook(note))
    net(x)
    for h in handles:
        h.remove()
    out = []
    terms = {g: attribution(net, x, g) for g in ("translation", "rotation", "scale")}
    for module_name, k, module in calls:
        tensor = tensor_of(scopes, module_name, k)
        row = {"module": module_name, "tensor": tensor, "lee": {}, "terms": {g: t[module_name, k] for g, t in terms.items()}}
        for g in ("translate-x", "rotate", "scale"):
            row["lee"][g] = float((DERIVATIVES[g](lambda z: prefix(net, module, k, z), x) ** 2).mean())
        out.append(row)
    return out


def tensor_of(scopes, module_name, k):
    """The last output in the scope of the k-th call of a module."""
    for scope, outputs in scopes.items():
        path = []
        for p in scope.split("/"):  # inside a Sequential a part repeats the name before it
            path.append(p[len(path[-1]) + 1:] if path and p.startswith(path[-1] + ".") else p)
        if path == module_name.split(".") and k == 0 or path == (module_name + f"_{k}").split("."):
            return outputs[-1]
    raise KeyError(module_name)


def prefix(net, module, call, x):
    """The output of a call of a module."""
    kept = []
    h = module.register_forward_hook(lambda m, i, o: kept.append(o.clone()))  # blocks add to it in place
    net(x)
    h.remove()
    return kept[call]


def attribution(net, x, transform):
    """compute_equivariance_attribution with the unit vectors as probes, which gives the expected value
    over normal probes without their noise: E (z^T J L)^2 = sum_j (e_j^T J L)^2."""
    import copy
    net = copy.deepcopy(net)
    layerwise.apply_hooks(net, transform)
    layerwise.singleton.op_counter = 0
    layerwise.singleton.compute_lie = True
    sums = {}
    for j in range(CLASSES):
        layerwise.singleton.fwd = True
        y = torch.softmax(net(x), dim=1)
        layerwise.singleton.fwd = False
        y[0, j].backward()
        net.zero_grad()
        layerwise.singleton.op_counter = 0
        for name, module in net.named_modules():
            for k, v in enumerate(getattr(module, "_lie_norm_sum", [])):
                sums[name, k] = sums.get((name, k), 0.0) + float(np.sum(v))
        layerwise.selective_apply(net, lambda m: layerwise.reset2(m) if hasattr(m, "_lie_norm_sum") else None)
    return sums


if __name__ == "__main__":
    main()
