"""am-ELO the way of the script that its authors published, written for this benchmark: Adam on all battles at once.

As there: 2,000 steps of size 0.1 from random ratings and abilities in single precision, abilities over their sum. There
a data loader puts the batch together row by row in every step; here the arrays are ready, which spares it most of its
time.
"""

from __future__ import annotations

import numpy as np
import torch
from common import Battles, Call, drive

_STEPS = 2000
_SIZE = 0.1


def abilities(battles: Battles) -> Call:
    torch.set_num_threads(1)
    a, b, judge = (torch.from_numpy(battles.column(name).astype(np.int64)) for name in ("a", "b", "judge"))
    y = torch.from_numpy(battles.column("y").astype(np.float32))
    models, judges = len(battles.models), int(judge.max()) + 1

    def call() -> np.ndarray:
        torch.manual_seed(0)
        ratings, ability = (torch.nn.Embedding(size, 1) for size in (models, judges))
        for table in (ratings, ability):
            torch.nn.init.xavier_uniform_(table.weight.data)
        optimiser = torch.optim.Adam([ratings.weight, ability.weight], lr=_SIZE)
        loss = torch.nn.BCEWithLogitsLoss()
        for _ in range(_STEPS):
            optimiser.zero_grad()
            share = ability(judge) / ability.weight.sum()
            loss((share * (ratings(a) - ratings(b))).reshape(-1), y).backward()
            optimiser.step()
        found, weight = (table.weight.detach().numpy().ravel().astype(np.float64) for table in (ratings, ability))
        # From a sum of 1 to a mean of 1, which has the same likelihood.
        return np.concatenate([(found - found.mean()) / judges, weight / weight.mean()])

    return call


if __name__ == "__main__":
    drive("torch", {"abilities": abilities})
