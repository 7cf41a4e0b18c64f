"""Compares the functions of codes.py with the programs of the authors, to 1e-6, and prints the differences.

usage: codes_reference.py QEDR DISENTANGLEMENT_LIB LATENT_QUANTIZATION      # with numpy and scikit-learn

Checkouts of github.com/cianeastwood/qedr (f1f47e5; DCI), github.com/google-research/disentanglement_lib (86a644d; MIG and SAP) and
github.com/kylehkhsu/latent_quantization (9a420a3; InfoMEC). Their estimators are run to convergence, with fixed random numbers. QEDR
takes factors that are numbers, InfoMEC factors that are categories, and SAP either.
"""

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
from sklearn import feature_selection, linear_model, svm

import codes


def stub(name, **content):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)
    return sys.modules[name]


def load(root, path):
    spec = importlib.util.spec_from_file_location(Path(path).stem + "_of_authors", Path(root) / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What the programs import besides: settings, logging and plots.
settings = {"configurable": lambda *a, **k: lambda f: f, "REQUIRED": None}
stub("gin", tf=stub("gin.tf", **settings), **settings)
stub("absl", logging=types.SimpleNamespace(info=lambda *a: None))
stub("six.moves", range=range)
stub("six", moves=sys.modules["six.moves"])
stub("matplotlib", pyplot=None)
stub("matplotlib.pyplot")
for name in ("disentanglement_lib", "disentanglement_lib.evaluation", "disentanglement_lib.evaluation.metrics"):
    stub(name, __path__=[])
qedr, lib, quantization = sys.argv[1:4]
metrics = "disentanglement_lib/evaluation/metrics/"
utils = load(lib, metrics + "utils.py")
sys.modules["disentanglement_lib.evaluation.metrics"].utils = sys.modules["disentanglement_lib.evaluation.metrics.utils"] = utils
mig, sap = load(lib, metrics + "mig.py"), load(lib, metrics + "sap_score.py")
regression = load(qedr, "lib/eval/regression.py")
infomec = load(quantization, "disentangle/metrics/infomec.py")

# To convergence, and the noise of ties the same.
utils.make_discretizer = lambda target: utils._histogram_discretize(target, num_bins=codes.BINS)
sap.svm = types.SimpleNamespace(LinearSVC=lambda **k: svm.LinearSVC(**k, tol=1e-12, max_iter=1000000, dual=False))
infomec.feature_selection = types.SimpleNamespace(mutual_info_classif=lambda *a, **k: feature_selection.mutual_info_classif(*a, **k, random_state=0)[0])
infomec.linear_model = types.SimpleNamespace(LogisticRegression=lambda **k: linear_model.LogisticRegression(C=np.inf, class_weight=k["class_weight"], tol=1e-10, max_iter=100000))


def dci(z, y, train):
    """The cells of quantify.ipynb with Lasso, for one model."""
    x, mean, deviation, _ = regression.normalize(z[:train], remove_constant=False)
    xt = regression.normalize(z[train:], mean, deviation, remove_constant=False)[0]
    t, mean, deviation, _ = regression.normalize(y[:train], remove_constant=False)
    tt = regression.normalize(y[train:], mean, deviation, remove_constant=False)[0]
    importance, errors = [], []
    for j in range(y.shape[1]):
        model = linear_model.Lasso(alpha=0.02, tol=1e-14, max_iter=100000).fit(x, t[:, j])
        errors.append(regression.nrmse(model.predict(xt), tt[:, j]))
        importance.append(np.abs(model.coef_[:, None]))
    r = np.hstack(importance)
    disentanglement = np.sum(np.array(regression.entropic_scores(r.T)) * np.sum(r, 1) / np.sum(r))
    return disentanglement, np.mean(regression.entropic_scores(r)), np.mean(errors)


def compare(name, ours, authors):
    print(f"{name:20} {ours:.9f} {authors:.9f}")
    assert abs(ours - authors) < 1e-6, name


for seed, n, d in [(1, 600, 4), (2, 300, 7)]:
    rng = np.random.default_rng(seed)
    shape, hue, size = rng.integers(3, size=n), rng.integers(5, size=n), rng.integers(2, size=n)
    y = np.stack([shape, hue, size], 1)
    z = y @ rng.normal(size=(3, d)) + 0.7 * rng.normal(size=(n, d))
    train, labels = round(0.67 * n), [*y.T]
    numbers, categories = ([(v.astype(float), c) for v in y.T] for c in (False, True))
    for name, a, b in zip(("dci-disentanglement", "dci-completeness", "dci-error"), codes.dci(z, numbers, train), dci(z, y.astype(float), train)):
        compare(name, a, b)
    compare("mig", codes.mig(z, labels), mig._compute_mig(z.T, y.T)["discrete_mig"])
    for kind, factors in (("numbers", numbers), ("categories", categories)):
        authors = sap._compute_sap(z[:train].T, y[:train].T, z[train:].T, y[train:].T, kind == "numbers")["SAP_score"]
        compare("sap, " + kind, codes.sap(z, factors, train), authors)
    authors = infomec.compute_infomec(y, z, discrete_latents=False)
    infom, infoc = codes.infomc(z, labels)
    compare("infom", infom, authors["infom"])
    compare("infoc", infoc, authors["infoc"])
    compare("infoe", codes.infoe(z, categories), authors["infoe"])
