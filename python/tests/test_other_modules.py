"""Modules as people write them, each with data in one of the forms that they have, are measured rightly or give one clear line."""

import collections
import copy
import dataclasses
import warnings

import numpy
import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
import torchvision
from PIL import Image
from torch import nn

import noether_ml

FLIP = [{"name": "flip", "flip": "horizontal"}]


class Net(nn.Module):
    """A convolution and a linear module, which a function calls."""

    def __init__(self, body, **parts):
        super().__init__()
        self.body, self.conv, self.fc = body, nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Linear(6, 5)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.body(self, x)

    def maps(self, x):
        return self.conv(x).relu()

    def tokens(self, x):
        return self.maps(x).flatten(2).transpose(1, 2)

    def head(self, x):
        return self.fc(x.mean((2, 3)))


class KeywordOnly(Net):
    def forward(self, *, images, labels=None):
        return self.body(self, images)


@dataclasses.dataclass(frozen=True)
class Answer:
    logits: torch.Tensor
    more: dict


Pair = collections.namedtuple("Pair", "logits maps")


def plain(m, x):
    return m.head(m.maps(x))


def overwritten(m, x):
    z = m.maps(x)
    z[:, :2] = 1.0
    return m.head(z)


def attention(m, x):
    t = m.tokens(x)
    return m.fc(m.attend(t, t, t)[0].mean(1))


def causal(m, x):
    t = m.tokens(x)
    return m.fc(F.scaled_dot_product_attention(t, t, t, is_causal=True).mean(1))


def cached(m, x):
    if not hasattr(m, "ramp"):
        m.ramp = torch.linspace(0, 1, x.shape[-1])
    return m.head(m.maps(x * m.ramp))


def with_numpy(m, x):
    return m.head(torch.from_numpy(m.maps(x).detach().numpy().cumsum(-1)))


def counted(m, x):
    m.calls += 1
    return plain(m, x)


def hooked():
    m = Net(plain)
    m.conv.register_forward_hook(lambda _m, _in, out: 2 * out)
    m.conv.register_forward_pre_hook(lambda _m, given: (given[0] + 1,))
    m.register_forward_hook(lambda _m, _in, out: out + 1)
    return m


def quantised():
    from torch.ao import quantization as q

    m = nn.Sequential(q.QuantStub(), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3600, 10), q.DeQuantStub()).eval()
    m.qconfig = q.get_default_qconfig("fbgemm")
    prepared = q.prepare(m)
    prepared(torch.rand(4, 3, 32, 32))
    return q.convert(prepared)


def compiled():
    m = nn.Sequential(Net(lambda m, x: m.maps(x)), nn.Flatten(), nn.Linear(1536, 4))
    m[0] = torch.compile(m[0])
    return m


def compiled_in_place():
    m = Net(plain)
    m.compile()
    return m


RIGHT = {
    "a view by the size of the batch": lambda: Net(lambda m, x: m.head(m.maps(x).view(x.size(0), 6, 16, 16))),
    "a grid of the size of images": lambda: Net(lambda m, x: m.head(m.maps(x) * torch.linspace(-1, 1, x.shape[-1] // 2))),
    "interpolation by a factor": lambda: Net(lambda m, x: m.head(F.interpolate(m.maps(x), scale_factor=1.5, mode="bilinear", align_corners=False) ** 2)),
    "an LSTM in both directions": lambda: Net(lambda m, x: m.fc(m.rnn(m.tokens(x))[0][:, -1]), rnn=nn.LSTM(6, 3, 2, batch_first=True, bidirectional=True)),
    "tuples in a tuple": lambda: Net(lambda m, x: m.rnn(m.tokens(x)), rnn=nn.LSTM(6, 5, batch_first=True)),
    "attention": lambda: Net(attention, attend=nn.MultiheadAttention(6, 2, batch_first=True)),
    "windows that are folded": lambda: Net(lambda m, x: m.head(F.fold(F.unfold(m.maps(x), 3, padding=1) ** 2, (16, 16), 3, padding=1))),
    "an assignment to a slice": lambda: Net(overwritten),
    "a change of the input in place": lambda: Net(lambda m, x: plain(m, x.mul_(2).sub_(1))),
    "functional dropout": lambda: Net(lambda m, x: F.dropout(plain(m, x), training=m.training)).train(),
    "a named tuple": lambda: Net(lambda m, x: Pair(plain(m, x), m.maps(x))),
    "a frozen data class": lambda: Net(lambda m, x: Answer(plain(m, x), {"a": Answer(m.maps(x), {})})),
    "a nested dict": lambda: Net(lambda m, x: {"loss": None, "logits": plain(m, x), "all": [m.maps(x)]}),
    "spectral norm": lambda: Net(lambda m, x: m.head(m.norm(m.maps(x))), norm=nn.utils.spectral_norm(nn.Conv2d(6, 6, 3))),
    "padding in a circle": lambda: Net(lambda m, x: m.head(m.pad(m.maps(x))), pad=nn.Conv2d(6, 6, 3, padding=1, padding_mode="circular")),
    "a mask that the first call makes": lambda: Net(cached),
    "keywords only": lambda: KeywordOnly(plain),
    "hooks": hooked,
    "DataParallel": lambda: nn.DataParallel(Net(plain)),
    "training mode": lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(7200, 10)).train(),
}

# Those that ONNX cannot have, which PyTorch runs.
SERVED = {
    "NumPy": lambda: Net(with_numpy),
    "a loop over the batch": lambda: Net(lambda m, x: torch.stack([plain(m, v[None])[0] for v in x])),
    "a branch on values": lambda: Net(lambda m, x: torch.stack([2 * v if v.sum() > 0 else v for v in plain(m, x)])),
    "a Fourier transform": lambda: Net(lambda m, x: m.head(torch.fft.ifft2(torch.fft.fft2(m.maps(x)) * 0.5).real ** 2)),
    "boxes of torchvision": lambda: Net(lambda m, x: m.head(torchvision.ops.roi_align(m.maps(x), [torch.tensor([[1.0, 1, 10, 12]])] * len(x), 4) ** 2)),
    "8-bit integers": quantised,
    "keywords only, served": lambda: KeywordOnly(plain),
    "a change of the input in place, served": lambda: Net(lambda m, x: plain(m, x.mul_(2).sub_(1))),
    "a scripted module inside": lambda: nn.Sequential(torch.jit.script(nn.Conv2d(3, 4, 3)), nn.Flatten(), nn.Linear(3600, 3)),
}

# Those of newer versions of PyTorch.
NEWER = {
    "causal attention": (lambda: Net(causal), F, "scaled_dot_product_attention"),
    "vmap": (lambda: Net(lambda m, x: torch.vmap(lambda v: v.sum(0).sin())(m.maps(x)).flatten(1)), torch, "vmap"),
    "checkpoints": (lambda: Net(lambda m, x: m.head(torch.utils.checkpoint.checkpoint(m.maps, x, use_reentrant=False))), torch, "compile"),
    "parametrised weight norm": (lambda: Net(lambda m, x: m.head(m.norm(m.maps(x))), norm=nn.utils.parametrizations.weight_norm(nn.Conv2d(6, 6, 3))),
                                 nn.utils.parametrizations, "weight_norm"),
    "a compiled module inside": (compiled, torch, "compile"),
    "a module compiled in place": (compiled_in_place, nn.Module, "compile"),
}

PIXELS = numpy.random.default_rng(1).integers(0, 256, (12, 32, 32, 3), dtype=numpy.uint8)
X = torch.from_numpy(PIXELS).permute(0, 3, 1, 2).float() / 255


def pictures(_folder):
    return [Image.fromarray(p) for p in PIXELS]


def arrays(_folder):
    return PIXELS


def dataset(_folder):
    return torch.utils.data.TensorDataset(X, torch.arange(12) % 5)


def loader(folder):
    return torch.utils.data.DataLoader(dataset(folder), batch_size=5)


def hub(folder):
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({"image": pictures(folder), "label": [i % 5 for i in range(12)]}, features=datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(num_classes=5)}))


def frame(folder):
    pandas = pytest.importorskip("pandas")
    for i, p in enumerate(pictures(folder)):
        p.save(folder / f"{i:02}.png")
    return pandas.DataFrame({"path": [str(folder / f"{i:02}.png") for i in range(12)], "label": [i % 5 for i in range(12)]})


FORMS = (arrays, pictures, dataset, loader, frame) + ((hub,) if hasattr(torch, "compile") else ())


def first(value):
    """Return the first tensor in what a module returns."""
    if isinstance(value, torch.Tensor):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else [value.logits] if value is not None else []
    return next((found for found in map(first, parts) if found is not None), None)


def state(module):
    return {k: v for k, v in module.state_dict().items() if isinstance(v, torch.Tensor)}, [m.training for m in module.modules()], \
        [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in module.modules() if not isinstance(m, torch.jit.ScriptModule)], [p.requires_grad for p in module.parameters()]


def check(make, form, folder, engine=None):
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = make()
    own = (copy.deepcopy(module) if "compiled" not in make.__name__ else made_again(make)).eval()
    with torch.no_grad():
        call = (lambda x: own(images=x)) if isinstance(own, KeywordOnly) else own
        want = (first(call(X.clone())) - first(call(X.flip(3)))).flatten(1).norm(dim=1).mean().item()
    before = copy.deepcopy(state(module))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(module, form(folder), transforms=FLIP, measures=["distance"], layers="output*", quiet=True, preprocess="none", engine=engine,
                                 input=(3, 32, 32) if form is frame else None)
    assert not run.failures
    scores = run.scores
    got = scores[(scores.statistic == "l2") & scores.layer.isin(["output", "output.0", "output.0.0", "output.logits"])].value
    assert got.iloc[0] == pytest.approx(want, rel=2e-3, abs=1e-6)
    after = state(module)
    assert all(torch.equal(value, before[0][key]) for key, value in after[0].items()) and after[1:] == before[1:]


def made_again(make):
    """Return the module without its compilation, which takes long."""
    torch.manual_seed(1)
    module = make()
    if hasattr(module, "_compiled_call_impl"):
        module._compiled_call_impl = None
    for name, child in module._modules.items():
        module._modules[name] = getattr(child, "_orig_mod", child)
    return module


def forms(cases):
    return [pytest.param(case, FORMS[i % len(FORMS)], id=f"{name}: {FORMS[i % len(FORMS)].__name__}") for i, (name, case) in enumerate(cases.items())]


@pytest.mark.parametrize("make, form", forms(RIGHT))
def test_what_onnx_has(make, form, tmp_path):
    check(make, form, tmp_path)


@pytest.mark.parametrize("make, form", forms(SERVED))
def test_what_pytorch_runs(make, form, tmp_path):
    check(make, form, tmp_path, "torch")


@pytest.mark.parametrize("case, form", forms(NEWER))
def test_what_newer_versions_have(case, form, tmp_path):
    make, library, name = case
    if not hasattr(library, name):
        pytest.skip(f"this PyTorch has no {name}")
    check(make, form, tmp_path)


def lazy():
    return nn.Sequential(nn.LazyConv2d(4, 3), nn.Flatten(), nn.LazyLinear(5))


def without_values():
    m = Net(plain)
    m.fc.to("meta")
    return m


def counting():
    m = Net(lambda m, x: counted(m, x) * m.calls)
    m.register_buffer("calls", torch.zeros(()))
    return m


class Two(nn.Module):
    def forward(self, x, mask):
        return (x * mask).mean((2, 3))


@pytest.mark.parametrize("make, text", [
    (lambda: Net(lambda m, x: F.dropout(plain(m, x))), "Net is random in evaluation mode: its output differs from call to call"),
    (counting, "Net is random in evaluation mode: .* buffers that each call changes"),
    (lambda: Net(lambda m, x: None), "Net returns no tensor"),
    (lambda: Net(lambda m, x: plain(m, x).detach().numpy()), "Net returns no tensor"),
    (lazy, "Sequential has lazy modules without weights: call it once on a batch"),
    (without_values, "Net has parameters on the device meta"),
    (Two, "Two takes x and also needs mask"),
    (lambda: nn.Sequential(nn.Flatten(), nn.Linear(100, 4)), r"Sequential fails on a batch of \(2, 3, 32, 32\)"),
    (lambda: Net(lambda m, x: [][1]), "Net fails on a batch of .*: list index out of range"),
])
@pytest.mark.parametrize("engine", [None, "torch"])
def test_what_cannot_be_measured(make, text, engine):
    with warnings.catch_warnings(record=True) as caught, pytest.raises(noether_ml.Error, match=text) as e:
        if engine == "torch" and "random" in text:
            pytest.skip("is a warning")
        warnings.simplefilter("always")
        noether_ml.measure(make(), PIXELS, quiet=True, preprocess="none", engine=engine)
    assert "\n" not in str(e.value) and not [w for w in caught if "PyTorch runs" in str(w.message)]


@pytest.mark.parametrize("engine", [None, "torch"])
def test_outputs_that_depend_on_the_batch(engine):
    module = Net(lambda m, x: (lambda z: z - z.mean(0, keepdim=True))(plain(m, x)))
    with pytest.warns(UserWarning, match="Net gives another output for a sample that is alone .*: its scores depend on the other samples of a batch"):
        noether_ml.measure(module, PIXELS, transforms=FLIP, measures=["distance"], layers="output", quiet=True, preprocess="none", engine=engine)


def test_buffers_that_calls_change_are_restored():
    module = Net(counted)
    module.register_buffer("calls", torch.zeros(()))
    noether_ml.measure(module, PIXELS, transforms=FLIP, measures=["distance"], layers="output", quiet=True, preprocess="none")
    assert module.calls == 0


def test_outputs_that_are_not_numbers():
    module = Net(lambda m, x: plain(m, x) * float("nan"))
    with pytest.warns(UserWarning, match="NaN or infinity in the activations"):
        run = noether_ml.measure(module, PIXELS, transforms=FLIP, measures=["distance"], layers="output", quiet=True, preprocess="none")
    assert len(run.failures) and len(run.scores) == 0 and "statistic" in run.scores.columns


def test_modules_called_output_and_input():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.output, self.input = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

        def forward(self, x):
            return self.input(self.output(x).mean((2, 3)))

    module = Named().eval()
    with torch.no_grad():
        want = (module(X) - module(X.flip(3))).norm(dim=1).mean().item()
    for engine in ("onnx", "torch"):
        run = noether_ml.measure(module, PIXELS, transforms=FLIP, measures=["distance"], layers="result", quiet=True, preprocess="none", engine=engine)
        assert run.scores[run.scores.statistic == "l2"].value.iloc[0] == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("preprocess", ["none", {"mean": [0.5] * 3, "std": [0.25] * 3}])
def test_images_keep_their_size_where_nothing_states_another(preprocess, tmp_path):
    """Bytes and pictures of one size reach a module as they are, not at the 224 pixels of an example."""
    module = Net(lambda m, x: m.maps(x).flatten(1)[:, :5] + x.shape[-1] + plain(m, x)).eval()
    z = (X - 0.5) / 0.25 if isinstance(preprocess, dict) else X
    with torch.no_grad():
        want = (module(z) - module(z.flip(3))).norm(dim=1).mean().item()
    for form in (arrays, pictures):
        run = noether_ml.measure(module, form(tmp_path), transforms=FLIP, measures=["distance"], layers="output", quiet=True, preprocess=preprocess)
        assert run.scores[run.scores.statistic == "l2"].value.iloc[0] == pytest.approx(want, rel=1e-3)
    with pytest.warns(UserWarning, match="brought to 224 x 224 pixels, since nobody says what size Net takes"):
        noether_ml.measure(Net(plain), frame(tmp_path), transforms=FLIP, measures=["distance"], layers="output", quiet=True, preprocess=preprocess)
