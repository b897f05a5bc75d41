"""Ratings from verdicts: arrays in, frozen results out; no files, no network."""

from __future__ import annotations

from venire.arena.scale import to_elo, to_logits
from venire.ratings.agreement.agreement import Agreement, agreement
from venire.ratings.agreement.calibration import Calibration, calibration
from venire.ratings.agreement.coefficient import Coefficient
from venire.ratings.agreement.judge_agreement import AlikePair, Fellowship, JudgeAgreement, judge_agreement
from venire.ratings.agreement.kappa import cohen_kappa, fleiss_kappa, fleiss_kappa_counts, unanimity
from venire.ratings.agreement.krippendorff import krippendorff_alpha
from venire.ratings.agreement.micro_macro import MicroMacro, micro_macro
from venire.ratings.am_elo.am_elo import AmElo, Restarts, am_elo
from venire.ratings.am_elo.evaluation import Evaluation, evaluate, judged, rated
from venire.ratings.am_elo.perturbing import Perturbation, perturbed
from venire.ratings.am_elo.stable_arena import DroppedJudge, NobodyLeftError, StableArena, stable_arena
from venire.ratings.am_elo.steadiness import Steadiness, f1_score, inconsistency, steadiness
from venire.ratings.data.ballots import ballot_votes, ballots, ballots_from_judgments, to_battles
from venire.ratings.data.comparisons import Comparisons, comparisons, hard_targets, soft_targets
from venire.ratings.data.judgments import Judgments, Merge, merge_orders
from venire.ratings.data.models import FilteredModels, filter_models, model_of_judge, own_models
from venire.ratings.data.result import Ratings
from venire.ratings.data.style import STYLE_NAMES, Style, same_family, style, style_covariates
from venire.ratings.data.votes import Order, Votes, votes
from venire.ratings.design.placement import Placement, place_model
from venire.ratings.design.stopping import interim_analysis
from venire.ratings.diagnostics.accuracy import (
    DirectAccuracy,
    PreferenceShift,
    direct_accuracy,
    pair_kinds,
    preference_shift,
    rate_by_kind,
)
from venire.ratings.diagnostics.coverage_of_pairs import PairCoverage, pair_coverage
from venire.ratings.diagnostics.goodness_of_fit import GoodnessOfFit, OddPair, goodness_of_fit
from venire.ratings.diagnostics.influence import (
    Effects,
    Influence,
    Left,
    clear_beyond,
    effects,
    influence,
    outlying_beyond,
    rated_together,
)
from venire.ratings.diagnostics.removal import Removal, smallest_removal
from venire.ratings.diagnostics.tie_sensitivity import TieRule, TieSensitivity, tie_sensitivity
from venire.ratings.diagnostics.transitivity import Cycle, Transitivity, transitivity
from venire.ratings.diagnostics.unread import Unread, UnreadOf, unread
from venire.ratings.diagnostics.volatility import RatingPath, Volatility, rating_path, volatility
from venire.ratings.inference.any_time import (
    Decision,
    TopK,
    any_time_interval,
    any_time_radius,
    decide_pair,
    decide_top_k,
    interim_radius,
    stopping_half_width,
)
from venire.ratings.inference.bootstrap import Replicates, bootstrap_battles, bootstrap_clusters
from venire.ratings.inference.contrasts import (
    BattlesNeeded,
    Contrast,
    Simultaneous,
    battles_needed,
    contrast,
    difference,
    simultaneous,
    simultaneous_differences,
)
from venire.ratings.inference.ranking import Ranking, RankInterval, rank_interval, ranking
from venire.ratings.judges.bias import (
    FamilyExcess,
    LengthBias,
    Partial,
    PositionBias,
    family_excess,
    human_kappa,
    length_bias,
    partial_correlation,
    position_bias,
)
from venire.ratings.judges.consistency import Consistency, JudgeConsistency, consistency
from venire.ratings.judges.discrimination import Discrimination, discrimination, score_reliability
from venire.ratings.judges.drift import Drift, RatingDrift, drift, rating_drift
from venire.ratings.judges.elo_from_consistency import EloFromConsistency, elo_from_consistency, elo_from_scores
from venire.ratings.judges.held_equal import HeldEqual, held_equal
from venire.ratings.judges.order_effect import OrderEffect, order_effects, place_held_equal
from venire.ratings.judges.own_family import OwnFamily, own_family
from venire.ratings.judges.position_audit import BattleAudit, PositionAudit, position_audit, position_audits
from venire.ratings.pairwise.bradley_terry import (
    NotConvergedError,
    SeparatedError,
    bradley_terry,
    bradley_terry_wins,
    m_elo,
)
from venire.ratings.pairwise.covariance import Covariance, bradley_terry_covariance, model_covariance
from venire.ratings.pairwise.covariates import CovariateRatings, covariates, position_covariate
from venire.ratings.pairwise.leave_out import (
    LeftOut,
    without_each_cluster,
    without_each_judge,
    without_each_model,
    without_judge,
    without_model,
)
from venire.ratings.pairwise.online import OnlineElo, TrueSkill, online_elo, trueskill
from venire.ratings.pairwise.plackett_luce import plackett_luce
from venire.ratings.pairwise.regression import CovariateSeparatedError
from venire.ratings.pairwise.ties import NoTieParameterError, TieRatings, davidson, rao_kupper
from venire.ratings.pairwise.win_rate import BaselineRates, WinRates, against_baseline, win_rate, win_rate_balanced
from venire.ratings.pairwise.wins import WinCounts, win_counts
from venire.ratings.peers.own_odds import OwnOdds, own_odds
from venire.ratings.peers.peer_agreement import PeerAgreement, Truncation, peer_agreement, truncation
from venire.ratings.peers.peers import PeerRow, SelfPreference, self_preference
from venire.ratings.soft_elo.beta import Beta, fit_beta
from venire.ratings.soft_elo.conformal import (
    Conformal,
    Coverage,
    LeaveTwoOut,
    conformal_rank,
    jackknife_plus,
    leave_one_out_conformal,
    leave_two_out,
    split_conformal,
    split_coverage,
)
from venire.ratings.soft_elo.cross_validation import (
    Accuracy,
    Baselines,
    LeaveOneOut,
    PlacedRatings,
    baselines,
    leave_one_out,
    smooth_labels,
)
from venire.ratings.soft_elo.human_scale import HumanScale, human_scale
from venire.ratings.soft_elo.reliability import Reliability, reliability
from venire.ratings.soft_elo.soft_elo import SoftElo, hard_elo, human_elo, soft_elo
from venire.ratings.voting.kemeny import kemeny_young
from venire.ratings.voting.markov import markov
from venire.ratings.voting.median_rank import median_rank
from venire.ratings.voting.ranked_pairs import ranked_pairs
from venire.ratings.voting.schulze import schulze
from venire.ratings.voting.tallies import borda, copeland, minimax

__all__ = [
    "STYLE_NAMES",
    "Accuracy",
    "Agreement",
    "AlikePair",
    "AmElo",
    "BaselineRates",
    "Baselines",
    "BattleAudit",
    "BattlesNeeded",
    "Beta",
    "Calibration",
    "Coefficient",
    "Comparisons",
    "Conformal",
    "Consistency",
    "Contrast",
    "Covariance",
    "CovariateRatings",
    "CovariateSeparatedError",
    "Coverage",
    "Cycle",
    "Decision",
    "DirectAccuracy",
    "Discrimination",
    "Drift",
    "DroppedJudge",
    "Effects",
    "EloFromConsistency",
    "Evaluation",
    "FamilyExcess",
    "Fellowship",
    "FilteredModels",
    "GoodnessOfFit",
    "HeldEqual",
    "HumanScale",
    "Influence",
    "JudgeAgreement",
    "JudgeConsistency",
    "Judgments",
    "LeaveOneOut",
    "LeaveTwoOut",
    "Left",
    "LeftOut",
    "LengthBias",
    "Merge",
    "MicroMacro",
    "NoTieParameterError",
    "NobodyLeftError",
    "NotConvergedError",
    "OddPair",
    "OnlineElo",
    "Order",
    "OrderEffect",
    "OwnFamily",
    "OwnOdds",
    "PairCoverage",
    "Partial",
    "PeerAgreement",
    "PeerRow",
    "Perturbation",
    "PlacedRatings",
    "Placement",
    "PositionAudit",
    "PositionBias",
    "PreferenceShift",
    "RankInterval",
    "Ranking",
    "RatingDrift",
    "RatingPath",
    "Ratings",
    "Reliability",
    "Removal",
    "Replicates",
    "Restarts",
    "SelfPreference",
    "SeparatedError",
    "Simultaneous",
    "SoftElo",
    "StableArena",
    "Steadiness",
    "Style",
    "TieRatings",
    "TieRule",
    "TieSensitivity",
    "TopK",
    "Transitivity",
    "TrueSkill",
    "Truncation",
    "Unread",
    "UnreadOf",
    "Volatility",
    "Votes",
    "WinCounts",
    "WinRates",
    "against_baseline",
    "agreement",
    "am_elo",
    "any_time_interval",
    "any_time_radius",
    "ballot_votes",
    "ballots",
    "ballots_from_judgments",
    "baselines",
    "battles_needed",
    "bootstrap_battles",
    "bootstrap_clusters",
    "borda",
    "bradley_terry",
    "bradley_terry_covariance",
    "bradley_terry_wins",
    "calibration",
    "clear_beyond",
    "cohen_kappa",
    "comparisons",
    "conformal_rank",
    "consistency",
    "contrast",
    "copeland",
    "covariates",
    "davidson",
    "decide_pair",
    "decide_top_k",
    "difference",
    "direct_accuracy",
    "discrimination",
    "drift",
    "effects",
    "elo_from_consistency",
    "elo_from_scores",
    "evaluate",
    "f1_score",
    "family_excess",
    "filter_models",
    "fit_beta",
    "fleiss_kappa",
    "fleiss_kappa_counts",
    "goodness_of_fit",
    "hard_elo",
    "hard_targets",
    "held_equal",
    "human_elo",
    "human_kappa",
    "human_scale",
    "inconsistency",
    "influence",
    "interim_analysis",
    "interim_radius",
    "jackknife_plus",
    "judge_agreement",
    "judged",
    "kemeny_young",
    "krippendorff_alpha",
    "leave_one_out",
    "leave_one_out_conformal",
    "leave_two_out",
    "length_bias",
    "m_elo",
    "markov",
    "median_rank",
    "merge_orders",
    "micro_macro",
    "minimax",
    "model_covariance",
    "model_of_judge",
    "online_elo",
    "order_effects",
    "outlying_beyond",
    "own_family",
    "own_models",
    "own_odds",
    "pair_coverage",
    "pair_kinds",
    "partial_correlation",
    "peer_agreement",
    "perturbed",
    "place_held_equal",
    "place_model",
    "plackett_luce",
    "position_audit",
    "position_audits",
    "position_bias",
    "position_covariate",
    "preference_shift",
    "rank_interval",
    "ranked_pairs",
    "ranking",
    "rao_kupper",
    "rate_by_kind",
    "rated",
    "rated_together",
    "rating_drift",
    "rating_path",
    "reliability",
    "same_family",
    "schulze",
    "score_reliability",
    "self_preference",
    "simultaneous",
    "simultaneous_differences",
    "smallest_removal",
    "smooth_labels",
    "soft_elo",
    "soft_targets",
    "split_conformal",
    "split_coverage",
    "stable_arena",
    "steadiness",
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
    "unread",
    "volatility",
    "votes",
    "win_counts",
    "win_rate",
    "win_rate_balanced",
    "without_each_cluster",
    "without_each_judge",
    "without_each_model",
    "without_judge",
    "without_model",
]
