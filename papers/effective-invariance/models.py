#!/usr/bin/env python3
"""Exports models of timm as ONNX files with their preprocessing, for papers at their own scale.

  python3 papers/effective-invariance/models.py papers/effective-invariance/models.txt data/zoo
  python3 papers/effective-invariance/models.py papers/synesis/models.txt data/zoo

A line of the list has a group, which is the folder of the file, and a name or a pattern of names of timm. Models that
are exported already are left out. --list prints the names without downloading them. Needs noether-ml, timm and onnx.
"""
import argparse, json, pathlib, sys


def names(file):
    """Yields group and name of each model of a list."""
    import timm

    for line in pathlib.Path(file).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        group, pattern = line.split()
        found = timm.list_models(pattern, pretrained=True)
        if not found:
            sys.exit(f"{file}: timm has no pretrained model {pattern}")
        for name in found:
            yield group, name


def export(name, file):
    """Writes a model of timm with its preprocessing as metadata."""
    import onnx
    from noether_ml import _models

    prepared = _models.prepare(f"timm:{name}")
    model = onnx.load(prepared.path)
    onnx.helper.set_model_props(model, {**{p.key: p.value for p in model.metadata_props}, "noether.preprocess": json.dumps(prepared.preprocess)})
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("folder", nargs="?", default="data/zoo", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", dest="only_names")
    args = parser.parse_args()
    for group, name in names(args.list):
        file = args.folder / group / f"{name}.onnx"
        if args.only_names:
            print(group, name)
        elif not file.exists():
            export(name, file)
            print(file)


if __name__ == "__main__":
    main()
