#!/usr/bin/env python3
"""Compares rPC of a detector of torchvision, by this program, with PyTorch, imagecorruptions and pycocotools.

usage: rpc.py make DIR --photos FOLDER       # makes the data and the detector
       rpc.py reference DIR                  # reference.json: mAP of each corruption by the packages; keeps the corrupted images
       rpc.py noether DIR --noether PROGRAM  # the same by this program, on these images and with its own corruptions

Needs torch, torchvision, onnx, imagecorruptions 1.1.2 and pycocotools. The detector is Faster R-CNN on MobileNetV3 with random weights,
of 192 x 192 pixels. The labels are what it finds in photographs, moved by some pixels, so that corruptions lower its precision.
"""
import argparse, json, pathlib, subprocess
import numpy as np

SIZE, CLASSES, TEST = 192, ["first", "second", "third"], 16


def detector():
    import torch
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
    torch.manual_seed(1)
    kwargs = dict(weights=None, weights_backbone=None, num_classes=4, min_size=SIZE, max_size=SIZE, image_mean=[0.5] * 3, image_std=[0.25] * 3)
    return fasterrcnn_mobilenet_v3_large_320_fpn(**kwargs, box_nms_thresh=0.3)


def make(a):
    import torch
    from PIL import Image
    photos = [np.array(Image.open(p).convert("RGB").resize((256, 256)))[32:224, 32:224] for p in sorted(a.photos.glob("*.JPEG"))]
    inputs = [torch.from_numpy(p).permute(2, 0, 1) / 255 for p in photos]
    model = detector()
    with torch.no_grad():
        for layer in (model.rpn.head.cls_logits, model.roi_heads.box_predictor.cls_score):
            layer.weight *= 30  # scores that differ
        model.backbone.train()  # statistics of batch normalization
        for k in range(0, 64, 16):
            model.backbone((torch.stack(inputs[-k - 17:-k - 1]) - 0.5) / 0.25)
        model.eval()
        found = [model([x])[0] for x in inputs[:TEST]]
    torch.save(model.state_dict(), a.dir / "net.pt")
    rng = np.random.default_rng(5)
    images, annotations = [], []
    (a.dir / "clean").mkdir(parents=True, exist_ok=True)
    for i, out in enumerate(found):  # of its best boxes, moved by some pixels
        name = f"{i:012d}.png"
        Image.fromarray(photos[i]).save(a.dir / "clean" / name)
        images.append({"id": i, "file_name": name, "height": SIZE, "width": SIZE})
        for b, k in list(zip(out["boxes"].tolist(), out["labels"].tolist()))[:6]:
            x, y, w, h = b[0], b[1], b[2] - b[0], b[3] - b[1]
            x, y, w, h = (round(float(v), 2) for v in (x + rng.normal() * w / 20, y + rng.normal() * h / 20, w * (1 + rng.normal() / 20), h * (1 + rng.normal() / 20)))
            annotations.append({"id": len(annotations) + 1, "image_id": i, "category_id": k, "iscrowd": 0, "area": w * h, "bbox": [x, y, w, h]})
    categories = [{"id": k + 1, "name": c} for k, c in enumerate(CLASSES)]
    (a.dir / "labels.json").write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    print(len(annotations), "boxes; scores", [round(float(out["scores"][:3].mean()), 3) for out in found[:5]])
    torch.onnx.export(model, ([inputs[0]],), a.dir / "net.onnx", opset_version=17, dynamo=False, input_names=["image"], output_names=["boxes", "labels", "scores"])


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
p.add_argument("what", choices=["make", "reference", "noether"]), p.add_argument("dir", type=pathlib.Path)
p.add_argument("--photos", type=pathlib.Path), p.add_argument("--noether", default="noether")
a = p.parse_args()
{"make": make, "reference": reference, "noether": noether}[a.what](a)
