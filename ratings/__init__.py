"""Ratings from verdicts: arrays in, frozen results out; no files, no network.

The names here are the estimators, the records that they take and the errors that they raise; docs/ratings.md lists them
by topic. The records that an estimator returns are defined in its module.

>>> data = comparisons(["a", "b", "c", "a"], ["b", "c", "a", "b"], [1.0, 0.7, 0.5, 0.0])
>>> bradley_terry(data).models
('a', 'b', 'c')
"""

from __future__ import annotations

from venire.arena.scale import to_elo, to_logits
from venire.ratings.agreement.calibration import calibration
from venire.ratings.agreement.chance_corrected import (
    cohen_kappa,
    fleiss_kappa,
    fleiss_kappa_counts,
    human_kappa,
    krippendorff_alpha,
    unanimity,
)
from venire.ratings.agreement.judge_agreement import judge_agreement
from venire.ratings.agreement.people_agreement import people_agreement
from venire.ratings.agreement.reference import agreement, micro_macro
from venire.ratings.am_elo.am_elo import am_elo
from venire.ratings.am_elo.ascent import gradient_ascents
from venire.ratings.am_elo.evaluation import evaluate, predict_from_abilities, predict_from_ratings
from venire.ratings.am_elo.robustness import perturb, robustness
from venire.ratings.am_elo.stable_arena import NobodyLeftError, stable_arena
from venire.ratings.data.ballots import ballot_votes, ballots, ballots_from_judgments, to_battles
from venire.ratings.data.battles import battles
from venire.ratings.data.comparisons import Comparisons, comparisons, hard_targets, soft_targets
from venire.ratings.data.judgments import Judgments, merge_orders
from venire.ratings.data.models import filter_models
from venire.ratings.data.people import human_labels
from venire.ratings.data.result import Ratings
from venire.ratings.data.style import same_family, style, style_covariates
from venire.ratings.data.votes import Order, Votes, votes
from venire.ratings.data.wins import win_counts
from venire.ratings.design.placement import place_model
from venire.ratings.design.stopping import interim_analysis
from venire.ratings.diagnostics.accuracy import (
    direct_accuracy,
    pair_kinds,
    paired_preference_shift,
    preference_shift,
    rate_by_kind,
)
from venire.ratings.diagnostics.changes import rating_changes
from venire.ratings.diagnostics.corrected_accuracy import corrected_accuracy
from venire.ratings.diagnostics.goodness_of_fit import goodness_of_fit
from venire.ratings.diagnostics.influence import influence, smallest_removal
from venire.ratings.diagnostics.lack_of_fit import lack_of_fit, with_lack_of_fit
from venire.ratings.diagnostics.pair_coverage import pair_coverage
from venire.ratings.diagnostics.stability import rating_path, tie_sensitivity, volatility
from venire.ratings.diagnostics.transitivity import transitivity
from venire.ratings.diagnostics.unparsed import unparsed_replies
from venire.ratings.inference.any_time import (
    any_time_interval,
    any_time_radius,
    decide_pair,
    decide_top_k,
    interim_radius,
    stopping_half_width,
)
from venire.ratings.inference.bootstrap import bootstrap_battles, bootstrap_clusters
from venire.ratings.inference.contrasts import (
    battles_needed,
    contrast,
    difference,
    simultaneous,
    simultaneous_differences,
)
from venire.ratings.inference.ranking import rank_interval, ranking
from venire.ratings.judges.consistency import consistency
from venire.ratings.judges.discrimination import discrimination, score_reliability
from venire.ratings.judges.drift import drift, rating_drift
from venire.ratings.judges.elo_from_consistency import elo_from_consistency, elo_from_scores
from venire.ratings.judges.length import adjust_for, length_bias, partial_correlation
from venire.ratings.judges.matchup_ablation import matchup_ablation
from venire.ratings.judges.position import (
    adjust_for_position,
    position_audit,
    position_audits,
    position_bias,
    position_effects,
)
from venire.ratings.pairwise.bradley_terry import bradley_terry, bradley_terry_wins, m_elo
from venire.ratings.pairwise.components import SeparatedError
from venire.ratings.pairwise.covariance import bradley_terry_covariance, model_covariance
from venire.ratings.pairwise.covariates import covariates, position_covariate
from venire.ratings.pairwise.leave_out import without_each_judge, without_each_model, without_judge, without_model
from venire.ratings.pairwise.online import online_elo, trueskill
from venire.ratings.pairwise.plackett_luce import plackett_luce
from venire.ratings.pairwise.regression import CovariateSeparatedError
from venire.ratings.pairwise.solvers import NotConvergedError
from venire.ratings.pairwise.ties import NoTieParameterError, davidson, rao_kupper
from venire.ratings.pairwise.win_rate import against_baseline, win_rate, win_rate_balanced
from venire.ratings.peers.peer_agreement import peer_agreement, truncation
from venire.ratings.peers.peer_evaluation import peer_evaluation
from venire.ratings.peers.self_preference import family_excess, family_preference, self_preference_odds
from venire.ratings.soft_elo.beta import fit_beta
from venire.ratings.soft_elo.conformal import (
    jackknife_plus,
    leave_one_out_conformal,
    leave_two_out,
    split_conformal,
    split_coverage,
)
from venire.ratings.soft_elo.cross_validation import baselines, leave_one_out, smooth_labels
from venire.ratings.soft_elo.human_scale import human_scale
from venire.ratings.soft_elo.panel import soft_elo_panel
from venire.ratings.soft_elo.reliability import reliability
from venire.ratings.soft_elo.soft_elo import hard_elo, human_elo, soft_elo
from venire.ratings.voting.kemeny import kemeny_young
from venire.ratings.voting.rules import borda, copeland, markov, median_rank, minimax, ranked_pairs, schulze

__all__ = [
    "Comparisons",
    "CovariateSeparatedError",
    "Judgments",
    "NoTieParameterError",
    "NobodyLeftError",
    "NotConvergedError",
    "Order",
    "Ratings",
    "SeparatedError",
    "Votes",
    "adjust_for",
    "adjust_for_position",
    "against_baseline",
    "agreement",
    "am_elo",
    "any_time_interval",
    "any_time_radius",
    "ballot_votes",
    "ballots",
    "ballots_from_judgments",
    "baselines",
    "battles",
    "battles_needed",
    "bootstrap_battles",
    "bootstrap_clusters",
    "borda",
    "bradley_terry",
    "bradley_terry_covariance",
    "bradley_terry_wins",
    "calibration",
    "cohen_kappa",
    "comparisons",
    "consistency",
    "contrast",
    "copeland",
    "corrected_accuracy",
    "covariates",
    "davidson",
    "decide_pair",
    "decide_top_k",
    "difference",
    "direct_accuracy",
    "discrimination",
    "drift",
    "elo_from_consistency",
    "elo_from_scores",
    "evaluate",
    "family_excess",
    "family_preference",
    "filter_models",
    "fit_beta",
    "fleiss_kappa",
    "fleiss_kappa_counts",
    "goodness_of_fit",
    "gradient_ascents",
    "hard_elo",
    "hard_targets",
    "human_elo",
    "human_kappa",
    "human_labels",
    "human_scale",
    "influence",
    "interim_analysis",
    "interim_radius",
    "jackknife_plus",
    "judge_agreement",
    "kemeny_young",
    "krippendorff_alpha",
    "lack_of_fit",
    "leave_one_out",
    "leave_one_out_conformal",
    "leave_two_out",
    "length_bias",
    "m_elo",
    "markov",
    "matchup_ablation",
    "median_rank",
    "merge_orders",
    "micro_macro",
    "minimax",
    "model_covariance",
    "online_elo",
    "pair_coverage",
    "pair_kinds",
    "paired_preference_shift",
    "partial_correlation",
    "peer_agreement",
    "peer_evaluation",
    "people_agreement",
    "perturb",
    "place_model",
    "plackett_luce",
    "position_audit",
    "position_audits",
    "position_bias",
    "position_covariate",
    "position_effects",
    "predict_from_abilities",
    "predict_from_ratings",
    "preference_shift",
    "rank_interval",
    "ranked_pairs",
    "ranking",
    "rao_kupper",
    "rate_by_kind",
    "rating_changes",
    "rating_drift",
    "rating_path",
    "reliability",
    "robustness",
    "same_family",
    "schulze",
    "score_reliability",
    "self_preference_odds",
    "simultaneous",
    "simultaneous_differences",
    "smallest_removal",
    "smooth_labels",
    "soft_elo",
    "soft_elo_panel",
    "soft_targets",
    "split_conformal",
    "split_coverage",
    "stable_arena",
    "stopping_half_width",
    "style",
    "style_covariates",
    "tie_sensitivity",
    "to_battles",
    "to_elo",
    "to_logits",
    "transitivity",
    "trueskill",
    "truncation",
    "unanimity",
    "unparsed_replies",
    "volatility",
    "votes",
    "win_counts",
    "win_rate",
    "win_rate_balanced",
    "with_lack_of_fit",
    "without_each_judge",
    "without_each_model",
    "without_judge",
    "without_model",
]


def __dir__() -> list[str]:
    return __all__
