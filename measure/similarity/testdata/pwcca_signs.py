#!/usr/bin/env python3
"""Shows that the PWCCA of ReSi depends on the signs of singular vectors. Prints its smallest and largest value over 200
random choices of them, for representations as they are and with the means of their columns subtracted.

    git clone https://github.com/mklabunde/resi       # 24ab9e5
    python3 pwcca_signs.py resi                       # numpy 1.24
"""
import sys
import numpy as np

source = open(sys.argv[1] + "/repsim/measures/cca.py").read()
code = {}
exec(source[:source.index("from typing import Union")].replace("from repsim.measures.utils import align_spatial_dimensions", ""), code)

svd = np.linalg.svd

def value(x, y, seed):
    def with_signs(matrix, *args, **keywords):
        u, s, v = svd(matrix, *args, **keywords)
        signs = np.where(np.random.default_rng(seed).random(len(s)) < 0.5, -1, 1)
        u, v = u.copy(), v.copy()
        u[:, :len(s)] *= signs  # of both, so that u s v remains the same
        v[:len(s)] *= signs[:, None]
        return u, s, v
    np.linalg.svd = with_signs
    return code["compute_pwcca"](x.T, y.T)[0]

random = np.random.default_rng(0)
shared = random.normal(size=(500, 5))
x, y = (np.maximum(shared @ random.normal(size=(5, p)) + 0.3 * random.normal(size=(500, p)), 0).astype(np.float32) for p in (20, 30))
for name, a, b in ("as they are", x, y), ("centred", x - x.mean(0), y - y.mean(0)):
    values = [value(a, b, seed) for seed in range(200)]
    print(f"{name}: {min(values):.4f} to {max(values):.4f}")
