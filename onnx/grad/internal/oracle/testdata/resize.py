"""Writes resize.json: what Resize makes of 1 x 1 x 4 x 5 numbers in float64, by the reference of the ONNX project in numpy."""
import itertools
import json
import os

import numpy as np
from onnx.backend.test.case.node.resize import cubic_coeffs, interpolate_nd, linear_coeffs

r = np.random.default_rng(0)
x = r.normal(size=(1, 1, 4, 5)).astype(np.float32)
cases = []
targets = [{"sizes": [1, 1, 7, 3]}, {"sizes": [1, 1, 1, 11]}, {"scales": [1, 1, 2, 3]}, {"scales": [1, 1, 0.5, 1.7]}]
modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
for (kind, coordinates), target in itertools.product(itertools.product(["linear", "cubic", "outside"], modes), targets):
    if coordinates == "pytorch_half_pixel" and target.get("sizes", [0])[-2:-1] == [1]:
        continue  # the reference takes -0.5 of a single place, where the standard says 0
    if coordinates == "align_corners" and 1.7 in target.get("scales", []):
        continue  # the reference aligns the corner of a size that is not a whole number
    a = -0.5 if kind == "outside" else -0.75
    coefficients = linear_coeffs if kind == "linear" else lambda ratio: cubic_coeffs(ratio, A=a)
    how = {k: np.array(v, np.int64 if k == "sizes" else np.float32) for k, v in target.items()}
    if "scales" in how:
        how = {"scale_factors": how["scales"].astype(np.float64)}
    else:
        how = {"output_size": how["sizes"]}
    y = interpolate_nd(
        x.astype(np.float64), coefficients, coordinate_transformation_mode=coordinates, exclude_outside=kind == "outside", **how
    )
    cases.append({"mode": kind, "coordinates": coordinates, "a": a, **target, "shape": y.shape, "y": y.ravel().tolist()})
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "resize.json")
with open(path, "w") as f:
    json.dump({"x": x.ravel().tolist(), "cases": cases}, f)
    f.write("\n")
print(len(cases), "cases")
