"""Mean hue, saturation and value of 8-bit pictures by OpenCV's conventions, in numpy: python3 hsv.py writes hsv.json.

OpenCV's documentation of RGB to HSV for 8-bit images: V = max(R, G, B); S = 255 (V - min) / V, 0 where V is 0; H = 60 (G - B) / (V - min)
where V is R, 120 + 60 (B - R) / (V - min) where it is G, 240 + 60 (R - G) / (V - min) where it is B, plus 360 where it is negative, then
halved to fit 8 bits; values are rounded to the nearest.
"""
import json
import numpy as np

rng = np.random.default_rng(11)


def means(p):
    r, g, b = p.astype(np.int64)
    v, low = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
    d = v - low
    safe = np.where(d == 0, 1, d)
    h = np.select([v == r, v == g], [60 * (g - b) / safe, 120 + 60 * (b - r) / safe], 240 + 60 * (r - g) / safe)
    h = np.where(d == 0, 0, h) / 2
    h = np.sign(h) * np.floor(np.abs(h) + 0.5)
    h = np.where(h < 0, h + 180, h)
    s = np.where(v == 0, 0, np.floor(255 * d / np.maximum(v, 1) + 0.5))
    return [float(h.mean()), float(s.mean()), float(v.mean())]


cases = []
for high in [256, 4]:
    p = rng.integers(0, high, (3, 12, 15)) * (255 // (high - 1))
    cases.append(p)
cases.append(np.zeros((3, 2, 2), int))
cases.append(np.array([255, 0, 0] * 1).reshape(3, 1, 1))
cases.append(np.array([10, 10, 200]).reshape(3, 1, 1))
json.dump([{"h": p.shape[1], "w": p.shape[2], "pixels": [int(v) for v in p.ravel()], "means": means(p)} for p in cases], open("hsv.json", "w"))
