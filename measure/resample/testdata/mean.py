"""Prints the values of TestMean: intervals by statsmodels."""

import numpy as np
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

for alpha in (0.05, 0.01):
    print("wilson 7 of 50", alpha, 7 / 50, *proportion_confint(7, 50, alpha, method="wilson"))
    values = np.array([0.2, 0.5, 0.9, 0.4, 0.35])
    print("student", alpha, values.mean(), *DescrStatsW(values).tconfint_mean(alpha))
    print("newcombe 7 of 50, 30 of 90", alpha, 7 / 50 - 30 / 90,
          *confint_proportions_2indep(7, 50, 30, 90, method="newcomb", alpha=alpha, correction=False))
