#!/usr/bin/env python3
"""Writes X.npy and Y.npy, n x p float32 each, that share forty latent variables: for the table
"similarity" of bench.

usage: arrays.py FOLDER N P
"""
import os, sys
import numpy as np

folder, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(folder, exist_ok=True)
r = np.random.default_rng(1)
z = r.standard_normal((n, 40)) * np.linspace(1, 0.1, 40)
for name in "XY":
    a = np.maximum(z @ r.standard_normal((40, p)) / 3 + 0.5 * r.standard_normal((n, p)), 0)
    np.save(os.path.join(folder, name + ".npy"), a.astype(np.float32))
