"""`noether parity` on a detector and a segmenter that onnxruntime quantises, against the same agreement in numpy.

Both networks have random weights: their boxes and classes mean nothing, but differ after quantisation.
"""

import numpy as np
import pytest

from noether_ml._command import call

quantization = pytest.importorskip("onnxruntime.quantization")
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

SIZE, BOXES, CLASSES = 32, 20, 3

DETECTOR = f"""<ir_version: 8, opset_import: ["": 17]>
detector (float[batch, 3, {SIZE}, {SIZE}] x) => (float[batch, {BOXES}, 6] output0) {{
    pooled = AveragePool<kernel_shape = [8, 8], strides = [8, 8]>(x)
    flat = Flatten(pooled)
    all = Gemm(flat, weight, bias)
    rows = Reshape(all, shape)
    place, side, confidence, classes = Split<axis = 2>(rows, parts)
    moved = Tanh(place)
    corner = Add(base, moved)
    wide = Sigmoid(side)
    scaled = Mul(wide, eight)
    size = Add(scaled, eight)
    far = Add(corner, size)
    score = Sigmoid(confidence)
    index = ArgMax<axis = 2, keepdims = 1>(classes)
    class = Cast<to = 1>(index)
    output0 = Concat<axis = 2>(corner, far, score, class)
}}"""

SEGMENTER = f"""<ir_version: 8, opset_import: ["": 17]>
segmenter (float[batch, 3, {SIZE}, {SIZE}] x) => (float[batch, 4, {SIZE}, {SIZE}] out) {{
    wide = Conv<pads = [1, 1, 1, 1]>(x, first)
    active = Relu(wide)
    out = Conv(active, second, bias)
}}"""


class Reader(quantization.CalibrationDataReader):
    def __init__(self, samples):
        self.batches = iter([{"x": s[None]} for s in samples])

    def get_next(self):
        return next(self.batches, None)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    coarse = np.random.default_rng(1).integers(0, 256, (60, 8, 8, 3))
    path = tmp_path_factory.mktemp("data") / "images.npy"
    np.save(path, coarse.repeat(SIZE // 8, 1).repeat(SIZE // 8, 2).astype(np.uint8))
    return path


def outputs(folder, images, text, weights, *flags):
    """The report of parity, and the outputs of a network and its quantised form by onnxruntime."""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in weights.items())
    paths = [folder / "float.onnx", folder / "int8.onnx"]
    onnx.save(model, paths[0])
    x = (np.load(images) / 255).astype(np.float32).transpose(0, 3, 1, 2)
    quantization.quantize_static(paths[0], paths[1], Reader(x[:20]), op_types_to_quantize=["Gemm", "Conv"])
    report = call(["parity", *map(str, paths), str(images), "--preprocess", "none", "--limit", str(len(x)), "--json", *flags])
    return report["predictions"][0], [onnxruntime.InferenceSession(p).run(None, {"x": x})[0] for p in paths]


def overlap(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    area = [(r[2] - r[0]) * (r[3] - r[1]) for r in (a, b)]
    both = max(w, 0) * max(h, 0)
    return both / (sum(area) - both)


def pairs(a, b):
    """Boxes of one class that overlap by at least half, one to one, the largest overlap first."""
    found = sorted(((overlap(p, q), i, j) for i, p in enumerate(a) for j, q in enumerate(b) if p[5] == q[5]), reverse=True)
    left, right = set(), set()
    for value, i, j in found:
        if value >= 0.5 and i not in left and j not in right:
            left.add(i)
            right.add(j)
    return len(left)


def test_detector(tmp_path, images):
    random = np.random.default_rng(2)
    weights = {
        "weight": random.normal(0, 0.5, (48, BOXES * 8)),
        "bias": random.normal(0, 0.3, BOXES * 8),
        "base": random.uniform(2, 14, (1, BOXES, 2)),
        "eight": np.array(8.0),
    }
    weights = {k: v.astype(np.float32) for k, v in weights.items()} | {"shape": np.array([-1, BOXES, 8]), "parts": np.array([2, 2, 1, CLASSES])}
    found, both = outputs(tmp_path, images, DETECTOR, weights, "--output", f"{{boxes: suppressed, classes: {CLASSES}}}")
    strong = [[rows[rows[:, 4] >= 0.5] for rows in out] for out in both]
    matched = [pairs(a, b) for a, b in zip(*strong, strict=True)]
    total = [len(a) + len(b) for a, b in zip(*strong, strict=True)]
    assert found["outputs"] == "boxes"
    assert found["agreement"]["value"] == pytest.approx(2 * sum(matched) / sum(total), abs=0.005)
    assert 0.5 < found["agreement"]["value"] < 0.999
    assert found["differ"] == pytest.approx(sum(2 * m < n for m, n in zip(matched, total, strict=True)), abs=2)
    worst = found["differ_most"][0]
    assert worst["agreement"] == pytest.approx(2 * matched[worst["index"]] / total[worst["index"]], abs=0.05)


def test_segmenter(tmp_path, images):
    random = np.random.default_rng(3)
    weights = {"first": random.normal(0, 0.3, (12, 3, 3, 3)), "second": random.normal(0, 1, (4, 12, 1, 1)), "bias": random.normal(0, 0.3, 4)}
    found, both = outputs(tmp_path, images, SEGMENTER, {k: v.astype(np.float32) for k, v in weights.items()})
    a, b = (out.argmax(1) for out in both)
    ious = [((a == k) & (b == k)).sum() / union for k in range(4) if (union := ((a == k) | (b == k)).sum())]
    assert found["outputs"] == "class-map"
    assert found["agreement"]["value"] == pytest.approx((a == b).mean(), abs=0.002)
    assert 0.5 < found["agreement"]["value"] < 0.9999
    assert found["miou"]["value"] == pytest.approx(np.mean(ious), abs=0.005)
    worst = found["differ_most"][0]
    each = (a == b).mean((1, 2))
    assert worst["agreement"] == pytest.approx(each.min(), abs=0.005)
