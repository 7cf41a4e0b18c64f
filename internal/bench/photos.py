#!/usr/bin/python3
"""Times PIL and torchvision: photographs decoded, resized to 256, cropped to 224 and made tensors,
on one core.

usage: photos.py FOLDER                       in memory, on one core
       photos.py FOLDER --loader              files, by a DataLoader with two workers
       photos.py FOLDER --convert FORMAT OUT  writes the photographs as png or webp into a new folder
       photos.py FOLDER --copies N OUT        makes N links to them, in turn, in a new folder

Prints one JSON object with the images per second of processor time, or of the clock for the loader.
"""
import glob, io, json, os, sys, time
import torch
from PIL import Image
from torchvision import transforms as T

torch.set_num_threads(1)
paths = sorted(glob.glob(os.path.join(sys.argv[1], "*")))
frame = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()])
rounds = 3 if "--loader" in sys.argv else 10


class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return len(paths)

    def __getitem__(self, i):
        return frame(Image.open(paths[i]).convert("RGB"))


def convert(kind, out):
    os.makedirs(out)
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        Image.open(path).convert("RGB").save(os.path.join(out, name + "." + kind))


def copy(n, out):
    os.makedirs(out)
    for i in range(int(n)):
        path = paths[i % len(paths)]
        os.symlink(path, os.path.join(out, f"{i // len(paths):03d}-{os.path.basename(path)}"))


def load():
    loader = torch.utils.data.DataLoader(Photos(), batch_size=50, num_workers=2, persistent_workers=True)
    for _ in loader:  # starts the workers
        pass
    start, n = time.time(), 0
    for _ in range(rounds):
        for batch in loader:
            n += len(batch)
    return n / (time.time() - start)


def decode():
    photos = [open(path, "rb").read() for path in paths]
    start = time.process_time()
    for _ in range(rounds):
        for data in photos:
            frame(Image.open(io.BytesIO(data)).convert("RGB"))
    return rounds * len(photos) / (time.process_time() - start)


if sys.argv[2:3] == ["--convert"]:
    convert(*sys.argv[3:5])
elif sys.argv[2:3] == ["--copies"]:
    copy(*sys.argv[3:5])
else:
    print(json.dumps({"per_second": load() if "--loader" in sys.argv else decode()}))
