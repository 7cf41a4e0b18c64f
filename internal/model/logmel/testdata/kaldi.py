"""Golden Kaldi features, by torchaudio.compliance.kaldi and kaldi-native-fbank: python3 kaldi.py writes kaldi.json.

Both are on the Python index. kaldi-native-fbank refuses filters that reach no bin, as the first of 128 do: that case has null.
"""
import json, pathlib
import kaldi_native_fbank as knf
import numpy as np
import torch
import torchaudio.compliance.kaldi as kaldi

rng = np.random.default_rng(5)


def torchaudio_features(x, s):
    options = dict(
        sample_frequency=s["rate"], dither=0.0, window_type=s["window"], frame_length=s["ms"], frame_shift=s["hop_ms"], num_mel_bins=s["mels"],
        low_freq=s["low"], high_freq=s["high"], snip_edges=s["snip"], preemphasis_coefficient=s["preemphasis"], remove_dc_offset=s["dc"],
        use_energy=s["energy"], raw_energy=s["raw"], energy_floor=s["floor"], subtract_mean=s["subtract"],
    )
    x = torch.from_numpy(x)[None]
    if s["cepstra"]:
        return kaldi.mfcc(x, num_ceps=s["cepstra"], cepstral_lifter=s["lifter"], **options).numpy()
    return kaldi.fbank(x, use_power=s["power"] == 2, **options).numpy()


def native_features(x, s):
    o = knf.MfccOptions() if s["cepstra"] else knf.FbankOptions()
    f = o.frame_opts
    f.samp_freq, f.dither, f.window_type, f.frame_length_ms, f.frame_shift_ms = s["rate"], 0, s["window"], s["ms"], s["hop_ms"]
    f.snip_edges, f.preemph_coeff, f.remove_dc_offset = s["snip"], s["preemphasis"], s["dc"]
    o.mel_opts.num_bins, o.mel_opts.low_freq, o.mel_opts.high_freq = s["mels"], s["low"], s["high"]
    o.use_energy, o.raw_energy, o.energy_floor = s["energy"], s["raw"], s["floor"]
    if s["cepstra"]:
        o.num_ceps, o.cepstral_lifter = s["cepstra"], s["lifter"]
        c = knf.OnlineMfcc(o)
    else:
        o.use_power = s["power"] == 2
        c = knf.OnlineFbank(o)
    c.accept_waveform(s["rate"], x.tolist())
    c.input_finished()
    y = np.stack([c.get_frame(i) for i in range(c.num_frames_ready)])
    return y - y.mean(axis=0) if s["subtract"] else y


default = dict(
    rate=16000, window="povey", ms=25.0, hop_ms=10.0, mels=23, low=20.0, high=0.0, snip=True, preemphasis=0.97, dc=True,
    energy=False, raw=True, floor=1.0, subtract=False, power=2, cepstra=0, lifter=22.0, scale=1.0,
)
cases = []
for changes in [
    {},
    dict(mels=128, window="hanning"),  # of the Audio Spectrogram Transformer
    dict(mels=80, scale=32768.0, high=-400.0),
    dict(rate=8000, mels=40, window="hamming", snip=False, energy=True, floor=0.0, scale=32768.0),
    dict(rate=22050, mels=30, window="blackman", snip=False, preemphasis=0.0, dc=False, power=1, low=60.0, high=9000.0, subtract=True),
    dict(rate=8000, window="rectangular", ms=20.0, hop_ms=12.5, energy=True, raw=False),
    dict(cepstra=13),
    dict(rate=8000, cepstra=20, mels=30, lifter=0.0, energy=True, scale=32768.0, snip=False, low=20.0, high=3700.0),
    dict(cepstra=24, mels=40, energy=True, raw=False, subtract=True, lifter=22.0),
    dict(rate=8000, ms=20.0, hop_ms=30.0, snip=False, window="hanning"),  # frames further apart than long
]:
    s = default | changes
    n = s["rate"] // 10 + 37
    t = np.arange(n) / s["rate"]
    x = 0.1 + 0.3 * np.sin(2 * np.pi * 500 * t * (1 + 3 * t)) + 0.02 * rng.standard_normal(n)
    x = np.float32(np.round(x, 4))
    ours = np.float32(x * np.float32(s["scale"]))
    y, native = torchaudio_features(ours, s), None if s["mels"] == 128 else native_features(ours, s)
    print(changes, y.shape, "largest difference of the two", native is not None and np.abs(y - native).max())
    round5 = lambda y: [[float(f"{v:.7g}") for v in row] for row in y.T]
    cases.append({"settings": s, "x": [round(float(v), 4) for v in x], "torchaudio": round5(y), "native": None if native is None else round5(native)})
path = pathlib.Path(__file__).with_name("kaldi.json")
path.write_text(json.dumps(cases) + "\n")
