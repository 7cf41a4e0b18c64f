#!/usr/bin/env python3
"""Writes mfr.json beside this file: flip rates of made-up predictions on ImageNet-P by the authors' functions, and their mFR.

usage: mfr.py ROBUSTNESS ASSEMBLED      # with numpy

ROBUSTNESS and ASSEMBLED are checkouts of github.com/hendrycks/robustness (8190fe3), whose ImageNet-P/test.py has the functions, and of
github.com/clovaai/assembled-cnn (9cdc297), whose mce/eval_robustness.py has AlexNet's flip rates. The authors' program prints flip rates;
their paper divides each by AlexNet's, and the mFR is the mean over the ten perturbations of the test set.
"""
import argparse, ast, json, pathlib
from types import SimpleNamespace
import numpy as np

VALIDATION = ("speckle_noise", "gaussian_blur", "spatter", "shear")
p = argparse.ArgumentParser()
p.add_argument("robustness", type=pathlib.Path), p.add_argument("assembled", type=pathlib.Path)
a = p.parse_args()


def part(path, kind, name):
    """The definition of a function or constant of a program, without running it."""
    tree = ast.parse(path.read_text())
    names = lambda n: [n.name] if isinstance(n, ast.FunctionDef) else [t.id for t in getattr(n, "targets", []) if isinstance(t, ast.Name)]
    return next(n for n in tree.body if isinstance(n, kind) and name in names(n))


program = {"np": np, "args": SimpleNamespace(perturbation="", difficulty=1)}
source = part(a.robustness / "ImageNet-P/test.py", ast.FunctionDef, "flip_prob")
exec(compile(ast.Module([source], []), "test.py", "exec"), program)
alexnet = ast.literal_eval(part(a.assembled / "mce/eval_robustness.py", ast.Assign, "ALEXNET_FP").value)
rng = np.random.default_rng(3)
rates = {}
for kind in sorted(set(alexnet) - set(VALIDATION)):
    predictions = np.cumsum(rng.random((40, 31)) < rng.uniform(0.02, 0.3), axis=1) % 7  # 40 videos of 31 frames
    rates[kind] = program["flip_prob"](predictions, noise_perturbation="noise" in kind)
fr = {kind: rate / alexnet[kind] for kind, rate in rates.items()}
out = {"flip_rates": rates, "fr": fr, "mfr": float(np.mean(list(fr.values())))}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out, indent=1) + "\n")
