"""A module of PyTorch as a model that the server serves: see _server."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _export, _reductions, _sources
from ._command import Error, first_line
from ._gradients import Gradients, Tangents
from ._server import DATATYPES, Model, Port, Room

# Modules whose output has the channels second, or last.
_SECOND = ("Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "BatchNorm1d", "BatchNorm2d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
           "MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d")
_LAST = ("Linear", "LayerNorm", "RMSNorm", "Embedding")


class Torch:
    """A module in evaluation mode, on its own device and in its own type.

    Its layers are the outputs of the modules inside, with their names. If a module is called again,
    "_1" is appended to the name, then "_2", and so on. Of a tuple or a dict the first tensor counts.
    """

    def __init__(self, module: Any, example: Any, random: bool = False, compiled: Callable[..., Any] | None = None) -> None:
        """example is a batch of two samples, on which the module runs to find its layers. random says that it is random.

        compiled is what torch.compile has made of the module. It computes outputs where no layer is asked for.
        """
        self.module, self.example, self._compiled = module, example, compiled
        self.independent = not random  # whether samples should have the values that they have alone
        self._autocast = _autocast(example.device.type)
        self._output = _export.output_name(module)
        one, two = self._find(example[:1]), self._find(example)
        if not random:
            _export.warn_of_batch(module, *([found[name][0] for name in one if self._is_output(name) and name in two] for found in (one, two)))
        axes = _axes({name: (x.shape, op) for name, (x, op) in two.items()})

        def port(name: str) -> Port:
            a, b = tuple(one[name][0].shape), tuple(two[name][0].shape)
            batched = a[:1] == (1,) and b[:1] == (2,) and a[1:] == b[1:]
            return Port(name, "FP32", (-1, *b[1:]) if batched else b, {"op": two[name][1], "axes": axes.get(name, "")})

        ports = [port(name) for name in two if name in one]
        self.outputs = [p for p in ports if self._is_output(p.name)]
        self.layers = [p for p in ports if not self._is_output(p.name)]
        kind = str(example.dtype).removeprefix("torch.")
        self.inputs = [Port("input", DATATYPES.get(kind, "FP32"), (-1, *example.shape[1:]))]
        self.digest = _digest(module, self._autocast, compiled is not None)
        self.keeps = example.device.type != "cpu"  # whether activations are in a memory of their own
        self._kept: dict[str, Any] = {}

    def _is_output(self, name: str) -> bool:
        return name.split(".")[0] == self._output

    def tensor(self, array: Any) -> Any:
        """Return samples on the module's device and in its type."""
        import torch

        return torch.from_numpy(array).to(device=self.example.device, dtype=self.example.dtype)

    def run(self, x: Any, wanted: set[str] | None, write: Callable[[str, Any, str], Any], gradients: bool = False, compiled: bool = False) -> None:
        """Call write with the name, the tensor and the class of each layer and output that is wanted; None: of all.

        What write returns, unless None, replaces the tensor of a layer. compiled says that no layer is
        wanted, and that what torch.compile has made of the module may run.
        """
        import torch

        with torch.set_grad_enabled(gradients), torch.autocast(**self._autocast), hooked(self.module, wanted, write):
            out = self._apply(x, self._compiled if compiled else None)
        for name, value in _export.outputs(out, self._output):
            if wanted is None or name in wanted:
                write(name, value, type(self.module).__name__)

    def _apply(self, x: Any, compiled: Callable[..., Any] | None) -> Any:
        try:
            return _export.apply(self.module, x, compiled)
        except Exception as e:
            if compiled is None:
                raise
            cause = getattr(e, "inner_exception", e)  # of a backend
            warnings.warn(f"noether: {type(self.module).__name__} fails as torch.compile compiles it, {type(cause).__name__}: {first_line(cause)}; so the module inside runs",
                          stacklevel=2)
            self._compiled = None
            return _export.apply(self.module, x)

    def _find(self, example: Any) -> dict[str, tuple[Any, str]]:
        """Return a tensor and the class of the module for each layer and output, without complex and sparse ones."""
        import torch

        found: dict[str, tuple[Any, str]] = {}
        left_out: list[str] = []

        def keep(name: str, x: Any, op: str) -> None:
            if x.is_complex() or x.layout != torch.strided:
                left_out.append(f"{name} ({'complex' if x.is_complex() else 'sparse'})")
            else:
                found[name] = (x, op)

        self.run(example, None, keep)
        if not any(self._is_output(name) for name in found):
            raise Error(f"{type(self.module).__name__} returns no tensor of real numbers{': ' + left_out[-1] if left_out else ''}")
        return found

    @property
    def extensions(self) -> dict[str, bool]:
        """Return what the metadata say of pools and sums: see engine/oip/reductions.go."""
        return {"pools": True, "keeps": self.keeps}

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        import torch

        asked: dict[str, list[str]] = {}  # by layer
        for name, parameters in wanted.items():
            asked.setdefault(parameters.get("layer", name), []).append(name)

        def write(layer: str, x: Any, _op: str) -> None:
            x = x.dequantize() if x.is_quantized else x
            for name in asked[layer]:
                y, parameters = x, wanted[name]
                if "keep" in parameters:
                    self._kept[parameters["keep"]] = x.clone()
                    continue
                if "pool" in parameters:
                    y = _reductions.pooled(x, parameters["pool"])
                elif "reduction" in parameters:
                    reduction = parameters["reduction"]
                    partners = torch.from_numpy(inputs["partners of samples"]).to(x.device, torch.int64)
                    y = _reductions.reduced(reduction, self._kept[reduction["clean"]], x, partners)
                # Now, since a module in place may change the tensor.
                torch.from_numpy(room(name, tuple(y.shape))).copy_(y)

        self.run(self.tensor(inputs["input"]), set(asked), write, compiled=len(inputs["input"]) > 1 and all(map(self._is_output, asked)))  # for one sample it would be compiled again

    def forget(self, kept: str) -> None:
        """Free a layer that a request has kept."""
        self._kept.pop(kept, None)

    def derivatives(self) -> dict[str, Model]:
        """Return the models of derivatives (see _gradients) by the ends of their names, if the input can have any."""
        return {".vjp": Gradients(self), ".jvp": Tangents(self)} if self.example.is_floating_point() else {}

    def default_layers(self) -> list[str]:
        """Return the outputs of the blocks: modules with modules inside, in a list of them and in no other block."""
        modules = dict(self.module.named_modules())
        blocks: list[str] = []
        for name in modules:
            inside = any(name.startswith(b + ".") for b in blocks)
            if name.rpartition(".")[2].isdigit() and not inside and any(True for _ in modules[name].children()):
                blocks.append(name)
        layers = [p.name for p in self.layers if p.shape[0] == -1]
        return [name for name in layers if name in blocks] or layers


def _autocast(device: str) -> dict[str, Any]:
    """Return the arguments of torch.autocast that this thread has set, since the server runs in another."""
    import torch

    try:
        enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    except (TypeError, AttributeError):  # before PyTorch 2.4
        gpu = device == "cuda"
        enabled = torch.is_autocast_enabled() if gpu else torch.is_autocast_cpu_enabled()
        dtype = torch.get_autocast_gpu_dtype() if gpu else torch.get_autocast_cpu_dtype()
    except RuntimeError:  # a device without it
        return {"device_type": "cpu", "enabled": False}
    return {"device_type": device, "enabled": enabled, "dtype": dtype}


@contextlib.contextmanager
def hooked(module: Any, wanted: set[str] | None, write: Callable[[str, Any, str], Any]) -> Iterator[None]:
    """Call write with the output of each module inside a module whose name is wanted; None: of all. See Torch.run."""
    calls: dict[str, int] = {}

    def hook(name: str) -> Callable[..., Any]:
        def called(m: Any, _inputs: Any, out: Any) -> Any:
            count = calls[name] = calls.get(name, -1) + 1
            own = name if count == 0 else f"{name}_{count}"
            first = next(_export.outputs(out, ""), None)
            if first is not None and (wanted is None or own in wanted):
                new = write(own, first[1], type(m).__name__)
                return None if new is None else _replaced(own, out, first[1], new)
            return None
        return called

    def asked(name: str) -> bool:
        return name != "" and (wanted is None or any(w == name or w.startswith(name + "_") for w in wanted))

    hooks = [m.register_forward_hook(hook(name)) for name, m in _export.hookable(module) if asked(name)]
    try:
        yield
    finally:
        for h in hooks:
            h.remove()


def _replaced(name: str, out: Any, old: Any, new: Any) -> Any:
    """Return the output of a module with another tensor in place of the first."""
    if out is old:
        return new
    if isinstance(out, (tuple, list)) and not hasattr(out, "_fields") and any(x is old for x in out):
        return type(out)(new if x is old else x for x in out)
    raise Error(f"{name} returns {type(out).__name__}, in which a tensor cannot be replaced")


def _axes(found: Mapping[str, tuple[Sequence[int], str]]) -> dict[str, str]:
    """Return the axes of layers, as far as their modules or those inside say them."""
    known: dict[str, str] = {}
    for name, (shape, op) in found.items():
        if op in _SECOND:
            known[name] = {2: "NC", 3: "NCT", 4: "NCHW"}.get(len(shape), "")
        elif op in _LAST:
            known[name] = {2: "NC", 3: "NTC", 4: "NHWC"}.get(len(shape), "")
    out = dict(known)
    for name, (shape, _) in found.items():
        if name in known:
            continue
        inside = {axes for other, axes in known.items() if other.startswith(name + ".") and tuple(found[other][0]) == tuple(shape)}
        if len(inside) == 1:
            out[name] = inside.pop()
    return out


def _digest(module: Any, autocast: Mapping[str, Any], compiled: bool) -> str:
    """Return a hash of the parameters, the structure and the code of a module."""
    import torch

    sum = hashlib.sha256(f"{torch.__version__}\n{autocast if autocast['enabled'] else ''}{'compiled' if compiled else ''}\n{module!r}".encode())
    for name, x in sorted(module.state_dict().items()):
        if isinstance(x, torch.Tensor):
            _digest_tensor(sum, name, x.detach())
        else:
            sum.update(f"\n{name} {x!r}".encode())
    for cls in sorted({type(m) for m in module.modules()}, key=lambda c: f"{c.__module__}.{c.__qualname__}"):
        text = f"{cls.__module__}.{cls.__qualname__}"
        if not cls.__module__.startswith("torch."):
            with contextlib.suppress(OSError, TypeError):  # a class of a notebook that has no source
                text += inspect.getsource(cls)
        sum.update(f"\n{text}".encode())
    modules = {m.__module__ for m in map(type, module.modules())}
    sum.update("\n".join(_sources.of(*map(sys.modules.get, sorted(modules)))).encode())
    return sum.hexdigest()


def _digest_tensor(sum: Any, name: str, x: Any) -> None:
    import torch

    if hasattr(x, "__tensor_flatten__"):  # of several tensors, such as the integers and scales of torchao
        parts, context = x.__tensor_flatten__()
        sum.update(f"\n{name} {type(x).__name__} {context!r} ".encode())
        for part in parts:
            _digest_tensor(sum, f"{name}.{part}", getattr(x, part))
        return
    x = x.int_repr() if x.is_quantized else x
    sum.update(f"\n{name} {x.dtype} {tuple(x.shape)} ".encode())
    sum.update(x.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)


@contextlib.contextmanager
def _without_fast_path() -> Iterator[None]:
    """Prevent attention from using PyTorch's fast path, which does not call the modules inside."""
    import torch

    switch = getattr(torch.backends, "mha", None)
    if switch is None:  # before PyTorch 2.0
        yield
        return
    before = switch.get_fastpath_enabled()
    switch.set_fastpath_enabled(False)
    try:
        yield
    finally:
        switch.set_fastpath_enabled(before)


@contextlib.contextmanager
def model(module: Any, input: Any) -> Iterator[Torch]:
    """Yield a module as a model, in evaluation mode until the end. input is as for export."""
    given, module = module, _export.unwrapped(module)
    _export.check_weights(module)
    random = False
    with _export.uncompiled(module) as switch, _export._evaluating(module), _without_fast_path():
        example = _export._example(module, input)
        try:
            _export.check_random(module, example)
        except _export.RandomError as e:
            random = True
            warnings.warn(f"noether: {e}", stacklevel=6)
        compiled = _compiled(given, module, switch)
        try:
            found = Torch(module, example, random, compiled)
        except Exception as e:
            raise Error(f"{type(module).__name__} fails on a batch of {tuple(example.shape)}: {first_line(e)}") from None
        if compiled is not None:
            warnings.warn(f"noether: {type(module).__name__} is compiled: what torch.compile has made of it computes outputs where no layer is "
                          "measured; where layers are, and for derivatives, the module inside runs", stacklevel=6)
        yield found


def _compiled(given: Any, module: Any, switch: Callable[[bool], None] | None) -> Callable[..., Any] | None:
    """Return what torch.compile has made of a module, or of modules inside it; None if of neither. switch is that of _export.uncompiled."""
    while not hasattr(given, "_orig_mod") and given is not module:
        given = given.module  # of a wrapper for several devices
    if given is module and switch is None:
        return None

    def call(*args: Any, **keys: Any) -> Any:
        import torch

        for x in (*args, *keys.values()):
            torch._dynamo.maybe_mark_dynamic(x, 0)  # else it is compiled for the first size of a batch, and again for the next
        if switch is not None:
            switch(True)
        try:
            return given(*args, **keys)
        finally:
            if switch is not None:
                switch(False)

    return call
