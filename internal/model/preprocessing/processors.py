"""Writes processors.json, the image and video processors of the transformers library.

Run it with the current torch, torchvision and transformers:

    python processors.py > processors.json

For each class it writes the defaults of its keys. Of the classes in STANDARD, whose steps this
package applies, it also writes the switches that the class ignores, and whether it pads an image
whose size is fixed: both are found by turning a switch on and off. python/tests/test_processors.py
holds the pixels to those of the library.
"""

import enum
import importlib
import json
import pathlib
import warnings

import numpy
import transformers
from PIL import Image

STANDARD = """Beit Bit Blip CLIP Chameleon ChineseCLIP ConditionalDetr ConvNext DINOv3ViT DPT
DeformableDetr DeiT Detr EfficientNet Flava GotOcr2 GroundingDino LayoutLMv3 Levit Llava MobileNetV1
MobileNetV2 MobileViT OwlViT PPChart2Table PoolFormer PromptDepthAnything Pvt RTDetr Sam2
Sam3 Sapiens2 SegGpt Segformer Siglip SuperPoint Tipsv2 Tipsv2Dpt ViT VideoMAE Vivit Yolos""".split()
STANDARD_VIDEO = "Timesformer VJEPA2 VideoLlava VideoMAE Vivit".split()
SWITCHES = ["do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_flip_channel_order"]


def classes(suffix, folder_pattern):
    """The classes of the library whose names end in suffix, by their names without it."""
    found = {}
    models = pathlib.Path(transformers.__file__).parent / "models"
    for file in sorted(models.glob(folder_pattern)):
        module = importlib.import_module(f"transformers.models.{file.parent.name}.{file.stem}")
        for name, value in vars(module).items():
            if name.endswith(suffix) and name != "Auto" + suffix and isinstance(value, type) and value.__module__ == module.__name__:
                found[name[: -len(suffix)]] = value
    return found


def plain(value):
    """A default as JSON, or None for one that a config does not hold."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if v is not None} if len(value) < 8 else None
    if isinstance(value, (list, tuple)):
        return list(value) if len(value) < 8 and all(isinstance(v, (int, float)) for v in value) else None
    return value if isinstance(value, (bool, int, float, str)) else None


def defaults(cls):
    try:
        values = cls().to_dict()
    except (TypeError, ValueError):  # its arguments have no defaults
        return {}
    values = {k: plain(v) for k, v in values.items() if not k.endswith("_processor_type")}
    square = getattr(cls, "default_to_square", not hasattr(cls, "valid_kwargs") and "Vivit" not in cls.__name__)
    values["default_to_square"] = bool(square)
    return {k: v for k, v in sorted(values.items()) if v is not None and k != "data_format"}


def pixels(cls, video, **keys):
    image = numpy.random.default_rng(0).integers(0, 256, (45, 60, 3), dtype=numpy.uint8)
    size = {"size": {"height": 40, "width": 40}}
    if cls.__name__.startswith("ConvNext"):
        size = {"size": {"shortest_edge": 40}}
    config = dict(size, crop_size={"height": 30, "width": 36}, image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.4])
    processor = cls(**{**config, "do_resize": True, "do_center_crop": False, "apply_ocr": False, **keys})
    out = processor(numpy.stack([image] * 2), return_tensors="np") if video else processor(Image.fromarray(image), return_tensors="np")
    return next(v for k, v in out.items() if k.startswith("pixel_values"))


def differs(cls, video, switch):
    try:
        off, on = pixels(cls, video, **{switch: False}), pixels(cls, video, **{switch: True})
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError):
        return True  # it reads the switch
    return off.shape != on.shape or not numpy.array_equal(off, on)


def describe(cls, standard, video):
    out = {"defaults": defaults(cls)}
    if standard:
        out["standard"] = True
        out["ignores"] = [s for s in SWITCHES if not differs(cls, video, s)]
        if differs(cls, video, "do_pad"):
            out["pads"] = True
    return out


def main():
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    image = classes("ImageProcessor", "*/image_processing_*.py")
    video = classes("VideoProcessor", "*/video_processing_*.py")
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES as names

    types = {kind: (c.get("torchvision") or c["pil"]).removesuffix("ImageProcessor") for kind, c in names.items()}
    table = {
        "transformers": transformers.__version__,
        "image": {n: describe(c, n in STANDARD, False) for n, c in sorted(image.items())},
        "video": {n: describe(c, n in STANDARD_VIDEO, True) for n, c in sorted(video.items())},
        "types": {k: v for k, v in sorted(types.items()) if v in image},
    }
    lines = [f'"transformers": {json.dumps(table["transformers"])}']
    for part in ("image", "video"):
        entries = ",\n".join(f"  {json.dumps(n)}: {json.dumps(c)}" for n, c in table[part].items())
        lines.append(f'"{part}": {{\n{entries}\n}}')
    lines.append(f'"types": {json.dumps(table["types"], indent=1)}')
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
