"""Functions of Python as transformations: a user's own, and those of image libraries."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
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
    """A function of an image as a model that the server serves, with its strength and a seed as inputs.

    The function gets an array of height x width x channels, and its result has the same shape:

        def fog(image, strength, generator): ...

    image is of float32 in [0, 1]. With the parameter strength it gets the strength of the study,
    with generator a numpy.random.Generator that is seeded for each sample. Whatever else it draws
    from random, numpy.random and torch is seeded as well. Transformations of albumentations,
    torchvision, kornia, timm and nrtk get what they take.
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
        self._apply = _adapted(function)
        self._checked = False

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        import numpy

        images = inputs["image"].transpose(0, 2, 3, 1)
        out = room("image", inputs["image"].shape)
        for i, image in enumerate(images):
            def call(image: Any = image, strength: float = float(inputs["strength"][i]), seed: int = int(inputs["seed"][i])) -> Any:
                returned = self._call(image, strength, seed)
                result = numpy.asarray(returned, numpy.float32)
                if result.shape != image.shape:
                    raise Error(f"{self.name} returns the shape {result.shape} for an image of {image.shape}: it must keep the size")
                dtype = numpy.asarray(returned).dtype
                if not numpy.issubdtype(dtype, numpy.floating) or result.max() > _MOST:
                    raise Error(f"{self.name} returns values of {dtype} up to {result.max():g} for floats from 0 to 1: divide by 255")
                return result

            result = call()
            if not self._checked:
                self._check(result, call)
            out[i] = result.transpose(2, 0, 1)

    def _call(self, image: Any, strength: float, seed: int) -> Any:
        import numpy

        with _seeded(seed):
            return self._apply(numpy.array(image, numpy.float32), strength, numpy.random.default_rng(seed))

    def _check(self, result: Any, call: Callable[[], Any]) -> None:
        """Fail if the function returns something else the second time."""
        import numpy

        if not numpy.allclose(result, call(), rtol=1e-5, atol=1e-6, equal_nan=True):
            raise Error(f"{self.name} is not reproducible: it draws from a generator of its own; let it take the parameter generator")
        self._checked = True


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


def _adapted(function: Any) -> Callable[[Any, float, Any], Any]:
    """Return a function of an image of h x w x c in [0, 1], a strength and a generator."""
    packages = {c.__module__.partition(".")[0] for c in type(function).__mro__}
    for package, adapt in (("albumentations", _albumentations), ("kornia", _kornia), ("torchvision", _tensors), ("timm", _pictures), ("nrtk", _nrtk)):
        if package in packages:
            return adapt(function)
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function without one, such as of C
        parameters = []

    def plain(image: Any, strength: float, generator: Any) -> Any:
        known = {"strength": strength, "generator": generator}
        return function(image, **{name: known[name] for name in parameters if name in known})

    return plain


def _albumentations(transform: Any) -> Callable[[Any, float, Any], Any]:
    def apply(image: Any, _strength: float, generator: Any) -> Any:
        import numpy

        if hasattr(transform, "set_random_seed"):  # since version 1.4.19, which has generators of its own
            transform.set_random_seed(int(generator.integers(2**32)))
        pixels = numpy.rint(255 * image).astype(numpy.uint8)  # which all of its transformations take
        out = transform(image=pixels)["image"]
        return out.astype(numpy.float32) / 255 if out.dtype == numpy.uint8 else out

    return apply


def _nrtk(perturber: Any) -> Callable[[Any, float, Any], Any]:
    def apply(image: Any, _strength: float, _generator: Any) -> Any:
        import numpy

        out = perturber(image=numpy.rint(255 * image).astype(numpy.uint8))
        out = out[0] if isinstance(out, tuple) else out  # beside boxes
        return out.astype(numpy.float32) / 255 if out.dtype == numpy.uint8 else out

    return apply


def _tensors(transform: Any) -> Callable[[Any, float, Any], Any]:
    def apply(image: Any, _strength: float, _generator: Any) -> Any:
        import torch

        return transform(torch.from_numpy(image).permute(2, 0, 1)).permute(1, 2, 0)

    return apply


def _kornia(transform: Any) -> Callable[[Any, float, Any], Any]:
    def apply(image: Any, _strength: float, _generator: Any) -> Any:
        import torch

        with torch.no_grad():
            return transform(torch.from_numpy(image).permute(2, 0, 1)[None])[0].permute(1, 2, 0)

    return apply


def _pictures(transform: Any) -> Callable[[Any, float, Any], Any]:
    def apply(image: Any, _strength: float, _generator: Any) -> Any:
        import numpy
        from PIL import Image

        picture = Image.fromarray(numpy.rint(255 * image).astype(numpy.uint8).squeeze())
        return (numpy.asarray(transform(picture), numpy.float32) / 255).reshape(image.shape)

    return apply


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
        self._checked = False

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        import numpy

        clean, moved = inputs["clean"], inputs["transformed"]
        values = self._call(clean, moved)
        if values.ndim == 0:  # of the whole set
            room("value", (1,))[:] = values
            return
        if not self._checked and len(clean) > 1:
            parts = [self._call(clean[i:j], moved[i:j]) for i, j in ((1, None), (0, 1))]
            if not numpy.allclose(values, numpy.concatenate(parts[::-1]), rtol=1e-4, atol=1e-6, equal_nan=True):
                raise Error(f"{self.name} depends on the batch: its value for a sample must follow from that sample alone")
            self._checked = True
        room("value", values.shape)[:] = values

    def _call(self, clean: Any, moved: Any) -> Any:
        import numpy

        values = numpy.asarray(self._function(clean.copy(), moved.copy()), numpy.float32)
        if values.shape not in ((), (len(clean),)):
            raise Error(f"{self.name} returns the shape {values.shape} for {len(clean)} samples: it must return a number for each, or one for all")
        return values
