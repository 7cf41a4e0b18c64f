#!/usr/bin/env python3
"""Writes kinks.json: gradients that PyTorch takes where functions have kinks, ties and poles.

Each case names an ONNX operator with its attributes and operands, the cotangent of its first output, and the gradients of
the operands as torch.autograd has them (null where an operand is not differentiated). Run with PyTorch 1.13.
"""
import json, math, os
import torch
import torch.nn.functional as F

cases = []


def t(*v, shape=None):
    x = torch.tensor(v, dtype=torch.float32)
    return x.reshape(shape) if shape is not None else x


def plain(v):
    """JSON has no infinities."""
    return [("nan" if math.isnan(a) else "inf" if a > 0 else "-inf") if not math.isfinite(a) else a for a in v.flatten().tolist()]


def case(name, op, f, *operands, opset=18, fixed=(), **attrs):
    xs = [x.clone().requires_grad_(x.is_floating_point() and i not in fixed) for i, x in enumerate(operands)]
    y = f(*xs)
    dy = torch.arange(1, y.numel() + 1, dtype=torch.float32).reshape(y.shape) / 4
    y.backward(dy)
    cases.append({
        "name": name, "op": op, "opset": opset, "attributes": {k: {"float": v} if isinstance(v, float) else v for k, v in attrs.items()}, "fixed": list(fixed),
        "operands": [{"shape": list(x.shape), "integers" if not x.is_floating_point() else "values": x.flatten().tolist()
                      if not x.is_floating_point() else plain(x.detach())} for x in xs],
        "dy": {"shape": list(dy.shape), "values": plain(dy)},
        "gradients": [plain(x.grad) if x.requires_grad else None for x in xs],
    })


# Inputs at and around 0. Python's -0.0 is the negative zero of float32.
around = t(-2, -1, -0.0, 0, 1, 2)
case("relu", "Relu", F.relu, around)
case("leaky relu", "LeakyRelu", lambda x: F.leaky_relu(x, 0.25), around, alpha=0.25)
case("prelu", "PRelu", lambda x, a: F.prelu(x, a), around, t(0.25), opset=16)
case("elu", "Elu", lambda x: F.elu(x, 0.5), around, alpha=0.5)
case("selu", "Selu", F.selu, around)
case("celu", "Celu", lambda x: F.celu(x, 2.0), around, alpha=2.0)
case("thresholded relu", "ThresholdedRelu", lambda x: F.threshold(x, 1.0, 0.0), around, alpha=1.0)
case("hard shrink", "Shrink", lambda x: F.hardshrink(x, 1.0), around, lambd=1.0)
case("soft shrink", "Shrink", lambda x: F.softshrink(x, 1.0), around, lambd=1.0, bias=1.0)
case("softsign", "Softsign", F.softsign, around)
case("abs", "Abs", torch.abs, around)
case("sign", "Sign", torch.sign, around)
case("round", "Round", torch.round, t(-1.5, -0.5, 0.5, 1.5))
case("hard sigmoid", "HardSigmoid", F.hardsigmoid, t(-4, -3, 0, 3, 4), alpha=1 / 6, beta=0.5)
case("hard swish", "HardSwish", F.hardswish, t(-4, -3, 0, 3, 4))
case("sigmoid far out", "Sigmoid", torch.sigmoid, t(-200, -80, 80, 200))
case("softplus far out", "Softplus", F.softplus, t(-200, -80, 80, 200))
case("mish far out", "Mish", F.mish, t(-200, -30, 0, 30, 200))
case("gelu far out", "Gelu", F.gelu, t(-50, -6, 0, 6, 50), opset=20, approximate="none")
case("gelu by tanh far out", "Gelu", lambda x: F.gelu(x, approximate="tanh"), t(-50, -6, 0, 6, 50), opset=20, approximate="tanh")
case("elu far out", "Elu", F.elu, t(-200, 200))

case("clip", "Clip", lambda x, a, b: torch.clamp(x, a, b), t(-2, -1, 0, 1, 2), t(-1, shape=()), t(1, shape=()), opset=13)
case("clip below", "Clip", lambda x, a: torch.clamp(x, min=a), t(-2, -1, 0), t(-1, shape=()), opset=13)
case("clip to a point", "Clip", lambda x, a, b: torch.clamp(x, a, b), t(0, 1, 2), t(1, shape=()), t(1, shape=()), opset=13)
case("clip with crossed bounds", "Clip", lambda x, a, b: torch.clamp(x, a, b), t(0, 1, 1.5, 2, 3), t(2, shape=()), t(1, shape=()), opset=13)
case("clip by attributes", "Clip", lambda x: torch.clamp(x, -1, 1), t(-2, -1, 0, 1, 2), opset=7, min=-1.0, max=1.0)

case("maximum, ties", "Max", torch.maximum, t(1, 2, 3), t(1, 3, 2), opset=13)
case("minimum, ties", "Min", torch.minimum, t(1, 2, 3), t(1, 3, 2), opset=13)
case("maximum, ties with a scalar", "Max", torch.maximum, t(0, 1, 0, -1, shape=(2, 2)), t(0, shape=(1,)), opset=13)
case("largest, ties", "ReduceMax", lambda x: torch.amax(x, 1, True), t(1, 3, 3, 2, 2, 2, shape=(2, 3)), opset=13, axes=[1])
case("smallest, ties", "ReduceMin", lambda x: torch.amin(x, (0, 1)), t(1, 3, 1, 2, 1, 2, shape=(2, 3)), opset=13, keepdims=0)

case("square root of 0", "Sqrt", torch.sqrt, t(0, 1, 4))
case("logarithm of 0", "Log", torch.log, t(0, 1))
case("powers of 0", "Pow", torch.pow, t(0, 0, 0, 0, 0, 0), t(0, 0.5, 1, 2, 3, 2.5), opset=15)
case("0 to the power 0.5, constant", "Pow", torch.pow, t(0, 1), t(0.5, shape=()), fixed=(1,), opset=15)
case("0 to the power 0, constant", "Pow", torch.pow, t(0, 1, -1), t(0, shape=()), fixed=(1,), opset=15)
case("0 to the power 1.5, constant", "Pow", torch.pow, t(0, 1), t(1.5, shape=()), fixed=(1,), opset=15)
case("negative numbers squared", "Pow", torch.pow, t(-2, 0, 3), t(2, 2, 2), fixed=(1,), opset=15)
case("product with no, one and two zeros", "ReduceProd", lambda x: torch.prod(x, 1), t(1, 2, 3, 4, 0, 5, 0, 0, 6, shape=(3, 3)),
     opset=13, axes=[1], keepdims=0)
case("product of all with a zero", "ReduceProd", lambda x: torch.prod(x), t(2, 0, 3, shape=(3,)), opset=13, keepdims=0)
case("length of 0", "ReduceL2", lambda x: torch.linalg.vector_norm(x, 2, 1), t(0, 0, 3, 4, shape=(2, 2)), opset=13, axes=[1], keepdims=0)
case("sum of magnitudes at 0", "ReduceL1", lambda x: torch.linalg.vector_norm(x, 1, 1), t(0, -1, 3, 0, shape=(2, 2)), opset=13, axes=[1], keepdims=0)
case("logsumexp of large numbers", "ReduceLogSumExp", lambda x: torch.logsumexp(x, 1), t(100, 100, -100, -101, shape=(2, 2)), opset=13, axes=[1], keepdims=0)
case("logsumexp with minus infinity", "ReduceLogSumExp", lambda x: torch.logsumexp(x, 1), t(-math.inf, 0, 1, 1, shape=(2, 2)), opset=13, axes=[1], keepdims=0)
case("cumulative sum", "CumSum", lambda x, a: torch.cumsum(x, 0), t(1, 2, 3), torch.tensor(0), opset=14)

equal = torch.ones(1, 1, 4, 4)
ties = t(1, 2, 2, 0, 2, 1, 0, 2, 3, 3, 1, 1, 3, 3, 1, 1, shape=(1, 1, 4, 4))
for name, x in [("equal", equal), ("ties", ties), ("zero after relu", torch.zeros(1, 2, 5, 5))]:
    case(f"max pool, {name}", "MaxPool", lambda x: F.max_pool2d(x, 2), x, opset=12, kernel_shape=[2, 2], strides=[2, 2])
    case(f"overlapping max pool, {name}", "MaxPool", lambda x: F.max_pool2d(x, 3, 2, 1), x, opset=12, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    case(f"dense max pool, {name}", "MaxPool", lambda x: F.max_pool2d(x, 2, 1), x, opset=12, kernel_shape=[2, 2])
    case(f"dilated max pool, {name}", "MaxPool", lambda x: F.max_pool2d(x, 2, 1, dilation=2), x, opset=12, kernel_shape=[2, 2], dilations=[2, 2])
    case(f"global max pool, {name}", "GlobalMaxPool", lambda x: F.adaptive_max_pool2d(x, 1), x, opset=12)
case("max pool of pairs", "MaxPool", lambda x: F.max_pool1d(x, 2), t(1, 1, 2, 2, 3, 3, shape=(1, 1, 6)), opset=12, kernel_shape=[2], strides=[2])
case("softmax of large numbers", "Softmax", lambda x: F.softmax(x, -1), t(1000, 1000, 0, -1000, shape=(1, 4)), opset=13, axis=-1)
case("log softmax of large numbers", "LogSoftmax", lambda x: F.log_softmax(x, -1), t(1000, 1000, 0, -1000, shape=(1, 4)), opset=13, axis=-1)
case("norm of equal numbers", "LayerNormalization", lambda x, w: F.layer_norm(x, (3,), w), t(1, 1, 1, 2, 2, 2, shape=(2, 3)), t(1, 2, 3), opset=17, axis=-1, epsilon=1e-5)
case("gather the same twice", "Gather", lambda x, i: x[i], t(1, 2, 3), torch.tensor([1, 1, -1]), opset=13)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinks.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(len(cases), "cases")
