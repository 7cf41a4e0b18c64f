"""Functions of Python as transformations: a user's own, and those of image libraries."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import math
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _sources
from ._command import Error
from ._server import Port, Room

_IMAGES = Port("image", "FP32", (-1, -1, -1, -1))  # samples x channels x height x width, in [0, 1]

# An image in [0, 1] after a change of contrast that is not clipped stays below. One in [0, 255] does not.
_MOST = 16


class Transformation:
    """A function of images as a model that the server serves, with their strengths and seeds as inputs.

    The function gets an array of height x width x channels, and its result has the same shape:

        def fog(image, strength, generator): ...

    image is of float32 in [0, 1], or image and result are of uint8, if the study says so. With the
    parameter strength it gets the strength of the study, with generator a numpy.random.Generator
    that is seeded for each sample. Whatever else it draws from random, numpy.random and torch is
    seeded as well.

    A function whose first parameter is called images gets a batch of them, samples x height x width
    x channels, with an array of strengths and a list of generators:

        def fog(images, strengths, generators): ...

    Transformations of albumentations, torchvision, kornia, timm and nrtk get what they take.
    """

    inputs = (_IMAGES, Port("strength", "FP64", (-1,)), Port("seed", "INT64", (-1,)))
    outputs = (_IMAGES,)
    layers: Sequence[Port] = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise Error(f"a transformation is a function of an image, not {function!r}")
        self.name = _name(function)
        self.digest = _digest(function)
        # With the digest, which stored scores depend on.
        self.address = f"{self.name}-{self.digest[:16]}"
        self._apply, takes = _adapted(function, self.name)
        self._batches = "batches" in takes
        self.extensions = {"takes": takes}
        self._first: tuple[Any, ...] | None = None  # what the first call was for, and returned
        self._calls = 0
        self._compared = 1 if self._batches else math.inf  # the most images of a call that was compared with calls for single ones

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        given = inputs["image"].transpose(0, 2, 3, 1), inputs["strength"], inputs["seed"]
        result = self._call(*given)
        self._calls += 1
        self._check(given, result)
        room("image", inputs["image"].shape)[:] = result.transpose(0, 3, 1, 2)

    def _call(self, images: Any, strengths: Any, seeds: Any) -> Any:
        """Return transformed images: of a batch, or one by one."""
        import numpy

        size = len(images) if self._batches else 1
        parts = []
        for start in range(0, len(images), size):
            part = slice(start, start + size)
            with _seeded(int(seeds[start])):
                returned = self._apply(numpy.array(images[part], order="C"), strengths[part].copy(), [numpy.random.default_rng(int(s)) for s in seeds[part]])
            parts.append(self._result(returned, images[part].shape))
        return numpy.concatenate(parts)

    def _result(self, returned: Any, want: Sequence[int]) -> Any:
        import numpy

        returned = _array(returned)
        result = returned.astype(numpy.float32) if returned.dtype.kind in "fiub" else returned
        if self._batches and result.shape != want:
            raise Error(f"{self.name} returns the shape {result.shape} for images of {want}: it must keep their number and size")
        if result.shape != want:
            raise Error(f"{self.name} returns the shape {result.shape[1:]} for an image of {want[1:]}: it must keep the size")
        if returned.dtype.kind != "f" or result.max() > _MOST:
            raise Error(f"{self.name} returns values of {returned.dtype} up to {result.max():g} for floats from 0 to 1: divide by 255")
        return result

    def _check(self, given: tuple[Any, ...], result: Any) -> None:
        """Fail if the function returns something else for the first images: at once, after 2, 4, 8... calls, or one by one and backwards."""
        if self._first is None:
            self._first = *(x.copy() for x in given), result
            self._same(self._call(*given), result, "is not reproducible: it draws from a generator of its own; let it take the parameter " + ("generators" if self._batches else "generator"))
        elif self._calls & (self._calls - 1) == 0:
            *before, wanted = self._first
            self._same(self._call(*before), wanted, "depends on the images that it was called with before: it must keep nothing between calls")
        if len(result) > self._compared:
            backwards = [self._call(*(x[i:i + 1] for x in given)) for i in reversed(range(len(result)))]
            import numpy

            self._same(numpy.concatenate(backwards[::-1]), result, "depends on the batch: its result for an image must follow from that image, its strength and its generator alone")
            self._compared = len(result)

    def _same(self, result: Any, wanted: Any, otherwise: str) -> None:
        import numpy

        if not numpy.allclose(result, wanted, rtol=1e-4, atol=1e-5, equal_nan=True):
            raise Error(f"{self.name} {otherwise}")


def _name(function: Any) -> str:
    """Return a name of letters, digits and underscores."""
    return re.sub(r"\W", "", getattr(function, "__name__", type(function).__name__))


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the generators that belong to no object, and restore their states at the end."""
    import numpy

    torch = sys.modules.get("torch")
    before = random.getstate(), numpy.random.get_state()
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    try:
        with torch.random.fork_rng(devices=[]) if torch is not None else contextlib.nullcontext():
            if torch is not None:
                torch.manual_seed(seed)
            yield
    finally:
        random.setstate(before[0])
        numpy.random.set_state(before[1])


def _adapted(function: Any, name: str) -> tuple[Callable[[Any, Any, Any], Any], list[str]]:
    """Return a function of images in [0, 1] (n x h x w x c), strengths and generators, and what it takes: "batches", "strength"."""
    packages = {c.__module__.partition(".")[0] for c in type(function).__mro__}
    for package, adapt in (("albumentations", _albumentations), ("kornia", _kornia), ("torchvision", _tensors), ("timm", _pictures), ("nrtk", _nrtk)):
        if package in packages:
            return _of_one(adapt(function)), []
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function without one, such as of C
        parameters = []
    batches = parameters[:1] == ["images"]
    of_one, of_all = ("strength", "generator"), ("strengths", "generators")
    for own, other in zip(*((of_all, of_one) if batches else (of_one, of_all))):
        if other in parameters:
            raise Error(f"{name} has the parameter {other}: of a function of {'images' if batches else 'an image'} it is called {own}")

    def plain(images: Any, strengths: Any, generators: Any) -> Any:
        values = dict(zip(of_all if batches else of_one, (strengths, generators) if batches else (float(strengths[0]), generators[0])))
        if math.isnan(strengths[0]):  # the study has none
            values = {key: v for key, v in values.items() if "strength" not in key}
        returned = _array(function(images if batches else images[0], **{key: v for key, v in values.items() if key in parameters}))
        if images.dtype == "uint8":
            if returned.dtype != "uint8":
                raise Error(f"{name} returns values of {returned.dtype} for images of uint8: return uint8")
            returned = _floats(returned)
        return returned if batches else returned[None]

    return plain, [*(["batches"] if batches else []), *(["strength"] if {"strength", "strengths"} & {*parameters} else [])]


def _of_one(single: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def apply(images: Any, _strengths: Any, generators: Any) -> Any:
        out = _array(single(images[0], generators[0]))
        return (_floats(out) if images.dtype == "uint8" else out)[None]

    return apply


def _bytes(image: Any) -> Any:
    """Return an image of floats in [0, 1], or of bytes, as bytes."""
    import numpy

    return image if image.dtype == numpy.uint8 else numpy.rint(255 * image).astype(numpy.uint8)


def _floats(image: Any) -> Any:
    """Return an image of bytes, or of floats in [0, 1], as floats."""
    import numpy

    return image.astype(numpy.float32) / numpy.float32(255) if image.dtype == numpy.uint8 else image


def _albumentations(transform: Any) -> Callable[[Any, Any], Any]:
    def apply(image: Any, generator: Any) -> Any:
        if hasattr(transform, "set_random_seed"):  # since version 1.4.19, which has generators of its own
            transform.set_random_seed(int(generator.integers(2**32)))
        out = transform(image=_bytes(image))["image"]  # all of its transformations take bytes
        return _floats(_array(out.permute(1, 2, 0) if hasattr(out, "permute") else out))  # of ToTensorV2 the channels are first

    return apply


def _nrtk(perturber: Any) -> Callable[[Any, Any], Any]:
    def apply(image: Any, generator: Any) -> Any:
        if hasattr(perturber, "_set_seed"):  # of those that draw random numbers, since version 1.0
            perturber._seed = int(generator.integers(2**32))
            perturber._set_seed()
        out = perturber(image=_bytes(image))
        return _floats(out[0] if isinstance(out, tuple) else out)  # beside boxes

    return apply


def _tensors(transform: Any) -> Callable[[Any, Any], Any]:
    def apply(image: Any, _generator: Any) -> Any:
        import torch

        return transform(torch.from_numpy(image).permute(2, 0, 1).contiguous()).permute(1, 2, 0)

    return apply


def _kornia(transform: Any) -> Callable[[Any, Any], Any]:
    def apply(image: Any, _generator: Any) -> Any:
        import torch

        with torch.no_grad():
            return transform(torch.from_numpy(_floats(image)).permute(2, 0, 1)[None].contiguous())[0].permute(1, 2, 0)

    return apply


def _pictures(transform: Any) -> Callable[[Any, Any], Any]:
    def apply(image: Any, _generator: Any) -> Any:
        import numpy
        from PIL import Image

        picture = Image.fromarray(_bytes(image).squeeze())
        return (numpy.asarray(transform(picture), numpy.float32) / 255).reshape(image.shape)

    return apply


def _array(returned: Any) -> Any:
    """Return an array or a tensor as an array."""
    import numpy

    return numpy.asarray(returned.detach().cpu() if hasattr(returned, "detach") else returned)


def _described(value: Any) -> str:
    """Return the repr of an object without addresses; of one that has no other repr, with its attributes."""
    def text(value: Any) -> str:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))

    if text(value) == repr(value):
        return text(value)
    return text(value) + text(sorted(getattr(value, "__dict__", {}).items()))


def _digest(function: Any) -> str:
    """Return a hash of the source code of a function, of its module and of the user's modules that this imports, and of versions of packages."""
    parts = [_described(function) if type(function).__module__ != "builtins" else ""]
    module = sys.modules.get(getattr(function, "__module__", "") or "")
    sources: list[Any] = [function, type(function), module]
    parts += _sources.of(module, sys.modules.get(type(function).__module__), *_sources.used(function))
    for source in sources:
        with contextlib.suppress(OSError, TypeError):  # without source code
            parts.append(inspect.getsource(source))
    defaults = getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)
    parts.append(_sources.stable(defaults))
    closure = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    parts += [value.tobytes().hex() if hasattr(value, "tobytes") else _sources.stable(value) for value in closure]
    code = getattr(function, "__code__", None)
    if code is not None:  # of a notebook, whose functions may have no source
        parts.append(_sources.stable(code))
    package = type(function).__module__.partition(".")[0]
    with contextlib.suppress(ImportError):
        parts.append(str(getattr(importlib.import_module(package), "__version__", "")))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class Measure:
    """A function of two arrays of activations as a model that the server serves.

    The function gets the activations for x and for T(x), each of samples x values, of float32, and
    returns a number for each sample, or one number for all of them:

        def angle(clean, moved): ...
    """

    inputs = (Port("clean", "FP32", (-1, -1)), Port("transformed", "FP32", (-1, -1)))
    outputs = (Port("value", "FP32", (-1,)),)
    layers: Sequence[Port] = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = _name(function)
        self.digest = _digest(function)
        self.address = f"{self.name}-{self.digest[:16]}"
        self._function = function
        self._compared = 1  # the most samples of a call that was compared with calls for parts of it

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        import numpy

        clean, moved = inputs["clean"], inputs["transformed"]
        values = self._call(clean, moved)
        if values.ndim == 0:  # of the whole set
            room("value", (1,))[:] = values
            return
        if len(clean) > self._compared:
            parts = [self._call(clean[i:j], moved[i:j]) for i, j in ((1, None), (0, 1))]
            if not numpy.allclose(values, numpy.concatenate(parts[::-1]), rtol=1e-4, atol=1e-6, equal_nan=True):
                raise Error(f"{self.name} depends on the batch: its value for a sample must follow from that sample alone")
            self._compared = len(clean)
        room("value", values.shape)[:] = values

    def _call(self, clean: Any, moved: Any) -> Any:
        import numpy

        values = numpy.asarray(self._function(clean.copy(), moved.copy()), numpy.float32)
        if values.shape not in ((), (len(clean),)):
            raise Error(f"{self.name} returns the shape {values.shape} for {len(clean)} samples: it must return a number for each, or one for all")
        return values
