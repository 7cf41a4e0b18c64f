"""preprocess= as a function that is no description of a preprocessing: it is applied as it is."""

import networks
import numpy
import pytest
import torch
from PIL import Image
from torch import nn

import noether_ml

torchvision = pytest.importorskip("torchvision")
from torchvision import transforms as v1  # noqa: E402

MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
STEPS = v1.Compose([v1.Resize(41), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)])


class Seen(nn.Module):
    """A network that keeps the samples that it is given."""

    def __init__(self):
        super().__init__()
        self.inner, self.samples = networks.Shared(), []

    def forward(self, x):
        self.samples += list(x.detach().clone())
        return self.inner(x)


def measured(data, preprocess, module=None, **options):
    options = dict(transforms=[{"flip": "horizontal"}], measures=["distance"], layers="output", engine="torch", quiet=True, **options)
    module = module if module is not None else Seen()
    return module, noether_ml.measure(module, data, preprocess=preprocess, **options)


def assert_gets(module, wanted):
    """Each wanted sample is one that the network was given."""
    for want in wanted:
        assert min(float((x - want).abs().max()) if x.shape == want.shape else 1e9 for x in module.samples) < 1e-5 * float(want.abs().max())


@pytest.fixture
def photographs(tmp_path):
    """A folder of two classes of images of several sizes, and their paths."""
    paths = []
    for i in range(6):
        draw = numpy.random.default_rng(i)
        coarse = Image.fromarray(draw.integers(0, 256, (5, 6, 3), numpy.uint8))
        paths.append(tmp_path / "photographs" / "ab"[i % 2] / f"{i}.png")
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        coarse.resize((50 + 3 * i, 60 - 2 * i), Image.BICUBIC).save(paths[-1])
    return tmp_path / "photographs", sorted(paths)


def scaled(image):
    return torch.from_numpy(numpy.array(image.resize((32, 32)))).permute(2, 0, 1) / 255


FUNCTIONS = {
    "the steps of torchvision": lambda image: STEPS(image),
    "steps that are no keys": v1.Compose([v1.Pad(4), v1.Resize((32, 32)), v1.ToTensor(), v1.Normalize(MEAN, STD)]),
    "bytes": lambda image: torch.from_numpy(numpy.array(image.resize((32, 32)))).permute(2, 0, 1),
    "channels last": lambda image: numpy.asarray(image.resize((32, 32)), numpy.float32) / 127.5 - 1,
    "blue first": lambda image: (scaled(image).flip(0) - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None],
    "grey": lambda image: scaled(image).mean(0, keepdim=True).expand(3, -1, -1),
    "negative": lambda image: 1 - scaled(image),
    "a batch of one in a dict": lambda image: {"pixel_values": STEPS(image)[None]},
    "not linear": lambda image: scaled(image) ** 2.2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_network_gets_what_the_function_returns(name, photographs):
    folder, paths = photographs
    function = FUNCTIONS[name]
    module, run = measured(folder, function)
    wanted = []
    for path in paths:
        want = function(Image.open(path))
        want = want["pixel_values"][0] if isinstance(want, dict) else torch.as_tensor(want).float()
        wanted.append(want if want.shape[0] == 3 else want.permute(2, 0, 1))
    assert_gets(module, wanted)
    assert_gets(module, [x.flip(2) for x in wanted])
    assert not run.failures


@pytest.mark.parametrize("name, function, text", [
    ("standardised", lambda image: (scaled(image) - scaled(image).mean()) / scaled(image).std(), "as if each were standardised"),
    ("overshoots", v1.Compose([v1.ToTensor(), v1.Resize(32, v1.InterpolationMode.BICUBIC, antialias=True), v1.CenterCrop(32)]), "as bicubic resizing of floats"),
])
def test_values_beyond_black_and_white_are_told(name, function, text, photographs):
    folder, paths = photographs
    with pytest.warns(UserWarning, match=text):
        module, _ = measured(folder, function)
    assert_gets(module, [function(Image.open(p)) for p in paths])
    assert_gets(module, [function(Image.open(p)).flip(2) for p in paths])


def test_brightness_changes_images_and_not_their_normalised_values(photographs):
    folder, paths = photographs
    for function in (lambda image: STEPS(image), FUNCTIONS["blue first"]):
        module = Seen()
        noether_ml.measure(module, folder, preprocess=function, transforms=[{"brightness": {"values": [0.5]}}], measures=["distance"], layers="output", engine="torch", quiet=True)
        black = function(Image.new("RGB", (60, 60)))
        assert_gets(module, [black + (function(Image.open(p)) - black) / 2 for p in paths])


def test_any_form_of_images(photographs, tmp_path):
    folder, paths = photographs
    pictures = [Image.open(p).convert("RGB") for p in paths]
    wanted = [STEPS(x) for x in pictures]

    class Of(torch.utils.data.Dataset):
        def __len__(self):
            return len(pictures)

        def __getitem__(self, i):
            return pictures[i], i % 2

    def function(image):
        return STEPS(image)

    accuracy, shared = [], networks.Shared()
    for data in (Of(), list(zip(pictures, [int(p.parent.name == "b") for p in paths])), folder):
        module, _ = measured(data, function, classes=[0, 1])
        assert_gets(module, wanted)
        accuracy.append(noether_ml.measure(shared, data, preprocess=function, measures=["accuracy"], transforms=[{"flip": "horizontal"}], quiet=True, classes=[0, 1]).scores.value.tolist())
    assert accuracy[1] == accuracy[2]
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"path": paths, "label": [p.parent.name for p in paths]})
    module, _ = measured(table, function)
    assert_gets(module, wanted)
    module, _ = measured(folder, function, limit=3)
    assert len({tuple(x.flatten().tolist()) for x in module.samples if any(torch.allclose(x, w, atol=1e-5) for w in wanted)}) == 3
    arrays = numpy.stack([numpy.asarray(x.resize((40, 40))) for x in pictures])
    module, _ = measured((arrays, [0, 1] * 3), lambda x: x[4:36, 4:36].astype("float32").transpose(2, 0, 1) / 127.5 - 1)
    assert_gets(module, [torch.from_numpy(x[4:36, 4:36].astype("float32").transpose(2, 0, 1) / 127.5 - 1) for x in arrays])
    tensors = torch.from_numpy(arrays).permute(0, 3, 1, 2) / 255
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tensors, torch.arange(6)), batch_size=4)
    module, _ = measured(loader, v1.CenterCrop(24))
    assert_gets(module, [x[:, 8:32, 8:32] for x in tensors])


def test_image_libraries(photographs):
    folder, paths = photographs
    albumentations = pytest.importorskip("albumentations")
    steps = albumentations.Compose([albumentations.CLAHE(p=1), albumentations.Resize(32, 32), albumentations.Normalize(MEAN, STD), albumentations.pytorch.ToTensorV2()])
    module, _ = measured(folder, steps)
    assert_gets(module, [steps(image=numpy.asarray(Image.open(p)))["image"] for p in paths])
    kornia = pytest.importorskip("kornia")
    steps = nn.Sequential(kornia.augmentation.Resize((32, 32)), kornia.augmentation.Normalize(MEAN, STD))
    module, _ = measured(folder, steps[0])
    assert_gets(module, [steps[0](v1.ToTensor()(Image.open(p))[None])[0] for p in paths])


def test_an_export_and_its_gradients(photographs):
    folder, _ = photographs
    module = networks.Shared().eval()
    options = dict(transforms=[{"rotate": {"values": [90]}}], measures=["distance", "lie-derivative"], layers="output", quiet=True)
    runs = [noether_ml.measure(module, folder, preprocess=lambda image: STEPS(image), engine=engine, **options) for engine in ("onnx", "torch")]
    numpy.testing.assert_allclose(runs[0].scores.value, runs[1].scores.value, rtol=1e-3, atol=1e-6)
    with_keys = noether_ml.measure(module, folder, preprocess=STEPS, **options)
    numpy.testing.assert_allclose(runs[0].scores.value, with_keys.scores.value, rtol=0.05, atol=1e-3)  # which rounds resized pixels elsewhere


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, image):
        self.calls += 1
        return scaled(image) * (1 if self.calls < 18 else 0.5)


@pytest.mark.parametrize("function, text", [
    (v1.Compose([v1.RandomCrop(32), v1.ToTensor()]), "Compose draws random numbers: give the preprocessing of an evaluation"),
    (lambda image: image.convert("L"), "returns Image: it must return the tensor or the array"),
    (lambda image: v1.ToTensor()(image), r"returns the shape \(3, \d+, \d+\) for image 1 and \(3, \d+, \d+\) for the first"),
    (lambda image: scaled(image).repeat(2, 1, 1), r"returns the shape \(6, 32, 32\) for an image"),
    (lambda image: image / 255, r"fails for image 0, PIL.Image.Image: TypeError: unsupported operand"),
    (lambda image: scaled(image) / 0, "returns NaN or infinity for image 0"),
    (lambda image: 0 * scaled(image), "returns the value 0 for each pixel"),
    (Counting(), "returns something else for the first image after the others"),
    (42, "int is not supported at its place"), (nn.Identity, "is not supported at its place"),
])
def test_other_functions_are_refused_in_one_line(function, text, photographs):
    with pytest.raises(noether_ml.Error, match=text) as e:
        measured(photographs[0], function)
    assert "\n" not in str(e.value)


def test_data_that_a_function_is_not_applied_to(photographs, tmp_path):
    folder, paths = photographs

    def refused(data, text, **options):
        with pytest.raises(noether_ml.Error, match=text) as e:
            measured(data, scaled, **options)
        assert "\n" not in str(e.value)

    refused({"images": str(folder)}, "is applied to images that Python has")
    refused(tmp_path / "none", "is applied to images that Python has")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no images")
    refused([], "the data set is empty")
    refused(folder, "limit is 0", limit=0)
    paths[0].with_name("cut.png").write_bytes(paths[0].read_bytes()[:200])
    refused(folder, "cut.png cannot be read")
    paths[0].with_name("cut.png").unlink()
    Image.new("RGB", (9, 9)).save(folder / "c.png")
    refused(folder, "both in the folder .* and in its subfolders")
    refused((numpy.zeros((3, 800), "float32"), [0, 1, 0]), "to images, not to recordings")
    refused([{"array": numpy.zeros(800), "sampling_rate": 8000}], "to images, not to recordings")
    with pytest.raises(noether_ml.Error, match="holds for all models"):
        noether_ml.measure({"one": {"model": Seen(), "preprocess": scaled}}, folder, quiet=True)
    with pytest.raises(noether_ml.Error, match="holds for all models"):
        noether_ml.invert(Seen(), folder, tmp_path / "inverted", preprocess=scaled)
