#!/usr/bin/env python3
"""Exports models of timm as ONNX files with their preprocessing, for papers at their own scale.

  python3 papers/effective-invariance/models.py papers/effective-invariance/models.txt data/zoo
  python3 papers/effective-invariance/models.py papers/synesis/models.txt data/zoo

A line of the list has a group, which is the folder of the file, and a name or a pattern of names of timm; or a group, a
name, an architecture of timm, its file of weights (hf://ORG/NAME/FILE of the Hugging Face hub, https://, or here), and
unit for images of values in [0, 1], or imagenet for those normalised by ImageNet's mean and deviation. The word encoder
at its end leaves out the classifier. Models that are exported already are left out. --list prints the names without
downloading them. Needs noether-ml, timm and onnx.
"""
import argparse, json, pathlib, sys

PREPROCESS = {"unit": {"resize": 256, "crop": 224}, "imagenet": "imagenet"}


def names(file):
    """Yields group, name, whether the classifier is left out, and architecture, file of weights and values, if they are stated."""
    import timm

    for line in pathlib.Path(file).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        group, pattern, *weights = line.split()
        encoder = weights[-1:] == ["encoder"]
        if encoder:
            weights.pop()
        if weights:
            yield group, pattern, encoder, weights
            continue
        found = timm.list_models(pattern, pretrained=True)
        if not found:
            sys.exit(f"{file}: timm has no pretrained model {pattern}")
        for name in found:
            yield group, name, encoder, None


def load(architecture, weights, encoder=False):
    """Returns an architecture of timm with the weights of a file, which may be the entry state_dict of a checkpoint. The
    result has no classifier if the file has none, or for an encoder."""
    import timm, torch

    if weights.startswith("hf://"):
        from huggingface_hub import hf_hub_download

        owner, repository, file = weights.removeprefix("hf://").split("/", 2)
        weights = hf_hub_download(f"{owner}/{repository}", file)
    elif weights.startswith("https://"):
        target = pathlib.Path(torch.hub.get_dir(), pathlib.Path(weights).name)
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(weights, target)
        weights = target
    state = torch.load(weights, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state)
    if encoder:
        state = {key: value for key, value in state.items() if not key.startswith(("fc.", "head."))}
    classes = next((len(state[key]) for key in ("fc.weight", "head.weight") if key in state), 0)
    module = timm.create_model(architecture, pretrained=False, num_classes=classes)
    module.load_state_dict(state)
    return module.eval()


def prepare(name, encoder, weights):
    """Exports a model of timm, or of weights."""
    from noether_ml import _models, _preprocess

    if weights:
        return _models.prepare(load(*weights[:2], encoder), PREPROCESS[weights[2]], (3, 224, 224))
    if not encoder:
        return _models.prepare(f"timm:{name}")
    import timm

    module = timm.create_model(name, pretrained=True, num_classes=0)
    return _models.prepare(module, _preprocess.resolve(timm.data.resolve_data_config({}, model=module)))


def export(name, encoder, weights, file):
    """Writes a model of timm, or of weights, with its preprocessing as metadata."""
    import onnx

    prepared = prepare(name, encoder, weights)
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
    for group, name, encoder, weights in names(args.list):
        file = args.folder / group / f"{name}.onnx"
        if args.only_names:
            print(group, name)
        elif not file.exists():
            export(name, encoder, weights, file)
            print(file)


if __name__ == "__main__":
    main()
