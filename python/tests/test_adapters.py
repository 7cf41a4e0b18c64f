"""Models of other libraries, each with the library itself: see requirements-test.txt."""

import warnings

import networks
import numpy
import pytest
import torch

import noether_ml

FLIP = [{"name": "flip", "flip": "horizontal"}]


def scores(model, images, **keys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(model, images, transforms=FLIP, measures=["effective-invariance", "distance"], quiet=True, name="m", **keys)
    assert not run.failures
    rows = run.scores
    return rows[rows.layer != ""].set_index(["layer", "statistic"]).value, rows[rows.layer == ""].set_index("statistic").value


@pytest.fixture
def module():
    torch.manual_seed(1)
    return networks.trained(networks.small_resnet()).eval()


@pytest.fixture
def want(module, images):
    return scores(module, images, engine="torch", layers=["layer1.0", "output"])


def near(got, want, layer="output"):
    assert got[1]["ei"] == pytest.approx(want[1]["ei"], abs=1e-5)
    for statistic in ("l2", "cosine"):
        assert got[0][layer, statistic] == pytest.approx(want[0]["output", statistic], rel=1e-4)


@pytest.mark.skipif(not hasattr(torch, "export"), reason="needs torch.export, of PyTorch 2.1")
def test_exported_programs(module, want, images, tmp_path):
    x = torch.rand(2, 3, 32, 32)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=1000)},))
    torch.export.save(program, tmp_path / "net.pt2")
    for model in (program, tmp_path / "net.pt2"):
        got = scores(model, images, layers=["layer1.0", "output"])
        near(got, want)
        assert got[0]["layer1.0", "l2"] == pytest.approx(want[0]["layer1.0", "l2"], rel=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_scripted_modules(module, want, images, tmp_path):
    traced = torch.jit.trace(module, torch.rand(2, 3, 32, 32))
    traced.save(tmp_path / "net.pt")
    for model in (traced, tmp_path / "net.pt"):
        near(scores(model, images, input=(3, 32, 32)), want)


def test_torchao(images):
    quantization = pytest.importorskip("torchao.quantization")
    torch.manual_seed(1)
    module = networks.small_vit().eval()
    torch.nn.init.normal_(module.heads.head.weight)  # which is 0
    whole = scores(module, images, engine="torch", layers=["encoder.layers.encoder_layer_0", "output"])
    quantization.quantize_(module, quantization.Int8WeightOnlyConfig())
    found = scores(module, images, engine="torch", layers=["encoder.layers.encoder_layer_0", "output"])
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        want = (module(x) - module(x.flip(3))).norm(dim=1).mean().item()
    assert found[0]["output", "l2"] == pytest.approx(want, rel=1e-4) != whole[0]["output", "l2"]
    assert found[0]["encoder.layers.encoder_layer_0", "l2"] == pytest.approx(whole[0]["encoder.layers.encoder_layer_0", "l2"], rel=0.1)


def test_functions_of_a_batch(module, want, images):
    def plain(x):
        with torch.no_grad():
            return module(torch.from_numpy(x)).numpy()

    near(scores(plain, images), want)
    near(scores(lambda x: module(torch.from_numpy(x)), images), want)  # a tensor with a gradient

    def several(x):
        y = plain(x)
        return {"logits": y, "double": 2 * y}

    got = scores(several, images)
    near(got, want, "logits")
    assert got[0]["double", "l2"] == pytest.approx(2 * want[0]["output", "l2"], rel=1e-4)


def test_functions_of_large_batches(images):
    """A function that mixes samples in batches of more than 8 alone, which are tried before."""
    def mixing(x):
        y = x.mean((2, 3))
        return y - y.mean(0) if len(x) > 12 else y

    for model in (mixing, torch.nn.Sequential(Mixing())):
        with pytest.warns(UserWarning, match=r"output of a sample is another alone than in a batch of \d+: scores depend on the size of batches"):
            noether_ml.measure(model, numpy.tile(images, (4, 1, 1, 1)), transforms=FLIP, measures=["distance"], layers="output", quiet=True, engine="torch" if model is not mixing else None)


class Mixing(torch.nn.Module):
    def forward(self, x):
        y = x.mean((2, 3))
        return y - y.mean(0) if len(x) > 12 else y


def test_functions_that_fail(images):
    with pytest.raises(noether_ml.Error, match=r"the model fails on a batch of.*ValueError: no luck"):
        scores(lambda x: (_ for _ in ()).throw(ValueError("no luck\nand more")), images)
    with pytest.raises(noether_ml.Error, match="the model returns dicts that hold no numbers: an array"):
        scores(lambda x: ({"label": "cat"},), images)
    with pytest.raises(noether_ml.Error, match="not known"), noether_ml._models.serving(lambda x: x, None):
        pass
    with pytest.raises(noether_ml.Error, match="a model must be a path"):
        noether_ml.measure(7, images)


def test_pipelines_of_transformers(images):
    transformers = pytest.importorskip("transformers")
    small = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8)
    pipe = transformers.pipeline("image-classification", model=transformers.ViTForImageClassification(transformers.ViTConfig(**small)), image_processor=transformers.ViTImageProcessor())
    with pytest.raises(noether_ml.Error, match=r"pass its model \(pipe.model\) and preprocess=pipe.image_processor"):
        scores(pipe, images)


def test_weights_are_no_scripted_module(module, images, tmp_path):
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(noether_ml.Error, match="is no scripted module"):
        noether_ml.measure(tmp_path / "weights.pt", images)


def linear(path, weights, scale=0.0):
    """Write a TFLite file of x @ weights, with bytes as input if scale is given."""
    flatbuffers = pytest.importorskip("flatbuffers")
    tfl = pytest.importorskip("ai_edge_litert.schema_py_generated")

    def tensor(name, shape, buffer, quantised=0.0):
        t = tfl.TensorT()
        t.name, t.shape, t.shapeSignature, t.buffer = name, list(shape), list(shape), buffer
        t.type = tfl.TensorType.FLOAT32
        if quantised:
            t.type = tfl.TensorType.UINT8
            t.quantization = tfl.QuantizationParametersT()
            t.quantization.scale, t.quantization.zeroPoint = [quantised], [0]
        return t

    def op(code, kind, options, inputs, outputs):
        o = tfl.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs, o.builtinOptionsType, o.builtinOptions = code, inputs, outputs, kind, options
        return o

    def code(value):
        c = tfl.OperatorCodeT()
        c.builtinCode, c.deprecatedBuiltinCode, c.version = value, min(value, 127), 1
        return c

    size, classes = weights.shape
    graph, model = tfl.SubGraphT(), tfl.ModelT()
    graph.tensors = [tensor("x", (1, 8, 8, 3), 0, scale), tensor("w", (classes, size), 1), tensor("logits", (1, classes), 0), tensor("real", (1, 8, 8, 3), 0)]
    start = 3 if scale else 0
    graph.operators = [op(0, tfl.BuiltinOptions.FullyConnectedOptions, tfl.FullyConnectedOptionsT(), [start, 1, -1], [2])]
    if scale:
        graph.operators.insert(0, op(1, tfl.BuiltinOptions.DequantizeOptions, tfl.DequantizeOptionsT(), [0], [3]))
    graph.inputs, graph.outputs = [0], [2]
    buffer = tfl.BufferT()
    buffer.data = numpy.frombuffer(weights.T.astype("<f4").tobytes(), numpy.uint8)
    model.version, model.subgraphs, model.buffers = 3, [graph], [tfl.BufferT(), buffer]
    model.operatorCodes = [code(tfl.BuiltinOperator.FULLY_CONNECTED), code(tfl.BuiltinOperator.DEQUANTIZE)]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))


@pytest.mark.parametrize("scale", [0.0, 1 / 255])
def test_tflite(scale, images, tmp_path):
    pytest.importorskip("ai_edge_litert")
    weights = numpy.random.default_rng(1).standard_normal((192, 5)).astype(numpy.float32)
    linear(tmp_path / "net.tflite", weights, scale)
    small = numpy.ascontiguousarray(images[:, :8, :8])
    found, _ = scores(tmp_path / "net.tflite", small, layers=["logits"])
    x = small.astype(numpy.float32) / 255
    want = numpy.linalg.norm((x - x[:, :, ::-1]).reshape(len(x), -1) @ weights, axis=1).mean()
    assert found["logits", "l2"] == pytest.approx(want, rel=1e-4)


def test_openvino(module, want, images, tmp_path):
    openvino = pytest.importorskip("openvino")
    onnx = noether_ml._export.export(module, (3, 32, 32))
    openvino.save_model(openvino.convert_model(str(onnx)), tmp_path / "net.xml", compress_to_fp16=False)
    near(scores(tmp_path / "net.xml", images), want)


def test_keras(images, tmp_path, monkeypatch):
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(1)
    inputs = keras.Input((32, 32, 3))
    y = keras.layers.Conv2D(4, 3, activation="relu", name="conv")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(5, name="head")(keras.layers.GlobalAveragePooling2D(name="pool")(y)))
    model.save(tmp_path / "net.keras")
    for given in (model, tmp_path / "net.keras"):
        found, _ = scores(given, images, layers=["conv", "head"])
        x = images.astype(numpy.float32) / 255
        a, b = (keras.ops.convert_to_numpy(model(v)) for v in (x, x[:, :, ::-1].copy()))
        assert found["head", "l2"] == pytest.approx(float(numpy.linalg.norm(a - b, axis=1).mean()), rel=1e-4)
        assert found["conv", "l2"] > 0


def test_jax(images):
    jax = pytest.importorskip("jax")
    weights = jax.random.normal(jax.random.PRNGKey(1), (3, 5))
    model = jax.jit(lambda x: x.mean((2, 3)) ** 2 @ weights + x[:, :, 0, :5].sum(1))
    found, _ = scores(model, images)
    x = images.transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    a, b = model(x), model(x[:, :, :, ::-1].copy())
    assert found["output", "l2"] == pytest.approx(float(numpy.linalg.norm(a - b, axis=1).mean()), rel=1e-4)
