#!/usr/bin/env python3
"""Golden values of Holm's correction and of p-values, by statsmodels and scipy. Writes holm.json beside this file.

python3 -m pip install statsmodels
"""
import json, pathlib
import numpy as np, scipy.stats
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(5)
families = [[0.04], [0.01, 0.04, 0.03, 0.005], [0.02, 0.02, 0.02], [0.0, 1.0, 0.5]]
families += [list(rng.uniform(size=n) ** 3) for n in (2, 7, 40)]
pairs = []
for n in (3, 8, 20):
    x = rng.normal(0.3, 1, n)
    half = scipy.stats.t.ppf(0.975, n - 1) * x.std(ddof=1) / np.sqrt(n)
    for null in (0.0, 0.5, 3.0):
        pairs.append({"mean": x.mean(), "half": half, "null": null, "freedom": n - 1, "p": scipy.stats.ttest_1samp(x, null).pvalue})
out = {"families": [{"p": p, "adjusted": list(multipletests(p, method="holm")[1])} for p in families], "tests": pairs}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out))
