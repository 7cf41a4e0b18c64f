#!/usr/bin/python3
"""Times PIL and torchvision: photographs decoded, resized to 256, cropped to 224 and made tensors, on one core.

usage: photos.py FOLDER

Prints one JSON object with the images per second of processor time.
"""
import glob, io, json, os, sys, time
import torch
from PIL import Image
from torchvision import transforms as T

torch.set_num_threads(1)
photos = [open(path, "rb").read() for path in sorted(glob.glob(os.path.join(sys.argv[1], "*")))]
frame = T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()])
rounds = 3
start = time.process_time()
for _ in range(rounds):
    for data in photos:
        frame(Image.open(io.BytesIO(data)).convert("RGB"))
print(json.dumps({"per_second": rounds * len(photos) / (time.process_time() - start)}))
