#!/usr/bin/env python3
"""Golden values of correlations and robust lines, by scipy and statsmodels. Writes golden.json beside this file.

Debian: python3-scipy python3-statsmodels.
"""
import json, pathlib
import numpy as np, scipy.stats, statsmodels.api as sm

rng = np.random.default_rng(3)


def case(name, x, y):
    fit = sm.RLM(y, sm.add_constant(x), M=sm.robust.norms.HuberT(1.345)).fit(maxiter=500, tol=1e-12)
    return {
        "name": name, "x": list(x), "y": list(y),
        "pearson": scipy.stats.pearsonr(x, y)[0], "interval": list(scipy.stats.pearsonr(x, y).confidence_interval(0.95)), "spearman": scipy.stats.spearmanr(x, y)[0],
        "intercept": fit.params[0], "slope": fit.params[1], "scale": fit.scale,
    }


def cases():
    x = rng.uniform(0, 1, 30)
    yield case("normal", x, 2 * x - 1 + 0.1 * rng.standard_normal(30))
    y = 2 * x - 1 + 0.1 * rng.standard_normal(30)
    y[:4] += 5
    yield case("outliers", x, y)
    yield case("heavy tails", x, -x + 0.1 * rng.standard_t(1.5, 30))
    yield case("ties", np.round(x, 1), np.round(3 * x + 0.3 * rng.standard_normal(30), 1))
    yield case("few", x[:5], x[:5] ** 2)
    yield case("large", 1e4 * rng.standard_normal(200), 1e-3 * rng.standard_normal(200))


out = list(cases())
pathlib.Path(__file__).with_name("golden.json").write_text(json.dumps(out, indent=1) + "\n")
