"""A policy: Swiss pairing, in which neighbours in the standings meet on an instruction that they have not met on."""

import numpy as np

from venire.arena.planning import Pick, Policy


def swiss(state, phase, number, rng):
    """Pairs of neighbours by what verdicts say so far, else by Elo; each round of the field on one instruction."""
    played = {tuple(row) for rows in (state.asked, state.barred) for row in (() if rows is None else rows.tolist())}
    value = [state.elo.get(model, 0.0) for model in state.models]
    if state.logits is not None:
        value = np.nan_to_num(state.logits, nan=np.nanmean(state.logits)).tolist()
    picks = []
    for instruction in rng.permutation(len(state.instructions)).tolist():
        free = sorted(range(len(state.models)), key=lambda code: -value[code])
        while len(free) > 1 and len(picks) < number:
            one = free.pop(0)
            other = next((code for code in free if (*sorted((one, code)), instruction) not in played), None)
            if other is None:
                continue
            free.remove(other)
            a, b = sorted((one, other))
            picks.append(Pick(state.models[a], state.models[b], state.instructions[instruction], "swiss"))
    return picks


SWISS = Policy(swiss, crossed=False, adaptive=True)
