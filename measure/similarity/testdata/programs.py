#!/usr/bin/env python3
"""Values of other programs on the arrays of list.json, for TestOtherPrograms. Runs their code and writes programs.json beside itself.

    git clone https://github.com/mklabunde/resi       # 24ab9e5
    git clone https://github.com/ahwillia/netrep      # 0186b8a
    python3 programs.py resi netrep                   # numpy 1.24, scipy 1.10, scikit-learn 1.2, torch 1.13

Packages that the functions below import but do not use (einops, loguru, tqdm) are replaced by empty modules. The file __init__.py of
repsim.measures is not run, since it imports libraries of persistent homology. A value is null where a program stops with an error.
"""
import importlib, json, os, sys, types, warnings
import numpy as np
import scipy.spatial.distance as distance
import scipy.stats as stats
from scipy.optimize import linear_sum_assignment
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import Ridge

class Anything:
    def __getattr__(self, name):
        return lambda *args, **keywords: None

for name, members in {"einops": ["rearrange"], "loguru": ["logger"], "tqdm": ["tqdm"]}.items():
    sys.modules[name] = types.ModuleType(name)
    for member in members:
        setattr(sys.modules[name], member, Anything())
resi, netrep = sys.argv[1:]
for package, folder in {"repsim": resi + "/repsim", "repsim.measures": resi + "/repsim/measures", "netrep": netrep + "/netrep",
                        "netrep.metrics": netrep + "/netrep/metrics"}.items():
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [folder]
measure = lambda module, name: getattr(importlib.import_module("repsim.measures." + module), name)()
LinearMetric = importlib.import_module("netrep.metrics.linear").LinearMetric
PermutationMetric = importlib.import_module("netrep.metrics.perm").PermutationMetric
LinearCKA = importlib.import_module("netrep.metrics.cka").LinearCKA

RESI = {
    "cka": "CKA", "cca": "SVCCA PWCCA", "correlation_match": "HardCorrelationMatch SoftCorrelationMatch",
    "distance_correlation": "DistanceCorrelation", "eigenspace_overlap": "EigenspaceOverlapScore", "gulp": "Gulp",
    "linear_regression": "LinearRegression", "nearest_neighbor": "JaccardSimilarity RankSimilarity SecondOrderCosineSimilarity",
    "procrustes": "AlignedCosineSimilarity OrthogonalAngularShapeMetricCentered OrthogonalProcrustesCenteredAndNormalized "
                  "PermutationProcrustes ProcrustesSizeAndShapeDistance",
    "rsa": "RSA", "rsm_norm_difference": "RSMNormDifference", "statistics": "ConcentricityDifference MagnitudeDifference UniformityDifference",
}

def rsa(x, y, inner, outer):
    a, b = [np.round(distance.pdist(z - z.mean(0), inner), 9) for z in (x, y)]  # values that differ by rounding tie
    return {"spearman": lambda: stats.spearmanr(a, b).correlation, "kendall": lambda: stats.kendalltau(a, b).correlation,
            "pearson": lambda: stats.pearsonr(a, b)[0]}[outer]()

def folds(x, y, fit, k=5):
    fold, residual, total = np.arange(len(x)) % k, 0, 0
    for i in range(k):
        a, b = fold != i, fold == i
        residual += np.sum((x[b] - fit(y[a], x[a]).predict(y[b])) ** 2)
        total += np.sum((x[b] - x[a].mean(0)) ** 2)
    return 1 - residual / total

def ridge(y, x):
    return Ridge(0.01 * np.sum((y - y.mean(0)) ** 2) / y.shape[1]).fit(y, x)

def matching(x, y):
    # Transport between p and q variables of equal mass: an assignment of q copies of each of the p to p copies of each of the q.
    c = distance.cdist((x - x.mean(0)).T, (y - y.mean(0)).T, "sqeuclidean")
    c = np.repeat(np.repeat(c, y.shape[1], 0), x.shape[1], 1)
    i, j = linear_sum_assignment(c)
    return np.sqrt(c[i, j].mean())

def programs(x, y):
    run = {}
    for module, names in RESI.items():
        for name in names.split():
            run["ReSi " + name] = lambda m=measure(module, name): m(x, y, "nd")
    for alpha in (1, 0.5, 0.1):
        run[f"netrep LinearMetric {alpha}"] = lambda a=alpha: LinearMetric(alpha=a).fit_score(x, y)
    run["netrep LinearMetric euclidean"] = lambda: LinearMetric(score_method="euclidean").fit_score(x, y)
    run["netrep PermutationMetric euclidean"] = lambda: PermutationMetric(score_method="euclidean").fit_score(x, y)
    run["netrep LinearCKA"] = lambda: LinearCKA().score(x, y)
    for inner in ("cosine", "correlation", "euclidean", "sqeuclidean"):
        for outer in ("spearman", "kendall", "pearson"):
            run[f"scipy {inner} {outer}"] = lambda i=inner, o=outer: rsa(x, y, i, o)
    run["scipy linear_sum_assignment of copies"] = lambda: matching(x, y)
    run["scikit-learn Ridge"] = lambda: folds(x, y, ridge)
    run["scikit-learn PLSRegression 2"] = lambda: folds(x, y, lambda a, b: PLSRegression(2, scale=False, tol=1e-14, max_iter=100000).fit(a, b))
    out = {}
    for name, f in run.items():
        try:
            value = float(np.real(f()))
            out[name] = value if np.isfinite(value) else None
        except Exception as e:
            print(name, type(e).__name__, e)
            out[name] = None
    return out

warnings.simplefilter("ignore")
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "list.json")) as f:
    cases = json.load(f)
values = {}
for c in cases:
    print(c["name"])
    x, y = [np.array(c[k]).reshape(c["n"], -1) for k in "xy"]
    values[c["name"]] = programs(x, y)
with open(os.path.join(here, "programs.json"), "w") as f:
    json.dump(values, f, indent=0)
    f.write("\n")
