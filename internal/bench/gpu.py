#!/usr/bin/python3
"""Times PyTorch on a graphics processor, by CUDA, on work that Noether does.

usage: gpu.py PEERS photos FOLDER invariance|distance  photographs read by a DataLoader, a ResNet-50 at
                                                       224 and three rotations; also the distances of
                                                       the outputs of its 16 blocks
       gpu.py PEERS seis FILE N                        SEIS at every convolution of a ResNet-20, for N
                                                       images of a CIFAR-10 file under a random rotation
       gpu.py PEERS invert NAME SIZE BATCH             a step of an inversion of the penultimate features
       gpu.py PEERS train NAME SIZE BATCH              a step of SGD: forward, backward and update
       gpu.py PEERS probe DIM HIDDEN,... N             an epoch of a regression probe, batch 32, Adam

PEERS is a folder outside this repository (see main.go), whose nets.py builds NAME. Prints one JSON
object with the images (forward passes) or samples per second. Products of float32 numbers are in
float32 (no TF32), as Noether's.
"""
import glob, json, os, statistics, sys, time
import numpy as np, torch, torch.nn.functional as F
from PIL import Image
from torchvision import transforms as T

sys.path.insert(0, sys.argv[1])
import nets

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
device = torch.device("cuda")


def timed(f, runs=5, warm=2, repeat=1):
    """Returns the median time of a call of f. A run is repeat calls."""
    for _ in range(warm):
        f()
    out = []
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeat):
            f()
        torch.cuda.synchronize()
        out.append((time.perf_counter() - start) / repeat)
    return statistics.median(out)


class Photos(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.paths = sorted(glob.glob(os.path.join(folder, "*")))
        self.frame = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.frame(Image.open(self.paths[i]).convert("RGB"))


def photos(folder, measure):
    net, kept = nets.build("resnet50").eval().to(device), []
    if measure == "distance":
        for m in net.modules():
            if type(m).__name__ == "Bottleneck":
                m.register_forward_hook(lambda _, __, y: kept.append(y.flatten(1)))
    mean, std = (torch.tensor(v, device=device).view(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))

    def views(x):
        p, c = net((x - mean) / std).softmax(1).max(1)
        return p, c, list(kept), kept.clear()

    def run():
        loader = torch.utils.data.DataLoader(Photos(folder), batch_size=100, num_workers=os.cpu_count(), pin_memory=True)
        sums, total = [], 0
        with torch.no_grad():
            for x in loader:
                x = x.to(device, non_blocking=True)
                p, c, clean, _ = views(x)
                for k in (1, 2, 3):
                    q, d, turned, _ = views(torch.rot90(x, k, (2, 3)))
                    sums.append(((p * q).sqrt() * (c == d)).sum())
                    for a, b in zip(clean, turned):
                        sums += [((a - b).norm(dim=1) / a.norm(dim=1)).sum(), F.cosine_similarity(a, b).sum()]
                total += len(x)
            torch.stack(sums).cpu()
        return total

    start = time.perf_counter()  # as a study of Noether: with the start of workers, without that of CUDA
    return 4 * run() / (time.perf_counter() - start)


def seis(file, n):
    net = nets.build("cifar_resnet20").eval().to(device)
    data = np.fromfile(file, np.uint8).reshape(-1, 3073)[: int(n)]
    x = torch.from_numpy(data[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255).to(device)
    kept = []
    for m in net.modules():
        if isinstance(m, torch.nn.Conv2d):
            m.register_forward_hook(lambda _, __, y: kept.append(y))
    angle = (torch.rand(len(x), device=device) - 0.5) * 0.52
    c, s = angle.cos(), angle.sin()
    theta = torch.stack([torch.stack([c, -s, c * 0], 1), torch.stack([s, c, c * 0], 1)], 1)
    turned = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)

    def collect(v):
        out = []
        with torch.no_grad():
            for b in v.split(256):
                kept.clear()
                net(b)
                out.append(list(kept))
        return [torch.cat(l) for l in zip(*out)]

    def lead(z):
        a = z.permute(2, 3, 0, 1).reshape(z.shape[2] * z.shape[3], -1)
        u, s, vt = torch.linalg.svd(a - a.mean(1, keepdim=True), full_matrices=False)
        k = int(torch.searchsorted(torch.cumsum(s**2, 0) / torch.sum(s**2), 0.99)) + 1
        return u[:, :k], s[:k], vt[:k]

    def run():
        scores = []
        for z, zt in zip(collect(x), collect(turned)):
            (ua, sa, va), (ub, sb, vb) = lead(z), lead(zt)
            p, rho, qt = torch.linalg.svd(va @ vb.T)
            w, v = ua @ (p[:, : len(rho)] / sa[:, None]), ub @ (qt[: len(rho)].T / sb[:, None])
            cos = (w * v).sum(0).abs() / (w.norm(dim=0) * v.norm(dim=0))
            scores.append((float(rho.mean()), float((rho * cos).mean())))
        return scores

    return len(x) / timed(run, runs=1, warm=0)


def invert(name, size, batch):
    net = nets.build(name).eval().to(device)
    for p in net.parameters():
        p.requires_grad_(False)
    features = {}
    last = [m for m in net.modules() if isinstance(m, torch.nn.Linear)][-1]
    last.register_forward_pre_hook(lambda _, a: features.__setitem__("z", a[0]))
    x = torch.rand(int(batch), 3, int(size), int(size), device=device)
    net(x)
    want, y = features["z"].detach(), torch.randn_like(x)

    def step():
        nonlocal y
        y = y.detach().requires_grad_(True)
        net(y)
        loss = ((features["z"] - want).norm(dim=1) / want.norm(dim=1)).mean()
        (g,) = torch.autograd.grad(loss, y)
        y = (y - 0.5 * g / (g.flatten(1).norm(dim=1).view(-1, 1, 1, 1) + 1e-10)).clamp(0, 1)

    return int(batch) / timed(step, repeat=10)


def train(name, size, batch):
    net = nets.build(name).train().to(device)
    x, t = torch.rand(int(batch), 3, int(size), int(size), device=device), torch.randint(0, 10, (int(batch),), device=device)
    optimiser = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)

    def step():
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), t).backward()
        optimiser.step()

    return int(batch) / timed(step, repeat=10)


def probe(dim, hidden, n):
    sizes = [int(dim)] + [int(h) for h in hidden.split(",") if h] + [1]
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1]).to(device)
    optimiser = torch.optim.Adam(net.parameters(), 1e-3, weight_decay=1e-3)
    x, y = torch.randn(int(n), int(dim), device=device), torch.randn(int(n), 1, device=device)

    def epoch():
        order = torch.randperm(len(x), device=device)
        for i in range(0, len(x), 32):
            j = order[i : i + 32]
            optimiser.zero_grad(set_to_none=True)
            F.mse_loss(net(x[j]), y[j]).backward()
            optimiser.step()

    return int(n) / timed(epoch, runs=3)


torch.zeros(1, device=device)
rate = {f.__name__: f for f in (photos, seis, invert, train, probe)}[sys.argv[2]](*sys.argv[3:])
print(json.dumps({"per_second": round(rate, 2)}))
