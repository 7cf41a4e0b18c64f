"""What sox 14.4 and rubberband 3.1 make of sounds: python3 programs.py FSDD writes programs.json and digits.json.

FSDD is the folder of recordings of the free spoken digit dataset; digits.json says which of them it is of. Nothing here uses Noether.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.io import wavfile

folder = Path(sys.argv[1])
tmp = Path(tempfile.mkdtemp())
RATES = [8000, 16000, 22050, 44100, 48000]


def through(x, rate, *command):
    """A waveform as a program leaves it: IN and OUT in the command stand for files of 32-bit floats."""
    a, b = tmp / "in.wav", tmp / "out.wav"
    wavfile.write(a, rate, x.astype(np.float32))
    subprocess.run([str({"IN": a, "OUT": b}.get(c, c)) for c in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    to, y = wavfile.read(b)
    scale = {"int16": 2**15, "int32": 2**31}.get(y.dtype.name, 1)
    return y.astype(float) / scale, to


def sox(x, rate, *effects, to=None):
    return through(x, rate, "sox", "-D", "IN", "-e", "floating-point", "-b", "32", *(["-r", str(to)] if to else []), "OUT", *effects)[0]


def chirp(rate, low, high, seconds, amplitude=0.4):
    t = np.arange(int(rate * seconds)) / rate
    return amplitude * np.sin(2 * np.pi * (low * t + (high - low) / (2 * seconds) * t * t))


def digits(x, n=7):
    return [float(f"{v:.{n}g}") for v in x]


def pitch(y, rate):
    """By the times at which the middle half crosses zero upwards."""
    i = np.arange(len(y) // 4, 3 * len(y) // 4)
    i = i[(y[i] < 0) & (y[i + 1] >= 0)]
    at = i - y[i] / (y[i + 1] - y[i])
    return (len(at) - 1) * rate / (at[-1] - at[0])


# sox, value by value. Chirps end at 0.8 of the lower Nyquist frequency, where every filter that resamples passes all.
out = {"resample": [], "filters": [], "gain": [], "tones": []}
for a in RATES:
    for b in RATES:
        if a != b:
            top = 0.4 * min(a, b)
            y = sox(chirp(a, 100, top, 0.1), a, "rate", "-v", to=b)
            out["resample"].append({"from": a, "to": b, "top": top, "every": 17, "y": digits(y[::17], 5)})
for rate in RATES:
    x = chirp(rate, 50, 0.45 * rate, 0.1)
    for kind, hz in [("low", 1000), ("high", 1000), ("low", 0.3 * rate), ("high", 0.02 * rate)]:
        q = [1 / (2 * np.cos(np.pi / 8)), 1 / (2 * np.cos(3 * np.pi / 8))]
        y = sox(x, rate, *sum([[kind + "pass", "-2", str(hz), f"{v:.9f}q"] for v in q], []))
        out["filters"].append({"kind": kind, "hz": hz, "rate": rate, "every": 13, "y": digits(y[::13], 5)})
    for db in [-20, 6]:
        out["gain"].append({"db": db, "rate": rate, "every": 41, "y": digits(sox(x, rate, "vol", f"{db}dB")[::41], 5)})

# rubberband: length and pitch of tones.
for rate in RATES:
    for hz in [220, 1000]:
        x = 0.4 * np.sin(2 * np.pi * hz * np.arange(rate // 2) / rate)
        for name, by, flags in [("time-stretch", 0.5, ["-T", "0.5"]), ("time-stretch", 1.7, ["-T", "1.7"]), ("pitch-shift", -12, ["-p", "-12"]), ("pitch-shift", 5, ["-p", "5"])]:
            y, _ = through(x, rate, "rubberband", "-3", *flags, "IN", "OUT")
            out["tones"].append({"kind": name, "by": by, "hz": hz, "rate": rate, "length": len(y), "pitch": round(pitch(y, rate), 3)})
json.dump(out, open("programs.json", "w"))


def bank(rate, n_fft, bands):
    mel, hz = (lambda f: 2595 * np.log10(1 + f / 700)), (lambda m: 700 * (10 ** (m / 2595) - 1))
    p = hz(np.linspace(mel(0), mel(rate / 2), bands + 2))
    f = np.linspace(0, rate / 2, n_fft // 2 + 1)
    return np.stack([np.maximum(0, np.minimum((f - l) / (c - l), (r - f) / (r - c))) for l, c, r in zip(p, p[1:], p[2:])])


def spectrogram(y, rate, bands=16):
    """Mel bands in dB, frames x bands: Hann windows of 32 ms, 32 ms apart."""
    n = int(0.032 * rate)
    w = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)
    frames = np.stack([y[i : i + n] * w for i in range(0, len(y) - n + 1, n)])
    return 10 * np.log10(np.abs(np.fft.rfft(frames, axis=1)) ** 2 @ bank(rate, n, bands).T + 1e-6)


# rubberband: spectrograms of spoken digits and of a chirp; how far its two engines are from each other says what a distance means.
cases = []
names = ["3_jackson_7.wav", "6_nicolas_12.wav", "8_theo_30.wav", "0_george_3.wav"]
for name in names:
    rate, x = wavfile.read(folder / name)
    x = x / 2**15
    for kind, by, flags in [("time-stretch", 0.6, ["-T", "0.6"]), ("time-stretch", 1.6, ["-T", "1.6"]), ("pitch-shift", -6, ["-p", "-6"]), ("pitch-shift", 6, ["-p", "6"])]:
        fine, _ = through(x, rate, "rubberband", "-3", *flags, "IN", "OUT")
        fast, _ = through(x, rate, "rubberband", "-2", *flags, "IN", "OUT")
        a, b = spectrogram(fine, rate), spectrogram(fast, rate)
        m = min(len(a), len(b))
        cases.append({"file": name, "kind": kind, "by": by, "length": len(fine), "engines": round(float(np.abs(a[:m] - b[:m]).mean()), 2),
                      "mean_engines": round(float(np.abs(a.mean(0) - b.mean(0)).mean()), 2), "db": [[round(float(v), 1) for v in row] for row in a]})
json.dump(cases, open("digits.json", "w"))
