"""The forward passes of a study of a served model, by PyTorch alone, on two threads: served.py NAME FILE BATCH.

usage: served.py NAME FILE BATCH    a network of torchvision on the images of a .npy, and on three rotations
       served.py --images FOLDER N OUT    writes N photographs of a folder as such an array, n x 224 x 224 x 3

Print a JSON object with the images, forward passes, per second.
"""

import glob
import json
import os
import sys
import time

import numpy as np
import torch
import torchvision
from PIL import Image


def images(folder, n, out):
    paths = sorted(glob.glob(os.path.join(folder, "*")))[: int(n)]
    frame = torchvision.transforms.Compose([torchvision.transforms.Resize(256), torchvision.transforms.CenterCrop(224)])
    np.save(out, np.stack([np.asarray(frame(Image.open(path).convert("RGB"))) for path in paths]))


def passes(name, file, batch):
    torch.set_num_threads(2)
    net = getattr(torchvision.models, name)().eval()
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    x = ((torch.from_numpy(np.load(file)).permute(0, 3, 1, 2).float() / 255 - mean) / std).contiguous()
    views = [torch.rot90(x, k, (2, 3)).contiguous() for k in range(4)]
    with torch.no_grad():
        net(x[: int(batch)])
        start = time.perf_counter()
        for batches in zip(*(v.split(int(batch)) for v in views)):
            for b in batches:
                net(b)
        seconds = time.perf_counter() - start
    print(json.dumps({"seconds": round(seconds, 5), "per_second": round(4 * len(x) / seconds, 2)}))


if sys.argv[1] == "--images":
    images(*sys.argv[2:])
else:
    passes(*sys.argv[1:])
