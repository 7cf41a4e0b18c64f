#!/usr/bin/python3
"""Times STIR (similarity through inverted representations) in PyTorch on two threads: 100 CIFAR-10
images, 1,000 steps, two ResNets for CIFAR.

usage: stir.py PEERS FILE REFERENCE OTHER [IMAGES STEPS [norms]]
PEERS: the folder of nets.py; FILE: CIFAR-10 in its binary layout; REFERENCE, OTHER: ResNets for
CIFAR as ONNX, whose weights are taken

PyTorch's exporter folds batch normalisations into convolutions. The network of such a file has
none, unless norms is given: then it has normalisations that change nothing, so that the work is
that of the network before its export.

This is the method of Nanda et al. 2022 in plain PyTorch, where m1 and m2 are the penultimate layers
of REFERENCE and OTHER: start from noise, take steps of length 0.5 along the gradient of
|m1(x') - m1(x)| normalised for each image, clip, and keep the best image; then compute linear CKA
of m2(x) and m2(x'), and of m1(x) and m2(x). Prints one JSON object.
"""
import json, resource, sys, time
import numpy as np, onnx, torch
from onnx import numpy_helper

sys.path.insert(0, sys.argv[1])
import nets

torch.set_num_threads(2)
torch.manual_seed(0)
images, steps = (int(v) for v in sys.argv[5:7]) if len(sys.argv) > 6 else (100, 1000)
keep_norms = sys.argv[7:] == ["norms"]
mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def read(path):
    """The network with a file's weights."""
    graph = onnx.load(path).graph
    arrays = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
    weights = lambda op: [[arrays[name] for name in n.input[1:]] for n in graph.node if n.op_type == op]
    convs, norms, (linear,) = weights("Conv"), weights("BatchNormalization"), weights("Gemm")
    net = nets.build(f"cifar_resnet{len(convs) + 1}").eval()
    if not norms and not keep_norms:
        for block in [net, *net.blocks]:
            for name in [k for k, m in block.named_children() if isinstance(m, torch.nn.BatchNorm2d)]:
                setattr(block, name, torch.nn.Identity())
    with torch.no_grad():
        for m in [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]:
            m.running_var.fill_(1 - m.eps)
        for m, (w, *bias) in zip([m for m in net.modules() if isinstance(m, torch.nn.Conv2d)], convs):
            m.weight.copy_(w)
            m.bias = torch.nn.Parameter(bias[0]) if bias else None
        for m, values in zip([m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)], norms):
            for dst, src in zip((m.weight, m.bias, m.running_mean, m.running_var), values):
                dst.copy_(src)
        net.linear.weight.copy_(linear[0])
        net.linear.bias.copy_(linear[1])
    return net


def model(path):
    """The function from images to the penultimate layer of a file's network."""
    net = read(path)
    for p in net.parameters():
        p.requires_grad_(False)
    kept = {}
    net.linear.register_forward_pre_hook(lambda _, a: kept.__setitem__("z", a[0]))

    def features(x):
        net((x - mean) / std)
        return kept["z"]

    return features


def cka(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return float((x.T @ y).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm()))


raw = np.fromfile(sys.argv[2], np.uint8, 3073 * images).reshape(images, 3073)  # a label, then 3 x 32 x 32
x = torch.from_numpy(raw[:, 1:].reshape(images, 3, 32, 32).astype(np.float32) / 255)
m1, m2 = model(sys.argv[3]), model(sys.argv[4])
start, before = time.perf_counter(), time.process_time()
want = m1(x)
y = torch.randint(0, 256, x.shape).float() / 255
best, key = y.clone(), torch.full((images,), float("inf"))
for _ in range(steps + 1):
    y = y.detach().requires_grad_(True)
    loss = (m1(y) - want).norm(dim=1)
    (g,) = torch.autograd.grad(loss.sum(), y)
    with torch.no_grad():
        better = loss < key
        key, best = torch.where(better, loss, key), torch.where(better.view(-1, 1, 1, 1), y, best)
        y = (y - 0.5 * g / (g.flatten(1).norm(dim=1).view(-1, 1, 1, 1) + 1e-10)).clamp(0, 1)
with torch.no_grad():
    z = m2(x)
    score, similar = cka(z, m2(best)), cka(want, z)
seconds, used = time.perf_counter() - start, time.process_time() - before
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({"seconds": round(seconds, 2), "cpu_seconds": round(used, 2), "stir": round(score, 4), "cka": round(similar, 5),
                  "distance": round(float((key / want.norm(dim=1)).mean()), 5), "peak_mib": peak}))
