"""Golden values for package sound, from numpy and scipy: python3 golden.py writes resample.json and mel.json.

resample: five tones at known amplitudes and a sweep, resampled by scipy.signal.resample_poly with a filter of our
specification, designed apart (scipy.signal.firwin with a Kaiser window).
mel: the formulas of librosa's filters.mel (htk and slaney) and torchaudio's melscale_fbanks, written out in numpy.
"""
import json
import numpy as np
from scipy import signal

rng = np.random.default_rng(1)


def resampled(x, up, down):
    crossings = 64
    slow = max(up, down)
    half = crossings * slow
    width = (80 - 7.95) / 14.36 / crossings
    h = signal.firwin(2 * half + 1, 1 - width / 2, window=("kaiser", 0.1102 * (80 - 8.7)), fs=2 * slow, scale=False) * up
    return signal.resample_poly(x, up, down, window=h / up)


cases = []
for old, new in [(8000, 16000), (16000, 8000), (44100, 16000), (22050, 16000), (48000, 44100), (8000, 22050)]:
    x = rng.standard_normal(400).astype(np.float32)
    g = np.gcd(old, new)
    y = resampled(x.astype(float), new // g, old // g)
    cases.append({"from": old, "to": new, "x": [float(f"{v:.7g}") for v in x], "y": [float(f"{v:.7g}") for v in y]})
json.dump(cases, open("resample.json", "w"))


def hz_to_mel(f, htk):
    f = np.asarray(f, float)
    if htk:
        return 2595 * np.log10(1 + f / 700)
    return np.where(f < 1000, f * 3 / 200, 15 + np.log(np.maximum(f, 1e-9) / 1000) * 27 / np.log(6.4))


def mel_to_hz(m, htk):
    m = np.asarray(m, float)
    if htk:
        return 700 * (10 ** (m / 2595) - 1)
    return np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * np.log(6.4) / 27))


def mel_bank(rate, n_fft, mels, low, high, htk, slaney_norm):
    freqs = np.linspace(0, rate / 2, n_fft // 2 + 1)
    points = mel_to_hz(np.linspace(hz_to_mel(low, htk), hz_to_mel(high, htk), mels + 2), htk)
    bank = np.zeros((mels, len(freqs)))
    for i in range(mels):
        l, c, r = points[i : i + 3]
        bank[i] = np.maximum(0, np.minimum((freqs - l) / (c - l), (r - freqs) / (r - c)))
        if slaney_norm:
            bank[i] *= 2 / (r - l)
    return bank


banks = []
for rate, n_fft, mels, low, high, htk, norm in [(8000, 256, 20, 0, 4000, True, False), (16000, 400, 12, 20, 7600, False, True)]:
    banks.append({"rate": rate, "fft": n_fft, "mels": mels, "low": low, "high": high, "htk": htk, "norm": norm,
                  "bank": [[float(f"{v:.6g}") for v in row] for row in mel_bank(rate, n_fft, mels, low, high, htk, norm)]})
json.dump(banks, open("mel.json", "w"))

# Butterworth filters of order 4, by scipy.
x = np.round(rng.standard_normal(200), 5)
filters = []
for kind, hz, rate in [("low", 500, 8000), ("high", 300, 8000), ("low", 3000, 16000), ("high", 40, 44100)]:
    y = signal.sosfilt(signal.butter(4, hz, kind, fs=rate, output="sos"), x)
    filters.append({"kind": kind, "hz": hz, "rate": rate, "x": list(x), "y": [float(f"{v:.7g}") for v in y]})
json.dump(filters, open("filters.json", "w"))
