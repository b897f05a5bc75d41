"""scikit-learn: logistic regression with one sparse row per battle, and a tie as two rows of half weight."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from common import Battles, Call, drive
from sklearn.linear_model import LogisticRegression


def _regression(battles: Battles, x: np.ndarray | None) -> Call:
    a, b, y = battles.column("a"), battles.column("b"), battles.column("y")

    def call() -> np.ndarray:
        tied = np.flatnonzero(y == 0.5)
        rows = np.concatenate([np.arange(len(y)), tied])
        won = np.concatenate([y >= 0.5, np.zeros(len(tied), dtype=bool)])
        weight = np.where(y[rows] == 0.5, 0.5, 1.0)
        size = len(rows)
        sides = (np.tile([1.0, -1.0], size), np.column_stack([a[rows], b[rows]]).ravel(), np.arange(0, 2 * size + 1, 2))
        design = sparse.csr_matrix(sides, (size, len(battles.models)))
        if x is not None:
            design = sparse.hstack([design, sparse.csr_matrix(x[rows])]).tocsr()
        model = LogisticRegression(fit_intercept=False, C=1e9, tol=1e-6, max_iter=1000)
        return model.fit(design, won, sample_weight=weight).coef_[0]

    return call


def fit(battles: Battles) -> Call:
    return _regression(battles, None)


def covariates(battles: Battles) -> Call:
    return _regression(battles, battles.column("x"))


if __name__ == "__main__":
    drive("scikit-learn", {"fit": fit, "covariates": covariates})
