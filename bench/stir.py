#!/usr/bin/python3
"""Times a whole STIR in PyTorch on two threads: 100 CIFAR-10 images, 1,000 steps, two ResNet-20.

usage: stir.py PEERS FILE [IMAGES STEPS]    PEERS: the folder of nets.py; FILE: CIFAR-10 in its binary layout

The loop of Nanda et al. 2022 as one writes it: noise, steps of length 0.5 along the gradient of |m1(x') - m1(x)| normalised for each
image, clipping, the best image kept; then linear CKA of m2(x) and m2(x'). Prints one JSON object.
"""
import json, resource, sys, time
import numpy as np, torch

sys.path.insert(0, sys.argv[1])
import nets

torch.set_num_threads(2)
torch.manual_seed(0)
images, steps = (int(v) for v in sys.argv[3:5]) if len(sys.argv) > 4 else (100, 1000)
mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def model():
    net = nets.build("cifar_resnet20").eval()
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


raw = np.fromfile(sys.argv[2], np.uint8, 3073 * images).reshape(images, 3073)
x = torch.from_numpy(raw[:, 1:].reshape(images, 3, 32, 32).astype(np.float32) / 255)
m1, m2 = model(), model()
start = time.perf_counter()
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
    score = cka(m2(x), m2(best))
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": round(seconds, 2), "cpu_seconds": round(used.ru_utime + used.ru_stime, 2), "stir": round(score, 4),
                  "distance": round(float((key / want.norm(dim=1)).mean()), 5), "peak_mib": used.ru_maxrss // 1024}))
