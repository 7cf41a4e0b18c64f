"""Derivatives of a module as further models that the server serves: see engine/oip."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._command import Error
from ._server import Port, Room

if TYPE_CHECKING:
    from ._torch import Torch

COTANGENT, GRADIENT, TANGENT = "cotangent ", "gradient ", "tangent "


class Gradients:
    """The layers of a module and, by autograd, the gradient of their products with cotangents.

    The cotangents that a request lacks are 0. A request for layers alone keeps what the request for
    the gradient for the same samples needs, which follows as a rule.
    """

    def __init__(self, model: Torch) -> None:
        self._model = model
        layers = [*model.outputs, *model.layers]
        self.inputs = [*model.inputs, *(Port(COTANGENT + p.name, "FP32", p.shape) for p in layers)]
        self.outputs = [Port(GRADIENT + p.name, "FP32", p.shape) for p in model.inputs]
        self.layers = layers
        self.digest = model.digest
        self._kept: tuple[Any, Any, dict[str, Any]] | None = None  # the array, x and layers

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        import torch

        name = self._model.inputs[0].name
        array = inputs[name]
        cotangents = {key.removeprefix(COTANGENT): value for key, value in inputs.items() if key.startswith(COTANGENT)}
        layers = [w for w in wanted if w != GRADIENT + name]
        x, found = self._layers(array, {*layers, *cotangents})
        for layer in layers:
            if layer in found:
                torch.from_numpy(room(layer, tuple(found[layer].shape))).copy_(found[layer].detach())
        if len(layers) == len(wanted):
            self._kept = (array.copy(), x, found)
            return
        # Layers of integers, or that do not depend on the input, have no gradient.
        z = {layer: found[layer] for layer in cotangents if layer in found and found[layer].requires_grad}
        if not z:
            raise Error(f"{type(self._model.module).__name__} has no gradient of {', '.join(cotangents) or 'nothing'} by its input")
        weights = [torch.from_numpy(cotangents[layer].copy()).reshape(t.shape).to(t) for layer, t in z.items()]
        gradient, = torch.autograd.grad(list(z.values()), x, weights)
        torch.from_numpy(room(GRADIENT + name, tuple(gradient.shape))).copy_(gradient)

    def _layers(self, array: Any, names: set[str]) -> tuple[Any, dict[str, Any]]:
        """Return the input as a tensor, and layers that depend on it."""
        import numpy

        kept, self._kept = self._kept, None
        if kept is not None and names <= set(kept[2]) and numpy.array_equal(kept[0], array):
            return kept[1], kept[2]
        x = self._model.tensor(array).detach().clone().requires_grad_()
        found: dict[str, Any] = {}
        # A copy, since a module in place may change the tensor.
        self._model.run(x, names, lambda name, t, _op: found.__setitem__(name, t.clone()), gradients=True)
        return x, found


class Tangents:
    """The layers of a module and their derivatives along a direction, by forward-mode differentiation.

    A request gives the direction as tangents of the input, which is 0 without one, and of layers: there
    it replaces the tangent that arrives. The outputs are the tangents that arrive at layers.
    """

    def __init__(self, model: Torch) -> None:
        self._model = model
        layers = [*model.outputs, *model.layers]
        self.inputs = [*model.inputs, *(Port(TANGENT + p.name, "FP32", p.shape) for p in [*model.inputs, *layers])]
        self.outputs = [Port(TANGENT + p.name, "FP32", p.shape) for p in layers]
        self.layers = layers
        self.digest = model.digest

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        import torch
        from torch.autograd import forward_ad

        name = self._model.inputs[0].name
        given = {key.removeprefix(TANGENT): value for key, value in inputs.items() if key.startswith(TANGENT)}
        x = self._model.tensor(inputs[name]).clone()

        def like(value: Any, x: Any) -> Any:
            return torch.from_numpy(value.copy()).reshape(x.shape).to(x)

        def write(layer: str, x: Any, _op: str) -> Any:
            primal, tangent = forward_ad.unpack_dual(x)
            if tangent is not None and tangent.shape != primal.shape:  # of an operator with a wrong rule
                raise Error(f"the tangent of {layer} has the shape {tuple(tangent.shape)}, and the layer {tuple(primal.shape)}")
            for key, value in ((layer, primal), (TANGENT + layer, tangent)):
                if key in wanted:
                    to = torch.from_numpy(room(key, tuple(primal.shape)))
                    to.zero_() if value is None else to.copy_(value)
            return forward_ad.make_dual(primal, like(given[layer], primal)) if layer in given else None

        _import_rules()
        with forward_ad.dual_level(), _differentiable_attention():
            if name in given:
                x = forward_ad.make_dual(x, like(given.pop(name), x))
            self._model.run(x, {key.removeprefix(TANGENT) for key in wanted} | set(given), write)


def _import_rules() -> None:
    """Import what PyTorch imports at the first tangent, without the warnings of its own code."""
    with warnings.catch_warnings(), contextlib.suppress(ImportError):
        warnings.simplefilter("ignore")
        importlib.import_module("torch._decomp.decompositions_for_jvp")


@contextlib.contextmanager
def _differentiable_attention() -> Iterator[None]:
    """Compute attention by operations that have forward-mode derivatives."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # before PyTorch 2.3
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield
