#!/usr/bin/env python3
"""Compares rPC of a detector of torchvision, by this program, with PyTorch, imagecorruptions and pycocotools.

usage: rpc.py train DIR --photos FOLDER      # makes the data, trains the detector, and exports it
       rpc.py reference DIR                  # reference.json: mAP of each corruption by the packages; keeps the corrupted images
       rpc.py noether DIR --noether PROGRAM  # the same by this program, on these images and with its own corruptions

Needs torch, torchvision, onnx, imagecorruptions 1.1.2 and pycocotools. The data are photographs with squares, discs and triangles in
them, the detector is Faster R-CNN on MobileNetV3 with 192 x 192 pixels, trained for some minutes from random weights.
"""
import argparse, json, pathlib, subprocess, time
import numpy as np

SIZE, CLASSES, TRAIN, TEST = 192, ["square", "disc", "triangle"], 400, 40


def paste(photo, rng):
    """Draws one to three shapes into a photograph: the image, and boxes with classes from 1."""
    import cv2
    image, boxes, labels = photo.copy(), [], []
    for _ in range(rng.integers(1, 4)):
        side = int(rng.integers(36, 80))
        x, y = (int(v) for v in rng.integers(2, SIZE - side - 2, 2))
        if any(x < b[2] and b[0] < x + side and y < b[3] and b[1] < y + side for b in boxes):
            continue
        k, mask = int(rng.integers(3)), np.zeros((SIZE, SIZE), np.uint8)
        if k == 0:
            mask[y:y + side, x:x + side] = 1
        elif k == 1:
            cv2.circle(mask, (x + side // 2, y + side // 2), side // 2, 1, -1)
        else:
            cv2.fillPoly(mask, [np.array([[x, y + side - 1], [x + side - 1, y + side - 1], [x + side // 2, y]])], 1)
        image[mask > 0] = rng.integers(0, 256, 3) * 0.7 + image[mask > 0] * 0.3
        boxes.append([x, y, x + side, y + side]), labels.append(k + 1)
    return image, boxes, labels


def detector():
    import torch
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
    torch.manual_seed(1)
    kwargs = dict(weights=None, weights_backbone=None, num_classes=4, min_size=SIZE, max_size=SIZE, image_mean=[0.5] * 3, image_std=[0.25] * 3)
    return fasterrcnn_mobilenet_v3_large_320_fpn(**kwargs)


def train(a):
    import torch
    from PIL import Image
    rng = np.random.default_rng(5)
    photos = [np.array(Image.open(p).convert("RGB").resize((256, 256)))[32:224, 32:224] for p in sorted(a.photos.glob("*.JPEG"))]
    split = len(photos) // 2
    images, annotations = [], []
    (a.dir / "clean").mkdir(parents=True, exist_ok=True)
    for i in range(TEST):
        image, boxes, labels = paste(photos[split + i], rng)
        name = f"{i:012d}.png"
        Image.fromarray(image).save(a.dir / "clean" / name)
        images.append({"id": i, "file_name": name, "height": SIZE, "width": SIZE})
        for b, k in zip(boxes, labels):
            side = b[2] - b[0]
            annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": k, "iscrowd": 0, "area": side * side, "bbox": [b[0], b[1], side, side]})
    categories = [{"id": k + 1, "name": c} for k, c in enumerate(CLASSES)]
    (a.dir / "labels.json").write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    model = detector().train()
    optimiser = torch.optim.AdamW(model.parameters(), 5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-3, total_steps=a.steps)
    start = time.time()
    for step in range(a.steps):
        batch = [paste(photos[rng.integers(split)][:, ::rng.choice([-1, 1])], rng) for _ in range(8)]
        x = [torch.from_numpy(np.ascontiguousarray(i)).permute(2, 0, 1) / 255 for i, _, _ in batch]
        y = [{"boxes": torch.tensor(b, dtype=torch.float32), "labels": torch.tensor(k)} for _, b, k in batch]
        losses = model(x, y)
        loss = sum(losses.values())
        optimiser.zero_grad(), loss.backward(), optimiser.step(), schedule.step()
        if step % 25 == 0:
            print(step, round(loss.item(), 3), round(time.time() - start), "s", flush=True)
            torch.save(model.state_dict(), a.dir / "net.pt")
    torch.save(model.state_dict(), a.dir / "net.pt")
    model.eval()
    torch.onnx.export(model, [torch.rand(3, SIZE, SIZE)], a.dir / "net.onnx", opset_version=17, dynamo=False, input_names=["image"], output_names=["boxes", "labels", "scores"])


def precision(model, folder, coco):
    """COCO's mAP of a model on a folder of images."""
    import torch
    from PIL import Image
    from pycocotools.cocoeval import COCOeval
    found = []
    with torch.no_grad():
        for i in range(TEST):
            x = torch.from_numpy(np.array(Image.open(folder / f"{i:012d}.png").convert("RGB"))).permute(2, 0, 1) / 255
            out = model([x])[0]
            for b, k, s in zip(out["boxes"].tolist(), out["labels"].tolist(), out["scores"].tolist()):
                found.append({"image_id": i, "category_id": k, "score": s, "bbox": [b[0], b[1], b[2] - b[0], b[3] - b[1]]})
    if not found:
        return 0.0
    e = COCOeval(coco, coco.loadRes(found), "bbox")
    e.evaluate(), e.accumulate(), e.summarize()
    return float(e.stats[0])


def reference(a):
    import contextlib, io, torch
    from imagecorruptions import corrupt, get_corruption_names
    from PIL import Image
    from pycocotools.coco import COCO
    quiet = contextlib.redirect_stdout(io.StringIO())
    with quiet:
        coco = COCO(str(a.dir / "labels.json"))
    model = detector().eval()
    model.load_state_dict(torch.load(a.dir / "net.pt"))
    with quiet:
        out = {"clean": precision(model, a.dir / "clean", coco)}
    print("clean", out["clean"], flush=True)
    for kind in get_corruption_names():
        for severity in range(1, 6):
            folder = a.dir / f"{kind}-{severity}"
            folder.mkdir(exist_ok=True)
            for i in range(TEST):
                np.random.seed(1000 * severity + i)
                image = np.array(Image.open(a.dir / "clean" / f"{i:012d}.png"))
                Image.fromarray(corrupt(image, severity, kind)).save(folder / f"{i:012d}.png")
            with quiet:
                out[f"{kind}-{severity}"] = precision(model, folder, coco)
            print(kind, severity, out[f"{kind}-{severity}"], flush=True)
    (a.dir / "reference.json").write_text(json.dumps(out))
    mean = np.mean([v for k, v in out.items() if k != "clean"])
    print(f"reference: mPC {mean:.4f}, rPC {mean / out['clean']:.4f}")


def noether(a):
    want = json.loads((a.dir / "reference.json").read_text())
    annotations = a.dir / "labels.json"
    head = "models: [{name: net, onnx: net.onnx, output: {boxes: torchvision}, preprocess: {size: [%d, %d]}}]\nmeasures: [dense-accuracy]\n" % (SIZE, SIZE)
    data = "\n".join(f"  - {{name: {k}, coco: {{annotations: labels.json, images: {k}}}}}" for k in want)
    (a.dir / "theirs.yaml").write_text(f"name: theirs\ndata:\n{data}\n{head}")
    own = "{name: coco-c, benchmark: {name: coco-c, clean: clean, annotations: labels.json}}"
    (a.dir / "own.yaml").write_text(f"name: own\ndata:\n  - {own}\n{head}")
    for name in ("theirs", "own"):
        subprocess.run([a.noether, "run", f"{name}.yaml", "-o", f"run-{name}"], cwd=a.dir, check=True, stdout=subprocess.DEVNULL)
    import csv
    got = {r["data"]: float(r["value"]) for r in csv.DictReader((a.dir / "run-theirs/scores.csv").open()) if r["statistic"] == "clean-map" and not r["factor"]}
    differ = {k: got[k] - want[k] for k in want}
    print(f"on the same images: largest difference of mAP {max(map(abs, differ.values())):.2g} ({max(differ, key=lambda k: abs(differ[k]))})")
    mean, mean_want = (np.mean([v for k, v in d.items() if k != "clean"]) for d in (got, want))
    print(f"rPC {mean / got['clean']:.4f}, reference {mean_want / want['clean']:.4f}; clean mAP {got['clean']:.4f}, {want['clean']:.4f}")
    text = subprocess.run([a.noether, "benchmark", "run-own", "--all", "--json"], cwd=a.dir, check=True, capture_output=True, text=True).stdout
    for n in json.loads(text):
        kind = n.get("kind") or ""
        mean = np.mean([want[f"{kind.replace('-', '_')}-{s}"] for s in range(1, 6)]) if kind else ""
        print(n["statistic"], kind, n["value"], n.get("low"), n.get("high"), "reference", mean)


p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
p.add_argument("what", choices=["train", "reference", "noether"]), p.add_argument("dir", type=pathlib.Path)
p.add_argument("--photos", type=pathlib.Path), p.add_argument("--noether", default="noether"), p.add_argument("--steps", type=int, default=500)
a = p.parse_args()
{"train": train, "reference": reference, "noether": noether}[a.what](a)
