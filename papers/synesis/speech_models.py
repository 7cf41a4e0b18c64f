#!/usr/bin/env python3
"""Exports the speech models of Plachouras et al. 2025, table I, as ONNX files, for synesis-rate.yaml at the paper's scale.

  python3 papers/synesis/speech_models.py data/zoo
  python3 papers/synesis/speech_models.py data/zoo --m2d FOLDER

The only output of each is its representation, of which the study takes the mean over time. Models that are exported
already are left out. MDuo (Masked Modeling Duo) is published as a program: FOLDER holds its portable_m2d.py and a folder
of weights, checkpoint.pth in m2d_vit_base-80x608p16x16-*. Of UniSpeech the published encoder is a large one, of 1,024
values; table I has 768. Needs noether-ml, transformers, timm and onnx, and speechbrain for XVector.
"""
import argparse, pathlib, shutil, sys

import torch

HUB = {"wav2vec2": "facebook/wav2vec2-base", "hubert": "facebook/hubert-base-ls960", "unispeech": "microsoft/unispeech-large-1500h-cv"}
WHISPER, CLAP, XVECTOR = "openai/whisper-small", "laion/clap-htsat-unfused", "speechbrain/spkrec-xvect-voxceleb"
AUDIOMAE = "hf_hub:gaunernst/vit_base_patch16_1024_128.audiomae_as2m"


class Representation(torch.nn.Module):
    """A model, whose output is what take makes of the model and its input."""

    def __init__(self, model, take):
        super().__init__()
        self.model, self.take = model, take

    def forward(self, x):
        return self.take(self.model, x)


def hidden(model, x):
    return model(x).last_hidden_state  # samples x frames x values


def wave(name):
    from transformers import AutoModel

    return Representation(AutoModel.from_pretrained(HUB[name]), hidden), (160000,)


def whisper():
    from transformers import WhisperModel

    return Representation(WhisperModel.from_pretrained(WHISPER).encoder, hidden), (80, 3000)


def clap():
    from transformers import ClapModel

    def embedding(model, x):
        found = model.get_audio_features(input_features=x)
        return getattr(found, "pooler_output", found)  # transformers 5 returns more than the embedding

    return Representation(ClapModel.from_pretrained(CLAP), embedding), (1, 1001, 64)


def audiomae():
    import timm

    return timm.create_model(AUDIOMAE, pretrained=True, num_classes=0), (1, 1024, 128)


def xvector():
    from speechbrain.inference.classifiers import EncoderClassifier

    return quiet(EncoderClassifier.from_hparams(source=XVECTOR).mods.embedding_model), (101, 24)


def quiet(model):
    """Returns SpeechBrain's x-vectors with the mean of the noise that it adds to statistics, instead of the noise."""
    for module in model.modules():
        if hasattr(module, "_get_gauss_noise"):
            module._get_gauss_noise = lambda shape, device=None, eps=module.eps: 5 * eps
    return Representation(model, lambda model, x: model(x).squeeze(1))


def mduo(folder):
    sys.path.insert(0, str(folder))
    from portable_m2d import PortableM2D

    weights = next(folder.glob("m2d_vit_base-80x608p16x16*/*.pth"), None)
    if weights is None:
        sys.exit(f"{folder} has no weights m2d_vit_base-80x608p16x16*/*.pth")
    return Representation(PortableM2D(weights).backbone, bands), (1, 80, 608)


def bands(model, x):
    """The five bands of frequency of each step of time, side by side: samples x 38 x 3,840."""
    tokens = model.forward_encoder(x)[:, 1:]  # without the class token
    return tokens.unflatten(1, (5, -1)).transpose(1, 2).flatten(2)


def export(module, shape, file):
    """Writes a module; shape is that of its input for one sample."""
    from noether_ml import _models

    prepared = _models.prepare(module.eval(), input=shape)
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(prepared.path, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="data/zoo", type=pathlib.Path)
    parser.add_argument("--m2d", type=pathlib.Path, help="folder of portable_m2d.py and its weights")
    args = parser.parse_args()
    models = {name: lambda name=name: wave(name) for name in HUB} | {"whisper": whisper, "audiomae": audiomae, "xvector": xvector}
    if args.m2d:
        models["mduo"] = lambda: mduo(args.m2d)
    folder = args.folder / "synesis-speech"
    files = {name: folder / f"{name}.onnx" for name in models}
    models["clap"], files["clap"] = clap, folder / "clap" / "model.onnx"
    for name, load in models.items():
        if not files[name].exists():
            export(*load(), files[name])
            print(files[name])
    config = folder / "clap" / "preprocessor_config.json"
    if not config.exists():
        from huggingface_hub import hf_hub_download

        shutil.copyfile(hf_hub_download(CLAP, config.name), config)


if __name__ == "__main__":
    main()
