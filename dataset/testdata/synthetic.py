"""Golden values for the synthetic sources, made apart from the Go code: python3 synthetic.py > synthetic.json

A figure's edge is a dense row of points here, its inside is told by the winding number, and its value is
clip(1/2 - d, 0, 1) with d the signed distance in pixels to the nearest of the points. A grating is the
paper's formula on a meshgrid.
"""
import json
import sys

import numpy as np

GOLDEN = (1 + 5**0.5) / 2


def polygon(*corners):
    return np.array(corners, float)


def rectangle(x0, y0, x1, y1):
    return polygon((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def star():
    outer = np.exp(1j * (np.pi / 2 + 2 * np.pi * np.arange(5) / 5))
    inner = -np.roll(outer, -3) / GOLDEN**2  # the small pentagon of a pentagram points down
    ring = np.stack([outer, inner], 1).ravel()
    return np.stack([ring.real, ring.imag], 1)


def contours(kind):
    """The edges, (x right, y up), of a figure whose circumscribed circle has radius 1."""
    if kind == "bar":  # four times as long as high
        b = 1 / np.hypot(4, 1)
        return [rectangle(-4 * b, -b, 4 * b, b)]
    if kind == "cross":  # five equal squares
        a = 1 / np.hypot(3, 1)
        return [polygon((-a, 3 * a), (-a, a), (-3 * a, a), (-3 * a, -a), (-a, -a), (-a, -3 * a), (a, -3 * a), (a, -a), (3 * a, -a), (3 * a, a), (a, a), (a, 3 * a))]
    if kind == "square":
        s = 0.5**0.5
        return [rectangle(-s, -s, s, s)]
    if kind == "stripes":  # a square in five bands, every other one filled
        s = 0.5**0.5
        return [rectangle(-s, -s + k * 2 * s / 5, s, -s + (k + 1) * 2 * s / 5) for k in (0, 2, 4)]
    if kind == "star":
        return [star()]
    if kind == "triangle":
        return [polygon((0, 1), (-(3**0.5) / 2, -0.5), (3**0.5 / 2, -0.5))]
    turn = 2 * np.pi * np.arange(2000) / 2000
    circle = np.stack([np.cos(turn), np.sin(turn)], 1)
    return [circle] if kind == "disc" else [circle, 0.6 * circle[::-1]]


def figure(kind, size, scale, rotation, x, y):
    i, j = np.mgrid[:size, :size]
    pixels = np.stack([j + 0.5 - size * (0.5 + x), -(i + 0.5 - size * (0.5 + y))], -1)
    a = np.deg2rad(rotation)
    turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    winding, nearest = np.zeros((size, size)), np.full((size, size), np.inf)
    for c in contours(kind):
        c = c @ turn.T * (size * scale / 2)
        to = c - pixels[:, :, None]
        z = to[..., 0] + 1j * to[..., 1]
        winding += np.angle(np.roll(z, -1, -1) / z).sum(-1) / (2 * np.pi)
        t = np.linspace(0, 1, max(3, 60000 // len(c)))[:, None, None]
        edge = (c * (1 - t) + np.roll(c, -1, 0) * t).reshape(-1, 2)
        for row in range(size):
            d = np.hypot(*(edge[:, None] - pixels[row]).transpose(2, 0, 1)).min(0)
            nearest[row] = np.minimum(nearest[row], d)
    return np.clip(0.5 - np.where(np.abs(winding) > 0.5, -1, 1) * nearest, 0, 1)


def grating(size, omega, theta, phi):
    at = (np.arange(size) + 0.5) / size * np.pi - np.pi / 2
    x, y = np.meshgrid(at, -at)
    theta = np.deg2rad(theta)
    return 0.5 + 0.5 * np.sin(omega * (x * np.cos(theta) + y * np.sin(theta) - phi))


def main():
    figures = []
    for k, kind in enumerate(["bar", "cross", "disc", "ring", "square", "star", "stripes", "triangle"]):
        f = dict(kind=kind, scale=0.7 - 0.03 * k, rotation=17.0 + 40 * k, x=0.05 - 0.02 * k, y=0.01 * k)
        values = figure(kind, 16, f["scale"], f["rotation"], f["x"], f["y"])
        figures.append(dict(f, values=np.round(values, 4).ravel().tolist()))
    gratings = []
    for omega, theta, phi in [(2, 0, 0), (4, 27, 0.3), (6, 90, 1.5), (8, 171, 3.0)]:
        values = grating(8, omega, theta, phi)
        gratings.append(dict(frequency=omega, orientation=theta, phase=phi, values=np.round(values, 6).ravel().tolist()))
    json.dump(dict(figures=figures, gratings=gratings), sys.stdout)
    print()


main()
