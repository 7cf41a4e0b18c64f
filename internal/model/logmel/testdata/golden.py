"""Golden log-mel spectrograms from numpy's FFT in float64: python3 golden.py writes golden.json.

Framing, padding and window are those of torch.stft(center=True); the mel bank is written out again here. Two cases are checked
against torch.stft itself while the file is made.
"""
import json
import numpy as np
import torch

rng = np.random.default_rng(3)


def bank(rate, n_fft, mels, low, high, scale, area):
    if scale == "htk":
        mel, hz = (lambda f: 2595 * np.log10(1 + np.asarray(f, float) / 700)), (lambda m: 700 * (10 ** (np.asarray(m) / 2595) - 1))
    else:
        step = np.log(6.4) / 27
        mel = lambda f: f * 3 / 200 if f < 1000 else 15 + np.log(f / 1000) / step
        hz = lambda m: np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * step))
    p = hz(np.linspace(mel(low), mel(high), mels + 2))
    f = np.linspace(0, rate / 2, n_fft // 2 + 1)
    out = np.stack([np.maximum(0, np.minimum((f - l) / (c - l), (r - f) / (r - c))) * (2 / (r - l) if area else 1) for l, c, r in zip(p, p[1:], p[2:])])
    return out


def logmel(x, rate, n_fft, window, hop, mels, low, high, scale, area, power, pad, log, offset, clamp, span, mean, std, drop=False):
    half = n_fft // 2
    padded = {"reflect": lambda: np.pad(x, half, mode="reflect"), "zeros": lambda: np.pad(x, half), "none": lambda: x}[pad]()
    w = np.zeros(n_fft)
    lead = (n_fft - window) // 2
    w[lead : lead + window] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    frames = np.stack([padded[i : i + n_fft] * w for i in range(0, len(padded) - n_fft + 1, hop)])
    spectrum = np.abs(np.fft.rfft(frames, axis=1))
    if pad == "reflect":
        t = torch.stft(torch.tensor(x), n_fft, hop, window, torch.hann_window(window, dtype=torch.float64), center=True, pad_mode="reflect", return_complex=True)
        assert np.allclose(t.abs().numpy().T, spectrum, atol=1e-9)
    s = bank(rate, n_fft, mels, low, high, scale, area) @ (spectrum**power).T
    if drop:
        s = s[:, :-1]
    y = np.log(np.maximum(s, offset) if clamp else s + offset) * {"natural": 1, "log10": 1 / np.log(10), "db": 10 / np.log(10)}[log]
    if span:
        y = np.maximum(y, y.max() - span)
    return (y - mean) / std


cases = []
for s in [
    dict(rate=8000, n_fft=200, window=200, hop=80, mels=16, low=0, high=4000, scale="htk", area=False, power=2, pad="reflect", log="natural", offset=1e-6, clamp=False, span=0, mean=0, std=1),
    dict(rate=16000, n_fft=400, window=400, hop=160, mels=20, low=20, high=7600, scale="slaney", area=True, power=2, pad="reflect", log="log10", offset=1e-10, clamp=True, span=8, mean=-4, std=4),
    dict(rate=16000, n_fft=512, window=400, hop=200, mels=12, low=0, high=8000, scale="htk", area=False, power=1, pad="zeros", log="db", offset=1e-5, clamp=True, span=0, mean=1, std=2),
    dict(rate=8000, n_fft=256, window=256, hop=100, mels=10, low=100, high=4000, scale="slaney", area=True, power=2, pad="none", log="natural", offset=1e-6, clamp=False, span=0, mean=0, std=1),
    # Whisper's.
    dict(rate=16000, n_fft=400, window=400, hop=160, mels=80, low=0, high=8000, scale="slaney", area=True, power=2, pad="reflect", log="log10", offset=1e-10, clamp=True, span=8, mean=-4, std=4, drop=True),
]:
    n = s["rate"] // 8
    t = np.arange(n) / s["rate"]
    x = 0.3 * np.sin(2 * np.pi * 500 * t * (1 + 2 * t)) + 0.02 * rng.standard_normal(n)
    x = np.float32(np.round(x, 5)).astype(float)
    cases.append({"settings": s, "x": [round(float(v), 5) for v in x], "y": [[float(f"{v:.6g}") for v in row] for row in logmel(x, **s)]})
json.dump(cases, open("golden.json", "w"))
