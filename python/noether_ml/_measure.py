"""The function measure, which writes a study from its arguments and runs it with the command."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from . import _applied, _cache, _data, _export, _files, _functions, _models, _preprocess, _server
from ._command import Error, Progress, call, flags
from ._run import Run

# The defaults of transforms, with rotations by angles in degrees, and of measures.
TRANSFORMS: list[dict[str, Any]] = [
    {"name": "quarter", "rotate": {"values": [90, 180, 270]}},
    {"name": "tilt", "rotate": {"values": [-15, -5, 5, 15]}},
]
SOUND_TRANSFORMS: list[dict[str, Any]] = [
    {"name": "noise", "white-noise": {"values": [30, 20, 10]}},
    {"name": "gain", "gain": {"values": [-12, -6, 6]}},
]
MEASURES = ["effective-invariance", "prediction-divergence", "distance"]

# Keys of a model in a study that are parameters of measure, and hold for all models of a call.
MODEL_KEYS = ("axes", "inputs", "layout", "output", "scores", "tags", "tokens")

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Study(TypedDict, total=False):
    """Further keys of a study file, which measure takes as they are."""

    batch: int
    description: str
    memory: int | str
    pictures: int


# The environment variable with the address of this process for the command.
ADDRESS = "NOETHER_PYTHON"


def measure(
    model: Any,
    data: Any,
    *,
    transforms: Mapping[str, Any] | Callable[..., Any] | Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
    measures: str | Mapping[str, Any] | Callable[..., Any] | Sequence[str | Mapping[str, Any] | Callable[..., Any]] | None = None,
    layers: str | Sequence[str] | None = None,
    preprocess: Any = None,
    labels: Any = None,
    limit: int | None = None,
    rate: int | None = None,
    input: Any = None,
    folder: str | os.PathLike[str] | None = None,
    name: str | None = None,
    seed: int = 1,
    trials: int = 1,
    samples: bool = False,
    engine: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    strict: bool = False,
    scores: str | None = None,
    output: str | Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    tokens: Mapping[str, Any] | None = None,
    axes: Mapping[str, str] | None = None,
    layout: str | None = None,
    tags: Mapping[str, Any] | None = None,
    classes: str | Sequence[int | str] | None = None,
    **study: Unpack[Study],
) -> Run:
    """Measure how the layers of models react when their input is transformed.

    model: a path of an ONNX file or of a folder with one, an onnx.ModelProto, a torch.nn.Module,
        "hf://ORG/NAME", "torchvision:NAME" or "timm:NAME"; or a dict of several by name. In place of one
        of several, {"model": one, "scores": "none"} has keys of its own.
    data: a folder of images, an .npy or .npz file, a data entry of a study (or a list of them),
        an array (N x H x W x C of uint8, N x C x H x W of floats), a pair of images and labels, a
        Dataset or a DataLoader of PyTorch, a data set of Hugging Face, images of PIL of any size, a
        DataFrame of paths and labels, waveforms (N x T, or a list), videos (five axes, as the model
        takes them).
    transforms: one or several, as in a study file, or functions of an image (height x width x
        channels, floats in [0, 1]), also of albumentations, torchvision, kornia or timm. A function with the parameter
        strength is named as {"python": {"function": f, "strength": {"values": [0.1, 0.3]}}}.
    measures: one or several, as in a study file, or functions of two arrays, the activations for x
        and for T(x) (samples x values), that return a number for each sample. One that returns a
        number for all samples at once is named as {"python-set": {"function": f}}.
    layers: as in a study file. Layers of a module have the names of
        named_modules. Without layers, the outputs of the blocks are measured.
    preprocess: as in a study file; or a processor of transformers (the object, its dict, its folder),
        the data config of timm, or transforms of torchvision (a Compose, weights, or their
        transforms()). Images of floats, also from Datasets, are not resized or cropped.
        If they are normalised, preprocess must have the mean and the standard deviation that were
        used. Any other function of an image is applied to each image, before transformations.
    labels: the classes of the samples of an array.
    limit: the largest number of samples.
    rate: the sample rate of waveforms in Hz.
    input: an example or the shape of one sample, to export a module.
    folder: the run folder; by default one in the cache that is determined by the arguments.
    name: the name of the study, and of a single model.
    seed, trials, samples: as in a study file.
    engine: what runs a module. "onnx": ONNX Runtime, after an export. "torch": the module itself, on
        its own device and in its own type, in this process; its layers are the outputs of the
        modules inside. By default "torch" for a module on a GPU and for one that cannot be
        exported, else "onnx".
    device, threads: as the flags --device and --threads of noether run.
    quiet: show no progress.
    strict: fail if a sample cannot be read, instead of leaving it out.
    scores, output, inputs, tokens, axes, layout, tags: as for a model in a study file. They hold for
        all models that have none of their own.
    classes: as for data in a study file: the output of each class, or "present".
    study: further keys of a study file.

    A call that was interrupted continues if it is repeated.
    """
    _check_names(study)
    with prepared(model, data, transforms=transforms, measures=measures, layers=layers, preprocess=preprocess, labels=labels, limit=limit,
                  rate=rate, input=input, name=name, seed=seed, trials=trials, samples=samples, engine=engine, classes=classes,
                  keys={"axes": axes, "inputs": inputs, "layout": layout, "output": output, "scores": scores, "tags": tags, "tokens": tokens},
                  study=study) as (spec, environment, identity):
        result = run(spec, folder, quiet, environment, identity, device=device, threads=threads, strict=strict)
    if measures is not None:
        _warn_of_skipped(result)
    return result


@contextlib.contextmanager
def prepared(
    model: Any,
    data: Any,
    *,
    keys: Mapping[str, Any],
    study: Mapping[str, Any],
    transforms: Any = None,
    measures: Any = None,
    layers: str | Sequence[str] | None = None,
    preprocess: Any = None,
    labels: Any = None,
    limit: int | None = None,
    rate: int | None = None,
    input: Any = None,
    name: str | None = None,
    seed: int = 1,
    trials: int = 1,
    samples: bool = False,
    engine: str | None = None,
    classes: str | Sequence[int | str] | None = None,
) -> Iterator[tuple[dict[str, Any], dict[str, str], str]]:
    """Write models and data to files, or serve them from this process, and yield the study, as measure describes.

    keys are those of models, study further keys of the study. Beside the study there are the
    environment variables that it names, and what identifies them; they are valid in the block.
    """
    several = isinstance(model, Mapping)
    if several and model and all(hasattr(m, "detach") for m in model.values()):
        raise Error("the model is a state dict, which holds weights without a network: load it (module.load_state_dict) and give the module")
    transforms = [transforms] if isinstance(transforms, Mapping) or callable(transforms) else transforms
    measures = [measures] if isinstance(measures, (str, Mapping)) or callable(measures) else measures
    if isinstance(transforms, str):
        raise Error(f"transforms is a list of functions or of dicts such as {{'rotate': {{'values': [90]}}}}, not {transforms!r}")
    given = dict(model) if isinstance(model, Mapping) else {name or "": model}
    if not given:
        raise Error("no model is given")
    if engine not in (None, "onnx", "torch"):
        raise Error(f'engine is "onnx" or "torch", not {engine!r}')
    preprocess = _preprocess.resolve(preprocess)
    if isinstance(preprocess, _applied.Applied):
        applied, preprocess = preprocess.prepare(data, labels, limit)
        sources = [applied]
    else:
        sources = _data.prepare(data, labels, limit, preprocess, rate)
    if classes is not None:
        for s in sources:
            s.entry["classes"] = classes if isinstance(classes, str) else list(classes)
    common = {key: value for key, value in keys.items() if value is not None}
    # What is known of the first data is taken to hold for all: the shape of a sample, whether there
    # are labels, and framed: whether samples already have the size that the model takes.
    known = sources[0]
    with contextlib.ExitStack() as stack:  # of modules that run in this process
        models: list[dict[str, Any]] = []
        served: dict[str, _server.Model] = {}
        for key, m in given.items():
            m, own = _own_keys(m)
            steps = own.get("preprocess", preprocess)
            shape = input if input is not None else _shape(m, known, steps)
            ready = stack.enter_context(_models.prepared(m, steps, shape, engine))
            models.append({**_entry(ready, key, known, layers, hasattr(m, "named_modules")), **common, **own})
            if "preprocess" not in models[-1]:
                _warn_of_images(m, known)
            if ready.served is not None:
                address = f"model-{len(models)}"
                served[address] = ready.served
                served.update({address + end: m for end, m in ready.served.derivatives().items()})
                # In a variable, so that the text of the study is the same each time.
                models[-1]["url"] = f"${{{ADDRESS}}}/v2/models/{address}"
        if known.names is not None and "classes" not in known.entry:
            _name_classes(known, given, models)
        if known.raw:
            sources, transforms = _data.moved(known, transforms), []
        elif transforms is None:
            transforms = SOUND_TRANSFORMS if known.sound else TRANSFORMS
        moved = _transforms(transforms, served)
        default = (["accuracy"] if known.labelled else []) + MEASURES
        spec = {
            "name": name or ("models" if several else models[0]["name"]), "seed": seed, "trials": trials, "samples": samples,
            "data": [s.entry for s in sources], "models": models, "transforms": moved,
            "measures": _measures(default if measures is None else measures, served), **study,
        }
        environment = {ADDRESS: stack.enter_context(_server.serving(served))} if served else {}
        identity = "".join(m.digest for m in served.values())
        yield spec, environment, identity


def _shape(model: Any, data: _data.Prepared, preprocess: Any) -> tuple[int, ...] | None:
    """Return the shape of a sample that a module gets, as far as the data say it: None if preprocess, the module or nothing does."""
    if isinstance(preprocess, Mapping):
        sized = any(key in preprocess for key in ("crop", "letterbox", "preset", "resize"))
    else:
        sized = preprocess not in (None, "none")
    if data.framed or not sized and "images" not in data.entry:
        return data.shape
    if sized or not hasattr(model, "named_modules") or _export.image_shape(model) is not None:
        return None
    if data.shape is None:
        warnings.warn(f"noether: the images are brought to 224 x 224 pixels, since nobody says what size {type(model).__name__} takes: "
                      "set input=(channels, height, width), or crop in preprocess=", stacklevel=4)
    return data.shape


def _name_classes(data: _data.Prepared, given: Mapping[str, Any], models: Sequence[Mapping[str, Any]]) -> None:
    """Say which outputs the classes of a data set are: by synset, by the names of the model's config, or in order if they are as many."""
    names = [data.names[i] for i in _files.labels_of(data.entry) if isinstance(i, int) and 0 <= i < len(data.names or ())] if data.names else []
    if not names:
        return
    if all(re.fullmatch(r"n\d{8}", name) for name in names):
        data.entry["classes"] = names
        return
    for model, entry in zip(given.values(), models):
        known = getattr(getattr(model, "config", None), "id2label", None)
        outputs = {str(v).lower(): int(k) for k, v in known.items()} if isinstance(known, Mapping) else {}
        if all(name.lower() in outputs for name in names):
            data.entry["classes"] = [outputs[name.lower()] for name in names]
            return
        last = list(model.modules())[-1] if hasattr(model, "modules") else None
        count = getattr(last, "out_features", None)
        if count is not None and count != len(data.names or ()):
            warnings.warn(f"noether: {entry['name']} has {count} outputs and the data set {len(data.names or ())} classes: class i is taken for output i; "
                          "give classes= if that is wrong", stacklevel=4)


def _own_keys(model: Any) -> tuple[Any, dict[str, Any]]:
    """Return a model of several, and the keys that are given with it."""
    if not isinstance(model, Mapping):
        return model, {}
    own = dict(model)
    found = own.pop("model", None)
    unknown = [key for key in own if key not in MODEL_KEYS and key not in ("layers", "preprocess")]
    if found is None or unknown:
        raise Error(f"one of several models is a model, or a dict with the key model and any of {', '.join(MODEL_KEYS)}, layers and preprocess, "
                    f"not a dict with {', '.join(map(repr, model))}")
    if "preprocess" in own:
        own["preprocess"] = _preprocess.keys(own["preprocess"])
    return found, own


def _folder(data: _data.Prepared) -> Any:
    """Return the folder of images, or None if data are others or files all over the disk that a table names."""
    images = data.entry.get("images")
    if isinstance(images, Mapping):
        folder, labels = images.get("folder"), images.get("labels")
        return folder if folder and (labels is None or Path(labels).parent == Path(folder)) else None
    return images


def _array(data: _data.Prepared) -> Any:
    """Return the file of an array of images, or None if data are others."""
    arrays = data.entry.get("arrays")
    return arrays.get("inputs") if isinstance(arrays, Mapping) and not data.raw else None


def _entry(prepared: _models.Prepared, name: str, data: _data.Prepared, layers: str | Sequence[str] | None, module: bool) -> dict[str, Any]:
    """Return the entry of a model in the study, without the address of one that is served.

    module says that the model is one of PyTorch, for which _warn_of_images warns of arrays.
    """
    entry: dict[str, Any] = {"name": name or prepared.name}
    steps, served = prepared.preprocess, prepared.served
    inspected: dict[str, Any] = {}
    if served is None:
        entry["onnx"] = prepared.path
        files = _folder(data) or (None if module else _array(data)) if steps is None else None
        if layers is None or files is not None or data.framed and steps is None:
            inspected = _models.inspect(prepared.path, files)
        suggested = None if steps is not None else inspected.get("suggested")
        if data.framed and suggested not in (None, "none"):
            warnings.warn(f"noether: the values of the images, from 0 to 1, reach {entry['name']} as they are, where noether init would guess "
                          f"{json.dumps(suggested)} for files: set preprocess, 'none' if that is right", stacklevel=4)
            suggested = None
        steps = steps if steps is not None else suggested
        if files is not None and steps is not None:
            warnings.warn(f"noether: preprocess={json.dumps(steps)} is a guess, as noether init makes it: a wrong mean, std or size "
                          "makes every score wrong, so set preprocess", stacklevel=4)
    if data.raw:
        steps = None
    elif data.framed:
        steps = _framed(steps if steps is not None else inspected.get("preprocess"), data.shape)
    if steps is not None:
        entry["preprocess"] = steps
    chosen = [layers] if isinstance(layers, str) else list(layers) if layers is not None else None
    if chosen is None:
        chosen = served.default_layers() if served is not None else _models.chosen_layers(inspected)
    if chosen is not None:
        entry["layers"] = chosen
    return entry


def _warn_of_images(model: Any, data: _data.Prepared) -> None:
    """Warn if a module gets images whose normalisation nobody has stated."""
    images = "images" in data.entry or data.shape is not None and len(data.shape) == 3
    if data.framed or not images or not hasattr(model, "named_modules"):
        return
    known = "preprocess='none' if that is right, or"
    if hasattr(model, "pretrained_cfg"):
        known = "preprocess=timm.data.resolve_model_data_config(model), or"
    elif hasattr(model, "config") and hasattr(model, "main_input_name"):
        known = "its processor, preprocess=AutoImageProcessor.from_pretrained(NAME), or"
    warnings.warn(f"noether: {type(model).__name__} gets images with values from 0 to 1, which are not normalised: set {known} "
                  "'imagenet', the weights' transforms() or {'mean': ..., 'std': ...}", stacklevel=3)


def _warn_of_skipped(run: Run) -> None:
    """Warn of measures that were asked for and have no score at all, with the reason."""
    measured = {row["measure"] for row in run._rows()}
    skipped = {s["measure"]: s["why"] for s in run.record.get("skipped") or () if s.get("measure") not in measured}
    for name, why in skipped.items():
        warnings.warn(f"noether: {name} is skipped: {why}", stacklevel=3)


def _check_names(study: Iterable[str]) -> None:
    """Fail for a keyword that is nearly the name of a parameter of measure: it would be taken for a key of a study file."""
    parameters = [name for name in inspect.signature(measure).parameters if name != "study"]
    for key in study:
        for near in difflib.get_close_matches(key, parameters, 1, 0.8):
            raise Error(f'measure has no parameter "{key}"; did you mean "{near}"?')


def run(study: Mapping[str, Any], folder: str | os.PathLike[str] | None, quiet: bool, environment: Mapping[str, str] | None = None,
        identity: str = "", **engine: Any) -> Run:
    """Run a study, by default in a folder of the cache. engine holds flags of noether run.

    environment has variables that the study names, and identity what they stand for.

    If some parts of the study fail, warn and return the run with the others.
    """
    text = written(study)
    run_folder = Path(folder) if folder is not None else _cache.folder("runs") / hashlib.sha256((text + identity).encode()).hexdigest()[:24]
    progress = Progress(quiet)
    failed: Error | None = None
    with _cache.temporary("runs") as temporary:
        path = temporary / "study.yaml"
        path.write_text(text, "utf-8")
        try:
            call(["run", str(path), f"--out={run_folder}", "--log=json", *flags(**engine)], progress, silent=True, environment=environment)
        except Error as e:
            failed = Error(str(e).replace(str(path) + ": ", "").replace(str(path), "the study"))
        finally:
            progress.close()
    if failed is not None and (engine.get("strict") or not ((run_folder / "scores.csv").is_file() and Run(run_folder).failures)):
        raise failed
    result = Run(run_folder)
    if failed is not None:
        warnings.warn(f"noether: {failed}; see .failures", stacklevel=3)
    return result


def written(study: Mapping[str, Any]) -> str:
    """Return the text of a study."""
    try:
        return json.dumps(study, indent=1, default=_plain)
    except TypeError as e:
        raise Error(f"the study cannot be written: {e}") from None


def _framed(preprocess: Any, shape: tuple[int, ...] | None) -> Any:
    """Return a preprocessing without resizing, for samples that have their final size."""
    if preprocess is None:
        return None
    out = dict(preprocess) if isinstance(preprocess, Mapping) else {"preset": preprocess} if preprocess in _data.PRESETS else preprocess
    if not isinstance(out, dict):
        return out
    preset = out.pop("preset", None)
    if preset in _data.PRESETS:
        mean, std = _data.PRESETS[preset]
        out = {"mean": mean, "std": std, **out}
    for key in ("resize", "letterbox", "interpolation"):
        out.pop(key, None)
    if shape is not None:
        out["crop"] = list(shape[-2:])
    return out


def _transforms(transforms: Sequence[Any], served: dict[str, _server.Model]) -> list[dict[str, Any]]:
    """Return transformations with names, by default that of the kind, such as rotate. Functions are added to served."""
    out: list[dict[str, Any]] = []
    for t in transforms:
        entry, kind = _transform(t, served)
        if "name" not in entry:
            used = [o["name"] for o in out]
            entry["name"] = kind if kind not in used else f"{kind}-{len(used) + 1}"
        out.append(entry)
    return out


def _transform(t: Any, served: dict[str, _server.Model]) -> tuple[dict[str, Any], str]:
    """Return the keys of a transformation in a study, or of a step of one, and its kind. Functions are added to served."""
    entry = {"python": {"function": t}} if callable(t) else t
    if not isinstance(entry, Mapping):
        raise Error(f"a transformation is a function, or a dict such as {{'rotate': {{'values': [90]}}}}, not {t!r}")
    entry = dict(entry)
    kind = next((k for k in entry if k not in ("per", "name", "on")), "transform")
    keys = entry.get("python")
    if isinstance(keys, Mapping) and callable(keys.get("function")):
        function = _functions.Transformation(keys["function"])
        served[function.address] = function
        entry["python"] = {**keys, "function": function.address}
        kind = function.name
    if isinstance(entry.get("sequence"), Sequence):
        entry["sequence"] = [_transform(step, served)[0] if callable(step) or isinstance(step, Mapping) else step for step in entry["sequence"]]
    return entry, kind


def _measures(measures: Sequence[Any], served: dict[str, _server.Model]) -> list[Any]:
    """Return the measures of a study. Functions are added to served, and are one measure."""
    out: list[Any] = []
    functions: list[_functions.Measure] = []
    for m in measures:
        keys = m.get("python-set") if isinstance(m, Mapping) else None
        if callable(m):
            functions.append(_functions.Measure(m))
        elif isinstance(keys, Mapping) and callable(keys.get("function")):
            function = _functions.Measure(keys["function"])
            served[function.address] = function
            out.append({**m, "python-set": {**keys, "function": function.address}})
        else:
            out.append(m)
    names = [f.name for f in functions]
    for name in names:
        if not name or names.count(name) > 1:
            raise Error(f"{names.count(name)} measures are called {name!r}: give each function a name of its own")
    served.update({f.address: f for f in functions})
    return [*out, {"python": {"functions": [f.address for f in functions]}}] if functions else out


def _plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as Python's own, and paths as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} {value!r} is not a number, text, list or dict")
