"""Golden values for the linear discriminant, made apart from the Go code: python3 discriminant.py > discriminant.json

The logits are log densities of normal distributions with a common covariance, by scipy; what all classes share drops
out in differences from class 0.
"""
import json
import sys

import numpy as np
from scipy.stats import multivariate_normal

SHRINKAGE = 1e-3

rng = np.random.default_rng(5)
labels = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 0, 1])
x = np.round(rng.normal(size=(len(labels), 3)) @ rng.normal(size=(3, 3)) + 2 * np.eye(3)[labels], 3)
means = np.stack([x[labels == c].mean(0) for c in range(3)])
within = sum((x[labels == c] - means[c]).T @ (x[labels == c] - means[c]) for c in range(3)) / (len(labels) - 3)
within += SHRINKAGE * np.diag(np.diag(within))
shares = np.bincount(labels) / len(labels)
logits = np.stack([multivariate_normal(means[c], within).logpdf(x) + np.log(shares[c]) for c in range(3)], 1)
json.dump(dict(x=x.ravel().tolist(), labels=labels.tolist(), differences=np.round(logits - logits[:, :1], 6).ravel().tolist()), sys.stdout)
print()
