"""Golden spectrograms by SpeechBrain and nnAudio: python3 speech.py writes speech.json.

SpeechBrain's are the features of its x-vectors (24 bands, less their mean over the recording), and 40 bands at 8 kHz. nnAudio's, with
the logarithm and the normalisation of Masked Modeling Duo, are the features of that model.
"""
import json, pathlib
import numpy as np
import torch
from nnAudio.features import MelSpectrogram
from speechbrain.lobes.features import Fbank
from speechbrain.processing.features import InputNormalization

rng = np.random.default_rng(7)


def waveform(rate):
    n = rate // 10 + 37
    t = np.arange(n) / rate
    x = 0.1 + 0.3 * np.sin(2 * np.pi * 500 * t * (1 + 3 * t)) + 0.02 * rng.standard_normal(n)
    x[: n // 3] *= 1e-5  # silence, which the range of 80 dB raises
    return np.float32(np.round(x, 7))


def speechbrain(x, rate, bands):
    features = Fbank(sample_rate=rate, n_fft=rate // 40, n_mels=bands, f_max=rate // 2)(torch.from_numpy(x)[None])
    return InputNormalization(norm_type="sentence", std_norm=False)(features, torch.ones(1))[0].T.numpy()


def duo(x):
    mel = MelSpectrogram(sr=16000, n_fft=400, win_length=400, hop_length=160, n_mels=80, fmin=50, fmax=8000, center=True, power=2, verbose=False)
    return ((mel(torch.from_numpy(x)[None]) + torch.finfo().eps).log()[0].numpy() + 7.1) / 4.2


cases = []
for name, rate, bands in [("speechbrain", 16000, 24), ("speechbrain", 8000, 40), ("duo", 16000, 80)]:
    x = waveform(rate)
    y = duo(x) if name == "duo" else speechbrain(x, rate, bands)
    cases.append({"name": name, "rate": rate, "bands": bands, "x": [float(f"{v:.7g}") for v in x], "y": [[float(f"{v:.7g}") for v in row] for row in y]})
pathlib.Path(__file__).with_name("speech.json").write_text(json.dumps(cases) + "\n")
