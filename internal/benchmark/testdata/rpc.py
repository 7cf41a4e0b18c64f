#!/usr/bin/env python3
"""Compares rPC of a detector of torchvision, by this program, with imagecorruptions and pycocotools.

usage: rpc.py make DIR --photos FOLDER       # makes the data and the detector
       rpc.py reference DIR                  # reference.json: mAP of each corruption by the packages; keeps the corrupted images
       rpc.py noether DIR --noether PROGRAM  # the same by this program, on these images and with its own corruptions

Needs torch, torchvision, onnx, onnxruntime, imagecorruptions 1.1.2 and pycocotools. The detector is Faster R-CNN on MobileNetV3 with random weights,
of 192 x 192 pixels. The labels are what it finds in photographs, moved by some pixels, so that corruptions lower its precision.
"""
import argparse, csv, json, pathlib, subprocess
import numpy as np

SIZE, CLASSES, TEST = 192, ["first", "second", "third"], 12


def detector():
    import torch
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
    torch.manual_seed(1)
    kwargs = dict(weights=None, weights_backbone=None, num_classes=4, min_size=SIZE, max_size=SIZE, image_mean=[0.5] * 3, image_std=[0.25] * 3)
    return fasterrcnn_mobilenet_v3_large_320_fpn(**kwargs, box_nms_thresh=0.3, rpn_post_nms_top_n_test=60)


def make(a):
    import torch
    from PIL import Image
    photos = [np.array(Image.open(p).convert("RGB").resize((256, 256)))[32:224, 32:224] for p in sorted(a.photos.glob("*.JPEG"))]
    inputs = [torch.from_numpy(p).permute(2, 0, 1) / 255 for p in photos]
    model = detector()
    outputs = []
    with torch.no_grad():
        model.backbone.train()  # statistics of batch normalization
        for k in range(0, 48, 16):
            model.backbone((torch.stack(inputs[-k - 17:-k - 1]) - 0.5) / 0.25)
        model.eval()
        for layer in (model.rpn.head.cls_logits, model.roi_heads.box_predictor.cls_score):  # logits of mean 0 and deviation 3
            hook = layer.register_forward_hook(lambda _, __, out: outputs.append(out))
            model(inputs[-8:])
            hook.remove()
            at = torch.cat([o.movedim(1, -1).flatten(0, -2) if o.dim() > 2 else o for o in outputs])
            layer.weight *= (3 / at.std(0)).reshape(-1, *[1] * (layer.weight.dim() - 1))
            layer.bias.copy_(-(at.mean(0) - layer.bias) * 3 / at.std(0))
            outputs.clear()
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


def precision(session, folder, coco):
    """COCO's mAP of a detector on a folder of images."""
    from PIL import Image
    from pycocotools.cocoeval import COCOeval
    found = []
    for i in range(TEST):
        image = np.array(Image.open(folder / f"{i:012d}.png").convert("RGB"))
        boxes, labels, scores = session.run(None, {session.get_inputs()[0].name: image.transpose(2, 0, 1).astype(np.float32) / np.float32(255)})
        for b, k, s in zip(boxes.tolist(), labels.tolist(), scores.tolist()):
            found.append({"image_id": i, "category_id": k, "score": s, "bbox": [b[0], b[1], b[2] - b[0], b[3] - b[1]]})
    e = COCOeval(coco, coco.loadRes(found), "bbox")
    e.evaluate(), e.accumulate(), e.summarize()
    return float(e.stats[0])


def reference(a):
    import contextlib, io, onnxruntime
    from imagecorruptions import corrupt, get_corruption_names
    from PIL import Image
    from pycocotools.coco import COCO
    session = onnxruntime.InferenceSession(a.dir / "net.onnx")
    out = {}
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(a.dir / "labels.json"))
        out["clean"] = precision(session, a.dir / "clean", coco)
        for kind in get_corruption_names():
            for severity in a.severities:
                name = f"{kind}-{severity}"
                (a.dir / name).mkdir(exist_ok=True)
                for i in range(TEST):
                    np.random.seed(1000 * severity + i)
                    image = np.array(Image.open(a.dir / "clean" / f"{i:012d}.png"))
                    Image.fromarray(corrupt(image, severity, kind)).save(a.dir / name / f"{i:012d}.png")
                out[name] = precision(session, a.dir / name, coco)
    (a.dir / "reference.json").write_text(json.dumps(out))


def noether(a):
    want = json.loads((a.dir / "reference.json").read_text())
    head = "models: [{name: net, onnx: net.onnx, output: {boxes: torchvision}, preprocess: {resize: %d}}]\nmeasures: [dense-accuracy]\n" % SIZE
    data = "\n".join(f"  - {{name: {k}, coco: {{annotations: labels.json, images: {k}}}}}" for k in want)
    (a.dir / "theirs.yaml").write_text(f"name: theirs\ndata:\n{data}\n{head}")
    own = f"{{name: coco-c, benchmark: {{name: coco-c, clean: clean, annotations: labels.json, severities: {a.severities}}}}}"
    (a.dir / "own.yaml").write_text(f"name: own\ndata:\n  - {own}\n{head}")
    for name in ("theirs", "own"):
        subprocess.run([a.noether, "run", f"{name}.yaml", "-o", f"run-{name}"], cwd=a.dir, check=True, stdout=subprocess.DEVNULL)
    got = {r["data"]: float(r["value"]) for r in csv.DictReader((a.dir / "run-theirs/scores.csv").open()) if r["statistic"] == "clean-map" and not r["factor"]}
    print(f"on the same images: largest difference of mAP {max(abs(got[k] - want[k]) for k in want):.2g}, of {len(want)}")
    mean, mean_want = (np.mean([v for k, v in d.items() if k != "clean"]) for d in (got, want))
    print(f"rPC {mean / got['clean']:.6f}, reference {mean_want / want['clean']:.6f}; clean mAP {got['clean']:.6f}, {want['clean']:.6f}")
    text = subprocess.run([a.noether, "benchmark", "run-own", "--json"], cwd=a.dir, check=True, capture_output=True, text=True).stdout
    for n in json.loads(text):
        if not n.get("kind"):
            print("own corruptions:", n["statistic"], n["value"], n.get("low"), n.get("high"))


p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
p.add_argument("what", choices=["make", "reference", "noether"]), p.add_argument("dir", type=pathlib.Path)
p.add_argument("--photos", type=pathlib.Path), p.add_argument("--noether", default="noether")
p.add_argument("--severities", type=int, nargs="*", default=[1, 2, 3, 4, 5])
a = p.parse_args()
{"make": make, "reference": reference, "noether": noether}[a.what](a)
