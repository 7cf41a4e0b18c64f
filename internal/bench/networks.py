#!/usr/bin/python3
"""Times a forward pass of PyTorch that keeps outputs of modules as numpy.

usage: networks.py PEERS NAME SIZE BATCH all|distances|CLASS [THREADS]
PEERS: the folder of nets.py, which builds NAME. SIZE is the side of the images. Outputs are kept of
every module without children, or of the modules of a class (ReLU, Bottleneck, CNBlock, ...). With
distances they are kept of every module without children, for a batch and for the batch rotated, and
the cosine, l1 and l2 distances between the two are computed; a run is then both passes. Prints one
JSON object: images per second by the median of seven runs, the smallest processor time of a run
(meaningful with one thread only, since idle threads use the processor too), the number and size of
the outputs that were kept, and peak memory.
"""
import json, os, resource, statistics, sys, time

threads = sys.argv[6] if len(sys.argv) > 6 else "2"
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = threads  # else the BLAS has threads of its own
import torch

sys.path.insert(0, sys.argv[1])
import nets

torch.manual_seed(0)
name, size, batch, which = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
torch.set_num_threads(int(threads))
net, x, kept = nets.build(name).eval(), torch.rand(batch, 3, size, size), []
for m in net.modules():
    if not list(m.children()) if which in ("all", "distances") else type(m).__name__ == which:
        m.register_forward_hook(lambda _, __, y: kept.append(y.detach().numpy()))


distances = []


def run():
    kept.clear()
    with torch.no_grad():
        net(x)
        if which == "distances":
            clean = kept.copy()
            distances.clear()
            kept.clear()
            net(x.rot90(1, (2, 3)))
            for a, b in zip(clean, kept):
                a, b = torch.from_numpy(a).flatten(1), torch.from_numpy(b).flatten(1)
                distances.append((1 - torch.cosine_similarity(a, b), (a - b).abs().sum(1), (a - b).norm(dim=1)))


for _ in range(2):
    run()
if not kept:
    sys.exit(f"{name} has no modules of class {which}")
seconds, processor = [], []
for _ in range(7):
    t, p = time.perf_counter(), time.process_time()
    run()
    seconds.append(time.perf_counter() - t)
    processor.append(time.process_time() - p)
print(json.dumps({
    "per_second": round(batch / statistics.median(seconds), 2),
    "cpu_ms_per_image": round(1e3 * min(processor) / batch, 2),
    "kept": len(kept),
    "mib_kept_per_image": round(sum(a.nbytes for a in kept) / batch / 2**20, 1),
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
}))
