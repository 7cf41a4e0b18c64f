"""Functions of Python as transformations."""

import random
import warnings

import networks
import numpy
import pytest
import torch

import noether_ml
from noether_ml import _functions


def darker(image, strength):
    return image * (1 - strength)


def noise(image, strength, generator):
    return numpy.clip(image + strength * generator.standard_normal(image.shape), 0, 1)


def flip(image):
    return image[:, ::-1]


@pytest.fixture
def module():
    torch.manual_seed(1)
    return networks.trained(networks.small_resnet())


def scores(run, statistic="l2"):
    s = run.scores
    return s[s.statistic == statistic].groupby(["transformation", "parameter"], dropna=False).value.first()


def distances(module, images, function):
    """Return the mean distance between the outputs for images and for their transforms."""
    x = images.astype(numpy.float32) / 255
    y = numpy.stack([function(image) for image in x])
    with torch.no_grad():
        out = [module.eval()(torch.from_numpy(numpy.ascontiguousarray(a.transpose(0, 3, 1, 2)))) for a in (x, y)]
    return (out[0] - out[1]).norm(dim=1).mean().item()


def test_functions_equal_built_in_transformations_and_themselves(module, images):
    run = noether_ml.measure(module, images, layers="output", measures=["distance"], quiet=True, transforms=[
        flip, {"name": "built-in", "flip": "horizontal"},
        {"name": "dark", "python": {"function": darker, "strength": {"values": [0.25, 0.5]}}},
        {"name": "dark-range", "python": {"function": darker, "strength": [0.25, 0.5]}},
    ])
    found = scores(run)
    assert found["flip"].iloc[0] == pytest.approx(found["built-in"].iloc[0], abs=1e-6)
    for strength in (0.25, 0.5):
        want = distances(module, images, lambda image, s=strength: darker(image, s))
        assert found[("dark", strength)] == pytest.approx(want, rel=1e-4)
    assert found[("dark", 0.25)] < found["dark-range"].iloc[0] < found[("dark", 0.5)]


def test_random_draws_are_keyed_by_sample(module, images, tmp_path):
    """The scores do not depend on the order, the batch or the state of generators, and differ between seeds."""
    def run(name, seed=1, **keys):
        random.seed(name)
        return scores(noether_ml.measure(module, images, layers="output", measures=["distance"], quiet=True, seed=seed, folder=tmp_path / name,
                                         transforms=[{"name": "noise", "python": {"function": noise, "strength": 0.2}}], **keys)).iloc[0]

    first = run("a")
    assert run("b", threads=1) == first
    assert run("c", seed=2) != first


def test_libraries(module, images):
    albumentations = pytest.importorskip("albumentations")
    kornia = pytest.importorskip("kornia")
    nrtk = pytest.importorskip("nrtk.impls.perturb_image.photometric.enhance")
    nrtk_random = pytest.importorskip("nrtk.impls.perturb_image.geometric.random")
    from torchvision.transforms import v2

    found = scores(noether_ml.measure(module, images, layers="output", measures=["distance"], quiet=True, transforms=[
        {"name": "built-in", "flip": "horizontal"},
        {"name": "albumentations", "python": {"function": albumentations.HorizontalFlip(p=1)}},
        {"name": "torchvision", "python": {"function": v2.RandomHorizontalFlip(p=1)}},
        {"name": "kornia", "python": {"function": kornia.augmentation.RandomHorizontalFlip(p=1)}},
        {"name": "brightness", "brightness": 0.5}, {"name": "nrtk", "python": {"function": nrtk.BrightnessPerturber(factor=0.5)}}, {"name": "nrtk shift", "python": {"function": nrtk_random.RandomTranslationPerturber()}},
        albumentations.CoarseDropout(p=1), v2.ColorJitter(0.5), albumentations.Compose([albumentations.RandomRotate90(p=1)]),
    ]))
    for name in ("albumentations", "torchvision", "kornia"):
        assert found[name].iloc[0] == pytest.approx(found["built-in"].iloc[0], abs=1e-5), name
    assert found["nrtk"].iloc[0] == pytest.approx(found["brightness"].iloc[0], rel=0.02)  # of bytes
    assert {"nrtk shift", "CoarseDropout", "ColorJitter", "Compose"} <= set(found.index.get_level_values(0))
    assert (found > 0).all()


def darker_batch(images, strengths):
    assert images.ndim == 4 and images.shape[3] == 3
    return images * (1 - strengths[:, None, None, None])


def noise_batch(images, strengths, generators):
    sigma = strengths[:, None, None, None]
    return numpy.clip(images + sigma * numpy.stack([g.standard_normal(images.shape[1:]) for g in generators]), 0, 1)


def blur_batch(images):
    kornia = pytest.importorskip("kornia")
    x = torch.from_numpy(images).permute(0, 3, 1, 2)
    return kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)).permute(0, 2, 3, 1)


def blur(image):
    return blur_batch(image[None])[0]


def counted(images):
    counted.sizes.append(len(images))
    return images[:, :, ::-1]


def test_functions_of_batches_equal_those_of_images(module, images):
    pytest.importorskip("kornia")  # of blur
    counted.sizes = []
    run = noether_ml.measure(module, images, layers="output", measures=["distance"], quiet=True, transforms=[
        blur, blur_batch, counted, {"name": "flip", "flip": "horizontal"},
        {"name": "both", "sequence": [{"python": {"function": darker_batch, "strength": 0.25}}, {"flip": "horizontal"}, {"python": {"function": blur_batch}}]},
        *({"name": f"{name}-{i}", "python": {"function": function, "strength": [0.1, 0.4]}}
          for name, functions in (("dark", (darker, darker_batch)), ("noise", (noise, noise_batch))) for i, function in enumerate(functions)),
    ])
    found = scores(run)
    for one, other in (("blur", "blur_batch"), ("flip", "counted")):
        assert found[one].iloc[0] == pytest.approx(found[other].iloc[0], rel=1e-4), one
    want = distances(module, images, lambda image: blur(darker(image, 0.25)[:, ::-1].copy()).numpy())
    assert found["both"].iloc[0] == pytest.approx(want, rel=1e-4)
    assert found["dark-0"].iloc[0] > 0 and found["noise-0"].iloc[0] > 0
    assert max(counted.sizes) > 4


def by_default(image, strength=0.5):
    return image * (1 - strength)


def test_strengths(module, images):
    """Without a strength in the study a function has its own; one that takes none is no function of a strength."""
    half = {"name": "half", "python": {"function": darker, "strength": 0.5}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(module, images, layers="output", measures=["distance"], quiet=True, transforms=[
            half, by_default, darker, {"name": "none", "python": {"function": flip, "strength": {"values": [0.1, 0.2]}}}])
    found = scores(run)
    assert found["half"].iloc[0] == found["by_default"].iloc[0] > 0
    assert set(run.scores.transformation) == {"half", "by_default"}
    assert {"missing 1 required positional argument: 'strength'", "has no parameter for a strength"} <= {
        want for f in run.failures for want in ("missing 1 required positional argument: 'strength'", "has no parameter for a strength") if want in f["error"]}


def test_names_of_parameters(module, images):
    for function, want in ((lambda images, strength=1: images, "it is called strengths"), (lambda image, generators=None: image, "it is called generator")):
        with pytest.raises(noether_ml.Error, match=want):
            noether_ml.measure(module, images, transforms=[{"name": "f", "python": {"function": function}}])


def crop(image):
    return image[1:]


def crop_batch(images):
    return images[1:]


def of_neighbours(images):
    return (images + images[::-1]) / 2


def of_the_mean(images):
    return images - images.mean() + 0.5


def unseeded_batch(images):
    return images * torch.rand(len(images), 1, 1, 1).numpy()


def exits(image):
    raise SystemExit(3)


def of_a_counter(image, calls=[0]):  # noqa: B006  # as people write it
    calls[0] += 1
    return image * (calls[0] % 3 > 0)


def of_the_last(image):
    before, of_the_last.image = getattr(of_the_last, "image", image), image
    return (image + before) / 2


def fails(image):
    raise ValueError("no luck\nand more")


def nan(image):
    return image * float("nan")


def unseeded(image, own=numpy.random.default_rng(1)):  # noqa: B008  # as people write it
    return image * own.random()


def whole(image):
    return (255 * image).astype(numpy.uint8)


def of_255(image):
    return 255 * image


@pytest.mark.parametrize("function, want", [(whole, "values of uint8"), (of_255, "divide by 255"), (crop, "must keep the size"), (fails, "ValueError: no luck"), (nan, "NaN"), (unseeded, "not reproducible"),
                                            (of_the_last, "called with before"), (of_a_counter, "called with before"), (exits, "SystemExit: 3"), (crop_batch, "must keep their number"), (of_neighbours, "depends on the batch"), (of_the_mean, "depends on the batch"),
                                            (unseeded_batch, "depends on the batch")])
def test_failures_are_one_line_and_others_stay(function, want, module, images):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(module, images, layers="output", measures=["distance"], quiet=True, transforms=[flip, function])
    assert set(run.scores.transformation) == {"flip"}
    assert all(want in f["error"] and "\n" not in f["error"] for f in run.failures) and run.failures


def mixes_many(images):
    return images - images.mean() + 0.5 if len(images) > 3 else images


def mixes_many_pairs(clean, moved):
    return abs(clean - moved).max(1) / (abs(clean).max() if len(clean) > 3 else 1)


def test_larger_batches_are_compared_again():
    """Functions that mix samples in batches that are larger than the first ones."""
    transformation, measure = _functions.Transformation(mixes_many), _functions.Measure(mixes_many_pairs)
    x = numpy.random.default_rng(1).random((6, 3, 4, 4), numpy.float32)

    def run(n):
        transformation.infer({"image": x[:n], "strength": numpy.full(n, numpy.nan), "seed": numpy.arange(n)}, {}, lambda _name, shape: numpy.empty(shape))
        measure.infer({"clean": x[:n].reshape(n, -1), "transformed": x[:n].reshape(n, -1) ** 2}, {}, lambda _name, shape: numpy.empty(shape))

    run(2)
    for function in (transformation, measure):
        function._calls = 2  # the next call does not repeat the first one
        with pytest.raises(noether_ml.Error, match="depends on the batch"):
            run(6) if function is transformation else measure.infer({"clean": x.reshape(6, -1), "transformed": x.reshape(6, -1) ** 2}, {}, lambda _name, shape: numpy.empty(shape))


def inverted_bytes(image):
    assert image.dtype == numpy.uint8
    return 255 - image


def inverted_batch(images):
    assert images.dtype == numpy.uint8
    return 255 - torch.from_numpy(images)


def as_it_is(image):
    return image if image.dtype == numpy.uint8 else image * float("nan")


def floats_of_bytes(image):
    return image / 255


def python(function, **keys):
    return {"name": function.__name__ if hasattr(function, "__name__") else type(function).__name__, "python": {"function": function, "dtype": "uint8", **keys}}


def test_bytes(module, images):
    """Functions that get bytes: the round trip is exact, and what are no bytes is refused."""
    from torchvision import transforms as v1

    turned = {"name": "turned", "sequence": [{"rotate": 15}, {"python": {"function": as_it_is, "dtype": "uint8"}}]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(module, images, layers="output", measures=["distance"], quiet=True, transforms=[
            python(as_it_is), python(inverted_bytes), python(inverted_batch), python(floats_of_bytes), python(v1.RandomInvert(p=1)), turned])
    found = scores(run)
    assert found["as_it_is"].iloc[0] == 0
    want = distances(module, images, lambda image: (255 - numpy.rint(255 * image).astype(numpy.uint8)).astype(numpy.float32) / 255)
    for name in ("inverted_bytes", "inverted_batch", "RandomInvert"):
        assert found[name].iloc[0] == pytest.approx(want, rel=1e-4), name
    errors = {f["transform"]: f["error"] for f in run.failures}
    assert set(errors) == {"floats_of_bytes", "turned"}
    assert "returns values of float64 for images of uint8: return uint8" in errors["floats_of_bytes"]
    assert "is no multiple of 1/255: leave dtype out" in errors["turned"] and "\n" not in errors["turned"]


def test_the_state_of_generators_is_kept():
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    want = random.random(), numpy.random.random(), torch.rand(1).item()
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    with _functions._seeded(5):
        random.random(), numpy.random.random(), torch.rand(1)
    assert (random.random(), numpy.random.random(), torch.rand(1).item()) == want


def test_the_digest_follows_the_code():
    def make(k):
        return lambda image: image * k

    assert _functions._digest(make(1)) == _functions._digest(make(1))
    assert _functions._digest(make(1)) != _functions._digest(make(2))


def test_wrong_types(module, images):
    with pytest.raises(noether_ml.Error, match="a transformation is a function, or a dict"):
        noether_ml.measure(module, images, transforms=["rotate"])


def angle(clean, moved):
    cosine = (clean * moved).sum(1) / numpy.linalg.norm(clean, axis=1) / numpy.linalg.norm(moved, axis=1)
    return 1 - cosine


def largest(clean, moved):
    return abs(clean - moved).max(1)


def test_measures(module, images):
    run = noether_ml.measure(module, images, layers=["layer1.0", "output"], transforms=[flip, {"name": "quarter", "rotate": {"values": [90, 180]}}],
                             measures=["distance", angle, largest], quiet=True, samples=True)
    scores = run.scores
    found = {name: scores[scores.statistic == name].set_index(["layer", "transformation", "parameter"]) for name in ("cosine", "angle", "largest")}
    assert len(found["angle"]) == len(found["cosine"]) == len(found["largest"]) > 6
    for column in ("value", "low", "high", "null"):
        assert (found["angle"][column] - found["cosine"][column]).abs().max() < 1e-5, column
    assert (found["largest"].value > 0).all()
    assert set(run.scores[run.scores.measure == "python"].statistic) == {"angle", "largest"}


def cka(clean, moved):
    x, y = (z.astype(float) - z.astype(float).mean(0) for z in (clean, moved))
    return numpy.linalg.norm(x.T @ y) ** 2 / numpy.linalg.norm(x.T @ x) / numpy.linalg.norm(y.T @ y)


def test_measures_of_all_samples(module):
    """A function of the whole set has the value and the interval of the same measure in Go."""
    images = numpy.random.default_rng(2).integers(0, 256, (60, 32, 32, 3), dtype=numpy.uint8)
    run = noether_ml.measure(module, images, layers="output", transforms=[{"name": "tilt", "rotate": {"values": [15]}}], quiet=True,
                             measures=[{"similarity": {"statistics": ["linear-cka"]}}, angle, {"python-set": {"function": cka}}])
    scores = run.scores.set_index("statistic")
    assert run.failures == [] and "angle" in scores.index
    ours, known = scores.loc["cka"], scores.loc["linear-cka"]
    for column in ("value", "low", "high"):
        assert ours[column] == pytest.approx(known[column], abs=1e-5), column
    assert ours["null"] == pytest.approx(known["null"], abs=0.15) and ours.n == 60


def wrong_shape(clean, moved):
    return clean - moved


def of_the_batch(clean, moved):
    return abs(clean - moved).max(1) / abs(clean).max()


def not_a_number(clean, moved):
    return clean[:, 0] * float("nan")


def broken(clean, moved):
    raise KeyError("no luck")


@pytest.mark.parametrize("function, want", [(wrong_shape, "a number for each"), (of_the_batch, "depends on the batch"), (not_a_number, "NaN"), (broken, "KeyError: 'no luck'")])
def test_measures_that_fail(function, want, module, images):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(module, images, layers="output", transforms=[flip], measures=["distance", function], quiet=True)
    assert set(run.scores.measure) == {"distance"}
    assert all(want in f["error"] and "\n" not in f["error"] for f in run.failures) and run.failures


def test_names_of_measures(module, images):
    with pytest.raises(noether_ml.Error, match="2 measures are called 'angle'"):
        noether_ml.measure(module, images, measures=[angle, angle])


class Darker:
    """A transformation with settings, whose repr has only its address."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, image):
        return image * self.factor


def test_hashes_of_objects():
    a, b, c = (_functions.Transformation(Darker(factor)).digest for factor in (0.5, 0.5, 0.25))
    assert a == b != c
