"""Images and recordings in the encodings that data sets have, read as Pillow and libsndfile read them."""

import numpy
import pytest

import noether_ml

onnx = pytest.importorskip("onnx")
pytest.importorskip("PIL")
from PIL import Image, ImageCms  # noqa: E402

RANDOM = numpy.random.default_rng(5)
NOISE = RANDOM.integers(0, 256, (24, 32, 4)).astype(numpy.uint8)
Y, X = numpy.mgrid[:24, :32]
SMOOTH = numpy.stack([X * 8, Y * 10, (X + Y) * 4], -1).astype(numpy.uint8)


def read(folder, data, shape):
    """What a model that returns its input gets of each sample."""
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["same"]), onnx.helper.make_node("Flatten", ["same"], ["y"])], "m",
                                   [onnx.helper.make_tensor_value_info("x", kind, ["n", *shape])], [onnx.helper.make_tensor_value_info("y", kind, None)])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    preprocess = {"rate": 16000} if len(shape) == 1 else "none"
    return noether_ml.activations(folder / "model.onnx", data, "same", preprocess=preprocess, quiet=True)["clean"]["same"]


def test_images_are_those_of_pillow(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    smooth, grey = Image.fromarray(SMOOTH), Image.fromarray(SMOOTH[..., 0])
    palette, alpha = smooth.quantize(16), Image.fromarray(NOISE)
    turned, upside_down = Image.Exif(), Image.Exif()
    turned[0x112], upside_down[0x112] = 6, 3  # which Pillow applies to TIFF alone
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    jpeg, other = {"quality": 95}, smooth.rotate(90)
    for name, (image, keys) in {
        "alpha.png": (alpha, {}), "grey alpha.png": (Image.fromarray(NOISE[..., 2:].copy(), "LA"), {}), "palette.png": (palette, {}),
        "palette with a transparent colour.png": (palette, {"transparency": 3}), "palette with alpha.png": (palette, {"transparency": bytes(range(0, 256, 16))}),
        "a bit.png": (grey.convert("1"), {}), "grey with a transparent level.png": (grey, {"transparency": 8}),
        "with a transparent colour.png": (smooth, {"transparency": (0, 0, 0)}), "2 colours.png": (smooth.quantize(2), {"bits": 1}),
        "4 colours.png": (smooth.quantize(4), {"bits": 2}), "turned.png": (smooth, {"exif": turned}), "turned.jpg": (smooth, {"exif": turned, **jpeg}),
        "turned.webp": (smooth, {"exif": turned, "lossless": True}), "upside down.tif": (smooth, {"exif": upside_down}), "profile.png": (smooth, {"icc_profile": profile}),
        "profile.jpg": (smooth, {"icc_profile": profile, **jpeg}), "profile.webp": (smooth, {"icc_profile": profile, "lossless": True}),
        "grey.jpg": (grey, jpeg), "CMYK.jpg": (smooth.convert("CMYK"), jpeg), "progressive.jpg": (smooth, {"progressive": True, **jpeg}),
        "420.jpg": (smooth, {"subsampling": 2, **jpeg}), "422.jpg": (smooth, {"subsampling": 1, **jpeg}), "restarts.jpg": (smooth, {"restart_marker_blocks": 2, **jpeg}),
        **{f"{c}.tif": (smooth, {"compression": c}) for c in ("raw", "tiff_lzw", "tiff_deflate", "packbits", "tiff_adobe_deflate")},
        "fax.tif": (grey.convert("1"), {"compression": "group4"}), "alpha.tif": (alpha, {}), "palette.tif": (palette, {}),
        "two pages.tif": (smooth, {"save_all": True, "append_images": [other]}), "a bit.bmp": (grey.convert("1"), {}), "palette.bmp": (palette, {}),
        "grey.bmp": (grey, {}), "alpha.bmp": (alpha, {}), "palette.gif": (palette, {}), "grey.gif": (grey, {}), "interlaced.gif": (palette, {"interlace": 1}),
        **{f"disposal {d}.gif": (palette, {"save_all": True, "append_images": [other.quantize(16)], "disposal": d, "transparency": 1}) for d in range(4)},
        "lossy.webp": (smooth, {"quality": 80}), "alpha.webp": (alpha, {"lossless": True}), "lossy alpha.webp": (alpha, {"quality": 80}),
        "animated.webp": (smooth, {"save_all": True, "append_images": [other], "lossless": True}),
    }.items():
        image.save(folder / name, **keys)
    (folder / "a JPEG.png").write_bytes((folder / "420.jpg").read_bytes())
    (folder / "a PNG.jpg").write_bytes((folder / "alpha.png").read_bytes())
    (folder / "more at the end.jpg").write_bytes((folder / "420.jpg").read_bytes() + bytes(range(256)))
    names = sorted(path.name for path in folder.iterdir())
    got = read(tmp_path, {"name": "images", "images": {"folder": str(folder), "layout": "flat"}}, (3, 24, 32))
    assert len(got) == len(names) >= 50
    for name, pixels in zip(names, got):
        want = numpy.asarray(Image.open(folder / name).convert("RGB"), float)
        levels = numpy.abs(pixels.reshape(3, 24, 32).transpose(1, 2, 0) * 255 - want)
        assert levels.max() <= 2.01 and levels.mean() < 0.05, (name, levels.max(), levels.mean())


def test_recordings_are_those_of_libsndfile(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    folder = tmp_path / "sounds"
    folder.mkdir()
    samples = RANDOM.normal(0, 0.2, (4000, 2)).clip(-0.99, 0.99)
    types = {"WAV": ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"), "FLAC": ("PCM_S8", "PCM_16", "PCM_24")}
    for kind, subtypes in {**types, "WAVEX": types["WAV"]}.items():
        for subtype in subtypes:
            for channels in (1, 2):
                suffix = "flac" if kind == "FLAC" else "wav"
                soundfile.write(folder / f"{kind} {subtype} {channels}.{suffix}", samples[:, :channels], 16000, format=kind, subtype=subtype)
    whole = (folder / "WAV PCM_16 1.wav").read_bytes()
    (folder / "a list first.wav").write_bytes(whole[:12] + b"LIST\x05\0\0\0abcde\0" + whole[12:])
    (folder / "more at the end.wav").write_bytes(whole + b"id3 \x03\0\0\0abc")
    names = sorted(path.name for path in folder.iterdir())
    for name in ("WAV PCM_24 1.wav", "FLAC PCM_16 2.flac"):  # cut at each tenth, which is left out
        data = (folder / name).read_bytes()
        for k in range(1, 10):
            (folder / f"zz {k} {name}").write_bytes(data[: len(data) * k // 10])
    got = read(tmp_path, {"name": "sounds", "sound": {"folder": str(folder), "layout": "flat"}}, (4000,))
    assert len(got) == len(names) >= 30
    for name, values in zip(names, got):
        want, _ = soundfile.read(folder / name, always_2d=True)
        assert numpy.abs(values.ravel() - want.mean(1)).max() < 3e-7, name
