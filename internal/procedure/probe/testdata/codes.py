"""Writes codes.json, the golden values of TestCodesGolden and TestLiDARGolden: numpy and scikit-learn, with the estimators that the authors'
programs use (Lasso of DCI, LinearSVC of SAP, mutual_info_classif and LogisticRegression of InfoMEC), run to convergence.
codes_reference.py compares the functions with these programs.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score
from sklearn.svm import LinearSVC

BINS, TINY = 20, 1e-12


def classes(values, categorical):
    unique, index = np.unique(values, return_inverse=True)
    if not categorical and len(unique) > BINS:
        return np.digitize(values, np.histogram(values, BINS)[1][:-1])
    return index


def top_gap(matrix):  # components x factors
    s = np.sort(matrix, axis=0)
    return np.mean(s[-1] - s[-2])


def dci(z, factors, train):
    x = (z - z[:train].mean(0)) / z[:train].std(0)
    importance, errors = [], []
    for values, categorical in factors:
        columns = [(values == v).astype(float) for v in np.unique(values)] if categorical else [values]
        r, squares, spread = 0, 0, 0
        for y in columns:
            y = (y - y[:train].mean()) / y[:train].std()
            m = Lasso(alpha=0.02, tol=1e-14, max_iter=100000).fit(x[:train], y[:train])
            r = r + np.abs(m.coef_)
            squares += ((m.predict(x[train:]) - y[train:]) ** 2).sum()
            spread += y[train:].var() * len(y[train:])
        importance.append(r)
        errors.append(np.sqrt(squares / spread))
    r = np.stack(importance, 1)

    def scores(r):  # of each column
        p = r / r.sum(0)
        return 1 + (p * np.log(p + TINY)).sum(0) / np.log(len(p))

    used = r.sum(1) > 0
    disentanglement = (scores(r[used].T) * r[used].sum(1) / r.sum()).sum()
    return disentanglement, scores(r).mean(), np.mean(errors)


def mig(z, labels):
    known = np.array([[mutual_info_score(y, np.digitize(c, np.histogram(c, BINS)[1][:-1])) for y in labels] for c in z.T])
    return top_gap(known / np.array([mutual_info_score(y, y) for y in labels]))


def sap(z, factors, train):
    out = np.zeros((z.shape[1], len(factors)))
    for i, c in enumerate(z.T):
        for j, (y, categorical) in enumerate(factors):
            if categorical:
                m = LinearSVC(C=0.01, class_weight="balanced", tol=1e-12, max_iter=1000000, dual=False).fit(c[:train, None], y[:train])
                out[i, j] = np.mean(m.predict(c[train:, None]) == y[train:])
            else:
                cov = np.cov(c[:train], y[:train])
                out[i, j] = cov[0, 1] ** 2 / cov[0, 0] / cov[1, 1]
    return top_gap(out)


def infomc(z, labels):
    width = z.max(0) - z.min(0)
    x = (z / z.std(0))[:, width > width.max() / 20]
    known = np.array([[mutual_info_classif(c[:, None], y, discrete_features=False, n_neighbors=10, random_state=0)[0] / mutual_info_score(y, y) for c in x.T] for y in labels])
    rescale = lambda v, n: (v - 1 / n) / (1 - 1 / n)
    return rescale((known.max(0) / known.sum(0)).mean(), len(labels)), rescale((known.max(1) / known.sum(1)).mean(), x.shape[1])


def infoe(z, factors):
    x = (z - z.mean(0)) / z.std(0)
    out = []
    for y, categorical in factors:
        if categorical:
            m = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-10, max_iter=100000).fit(x, y)
            without = np.log(len(np.unique(y)))
            out.append((without - log_loss(y, m.predict_proba(x))) / without)
        else:
            out.append(LinearRegression().fit(x, y).score(x, y))
    return np.mean(out)


def lidar(v, delta):  # samples x versions x variables
    n, q, d = v.shape
    mean = v.mean(1)
    within = (v - mean[:, None]).reshape(-1, d)
    w = within.T @ within / (n * (q - 1)) + delta * np.eye(d)
    m = mean - mean.mean(0)
    values, vectors = np.linalg.eigh(w)
    root = (vectors / np.sqrt(values)) @ vectors.T
    l = np.maximum(np.linalg.eigvalsh(root @ (m.T @ m / (n - 1)) @ root), 0)
    p = l / l.sum() + 1e-7
    return np.exp(-(p * np.log(p)).sum())


def main():
    rng = np.random.default_rng(11)
    cases = []
    # Classes have more than twice as many samples as the neighbours: else scikit-learn finds distances by a formula whose rounding errors decide
    # whether the last neighbour counts.
    for n, d, mix, values in [(700, 3, 0.2, 100000), (200, 6, 1.0, 5)]:
        shape, hue, size = rng.integers(3, size=n), rng.integers(values, size=n) * 180 / values, rng.integers(2, size=n)
        clean = np.stack([shape, hue / 90, size], 1) @ np.eye(3, d)
        z = clean @ (np.eye(d) + mix * rng.normal(size=(d, d))) + 0.7 * rng.normal(size=(n, d))
        z = np.round(z, 12)  # of full precision, since ties are broken at random
        factors = [(shape.astype(float), True), (hue, False), (size.astype(float), True)]
        labels = [classes(v, c) for v, c in factors]
        train = round(0.67 * n)
        dis, comp, err = dci(z, factors, train)
        m, c = infomc(z, labels)
        values = {"dci-disentanglement": dis, "dci-completeness": comp, "dci-error": err, "mig": mig(z, labels), "sap": sap(z, factors, train), "infom": m, "infoc": c,
                  "infoe": infoe(z, factors)}
        print(values)
        cases.append({"vectors": z.tolist(), "factors": [{"categorical": c, "values": v.tolist()} for v, c in factors], "values": values})
    views = []
    for n, q, d in [(30, 4, 6), (12, 3, 20)]:
        v = rng.normal(size=(n, 1, d)) * np.linspace(2, 0.1, d) + rng.normal(size=(n, q, d)) * np.linspace(0.1, 1, d)
        v = np.round(v, 4).astype(np.float32).astype(float)
        views.append({"versions": q, "samples": [[round(float(x), 4) for x in row.ravel()] for row in v], "value": lidar(v, 1e-4)})
        print(views[-1]["value"])
    Path(__file__).with_name("codes.json").write_text(json.dumps({"codes": cases, "lidar": views}) + "\n")


if __name__ == "__main__":
    main()
