"""The programs that export the models of the papers, with networks of random weights in place of the published ones."""

import importlib.util
import pathlib

import pytest

import noether_ml

PAPERS = pathlib.Path(__file__).parents[2] / "papers"


def program(*path):
    spec = importlib.util.spec_from_file_location(path[-1].removesuffix(".py"), PAPERS.joinpath(*path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def output(file):
    """The shape of the output, which a study selects by the word output."""
    found = noether_ml.inspect(str(file))
    assert len(found["outputs"]) == 1
    return next(layer for layer in found["layers"] if layer["name"] == found["outputs"][0]["name"])["shape"]


# The representation of an encoder of images is its pooled features; the classifier is left out.
def test_encoders_of_images(monkeypatch, tmp_path):
    timm = pytest.importorskip("timm")
    torch = pytest.importorskip("torch")
    models = program("effective-invariance", "models.py")
    create = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda name, pretrained, **options: create(name, pretrained=False, **options))
    models.export("resnet18.tv_in1k", True, None, tmp_path / "encoder.onnx")
    models.export("resnet18.tv_in1k", False, None, tmp_path / "classifier.onnx")
    assert output(tmp_path / "encoder.onnx") == [512]
    assert output(tmp_path / "classifier.onnx") == [1000]
    torch.save(create("resnet18").state_dict(), tmp_path / "weights.pth")
    models.export("own", True, ["resnet18", str(tmp_path / "weights.pth"), "unit"], tmp_path / "own.onnx")
    assert output(tmp_path / "own.onnx") == [512]
    listed = [(name, encoder) for _, name, encoder, _ in models.names(PAPERS / "synesis" / "models.txt")]
    # CLIP's output is a projection, so it has no classifier to leave out.
    assert [name for name, encoder in listed if not encoder] == ["vit_base_patch32_clip_224.openai"]


def test_models_of_speech(monkeypatch, tmp_path):
    transformers = pytest.importorskip("transformers")
    speech = program("synesis", "speech_models.py")
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, conv_dim=[16] * 7)
    configs = {"wav2vec2": transformers.Wav2Vec2Config, "hubert": transformers.HubertConfig, "unispeech": transformers.UniSpeechConfig}
    for name, config in configs.items():
        module = transformers.AutoModel.from_config(config(**small, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2))
        monkeypatch.setattr(transformers.AutoModel, "from_pretrained", lambda repository, module=module: module)
        module, _ = speech.wave(name)
        speech.export(module, (4000,), tmp_path / f"{name}.onnx")
        assert output(tmp_path / f"{name}.onnx") == [12, 32]  # frames x values
    config = transformers.WhisperConfig(d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
                                        encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                        decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
    monkeypatch.setattr(transformers.WhisperModel, "from_pretrained", lambda repository: transformers.WhisperModel(config))
    speech.export(*speech.whisper(), tmp_path / "whisper.onnx")
    assert output(tmp_path / "whisper.onnx") == [1500, 32]


# The published program adds noise to the statistics over time, which makes scores differ from run to run.
def test_x_vectors_have_no_noise(tmp_path):
    torch = pytest.importorskip("torch")
    speech = program("synesis", "speech_models.py")

    class Pooling(torch.nn.Module):
        eps = 1e-5

        def _get_gauss_noise(self, shape, device="cpu"):
            return self.eps * (9 - 8 * torch.rand(shape, device=device))

        def forward(self, x):
            mean = x.mean(dim=1)
            return (mean + self._get_gauss_noise(mean.size(), device=mean.device)).unsqueeze(1)

    module = speech.quiet(torch.nn.Sequential(torch.nn.Linear(24, 8), Pooling(), torch.nn.Linear(8, 16)).eval())
    x = torch.zeros(2, 101, 24)
    assert torch.equal(module(x), module(x))
    speech.export(module, (101, 24), tmp_path / "xvector.onnx")
    assert output(tmp_path / "xvector.onnx") == [16]


def test_bands_are_side_by_side():
    torch = pytest.importorskip("torch")
    speech = program("synesis", "speech_models.py")

    class Backbone:
        def forward_encoder(self, x):
            tokens = torch.arange(5 * 3).repeat_interleave(2).reshape(1, 15, 2)  # 5 bands x 3 steps of 2 values
            return torch.cat([torch.full((1, 1, 2), -1), tokens], dim=1)

    assert speech.bands(Backbone(), None)[0].tolist() == [[b * 3 + t for b in range(5) for _ in range(2)] for t in range(3)]
