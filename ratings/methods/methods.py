"""Rating methods by name: what each needs, and which options it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from venire.arena import registry
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.registry import Registry
from venire.arena.wording import suggest
from venire.ratings.data.ballots import missing_ballots, without_own
from venire.ratings.data.ballots import select_ballots as select_ballots
from venire.ratings.data.judgments import Judgments, derived, merge_orders, select_battles
from venire.ratings.data.models import model_of_judge
from venire.ratings.data.result import Rated
from venire.ratings.inference.options import Options, option_names

_COMMON_OPTIONS = frozenset({"merge", "flips", "seed", "level", "replicates", "anchors", "own_votes", "judge_weights"})
_COLUMNS = {
    "score": "the judge's score difference (a column score_difference, or a protocol that scores)",
    "human": "what people said (a column human_winner, or their votes: --human NAME)",
}
METHODS: Registry[Method] = registry.METHODS
"""Every method by the name used on the command line."""
ABILITY_OPTIONS = frozenset({"ridge", "errors", "restarts", "habits", "ability_ridge"})
"""Options of methods that fit an ability for each judge."""
JUDGE_OPTIONS = frozenset({"judge_weights", "own_votes"})
"""Options without a meaning where human labels are rated: they have no judge."""


@dataclass(frozen=True, slots=True)
class Method:
    """A rating method, an entry of `registry.METHODS`.

    `run` rates the models of a table from the verdicts, the judgments merged from them and the options. `purpose` is a
    line for `venire methods`. `options` names the options beyond those common to most methods, `ignores` the common
    options without a meaning for it. `needs` are columns that a table must have. `rates` states whether models are
    rated; otherwise only judges are measured. `orders` means that models get positions in an order, and no ratings,
    `of_people` that those are rated by people.
    """

    run: Callable[[Battles, Judgments, Options], Rated]
    purpose: str
    options: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    ignores: frozenset[str] = frozenset()
    rates: bool = True
    orders: bool = False
    of_people: bool = False


def merge_selected(battles: Battles, options: Options) -> Judgments:
    """The judgments from the selected verdicts, under the options for merging and flips.

    Raises as `select_verdicts` and `merge_orders` do.
    """
    return merge_orders(select_verdicts(battles, options), options.merge, flips=options.flips)


def select_verdicts(battles: Battles, options: Options) -> Battles:
    """The verdicts, and the ballots behind them, that options select for a method, with their weights.

    Those of a judge of weight 0 are left out. Raises `InputError` for the weight of an unknown judge, and where judges'
    own votes are excluded and no judge is a model.
    """
    if options.own_votes != "exclude" and not options.judge_weights:
        return battles
    key = (options.own_votes, *sorted(options.judge_weights.items()))
    return derived(battles, key, lambda: _selected(battles, options))


def _selected(battles: Battles, options: Options) -> Battles:
    if options.own_votes == "exclude":
        battles = _without_own(battles)
    return _weighted(battles, options.judge_weights) if options.judge_weights else battles


def _without_own(battles: Battles) -> Battles:
    own = model_of_judge(battles.judges, battles.models, battles.peers)
    if not (own >= 0).any():
        raise InputError(
            f"no judge is one of the models, so that none has votes on itself to exclude; judges: "
            f"{', '.join(battles.judges[:10])}; models: {', '.join(battles.models[:10])}"
        )
    mine = own[battles.judge]
    kept = select_battles(battles, (battles.model_a != mine) & (battles.model_b != mine))
    return kept if kept.ballots is None else replace(kept, ballots=without_own(kept.ballots, battles.peers))


def _weighted(battles: Battles, weights: Mapping[str, float]) -> Battles:
    if strange := sorted(set(weights) - set(battles.judges)):
        raise InputError(f"there is no judge {strange[0]!r} to weigh; {suggest(strange[0], battles.judges)}")
    factor = np.array([weights.get(name, 1.0) for name in battles.judges])
    kept = select_battles(battles, factor[battles.judge] > 0.0)
    weight = factor[kept.judge] * (1.0 if kept.weight is None else kept.weight)
    votes = kept.ballots
    if votes is not None:
        votes = select_ballots(votes, factor[votes.judge] > 0.0)
        votes = replace(votes, weight=factor[votes.judge] * (1.0 if votes.weight is None else votes.weight))
    return replace(kept, weight=weight, ballots=votes)


def missing_data(battles: Battles, method: str, options: Options | None = None) -> str | None:
    """The data that a table or the options lack for a method, in words; None if nothing is missing."""
    if method == "covariates" and options is not None and not options.covariates:
        return "names: --covariate NAME, for columns of the table, or position"
    needs = METHODS[method].needs
    if "ballots" in needs and battles.ballots is None:
        return missing_ballots(battles, merge_selected(battles, options or Options()))
    lacking = [
        name
        for name in needs
        if getattr(battles, name) is None and not (name == "human" and battles.people is not None)
    ]
    return "; ".join(_COLUMNS[name] for name in lacking) or None


def ignored_options(method: str, options: Options) -> tuple[str, ...]:
    """Changed options that have no meaning for a method."""
    chosen = METHODS[method]
    accepted = (chosen.options | _COMMON_OPTIONS) - chosen.ignores
    return tuple(name for name in options.changed() if name not in accepted)


def rate(battles: Battles, method: str, options: Options) -> Rated:
    """Rate the models of a table of verdicts by one method.

    Raises `InputError` for an unknown method, an option that it does not take and a column that the table lacks.
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}; {suggest(method, METHODS)}")
    chosen = METHODS[method]
    if unknown := ignored_options(method, options):
        raise InputError(f"{method} does not take {option_names(unknown)}: leave it out, or choose another method")
    if lacking := missing_data(battles, method, options):
        raise InputError(f"{method} needs {lacking}")
    if strange := sorted(set(options.anchors) - set(battles.models)):
        raise InputError(f"there is no model {strange[0]!r} to anchor; {suggest(strange[0], battles.models)}")
    return chosen.run(select_verdicts(battles, options), merge_selected(battles, options), options)
