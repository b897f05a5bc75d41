"""Between two rounds: turn verdicts into the estimates that a policy receives, and decide whether to go on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from venire.arena.battles import Battles
from venire.arena.campaigns import StopSettings
from venire.arena.planning import Estimates, InterimAnalysis
from venire.ratings.design.stopping import PRIOR, check_stop, evidence, interim_analysis
from venire.ratings.judges.habits import planning_habits
from venire.ratings.pairwise.bradley_terry import bradley_terry
from venire.ratings.pairwise.covariance import model_covariance


@dataclass(frozen=True, slots=True)
class RatingFeedback:
    """Steers a campaign of `models` by Bradley-Terry ratings of its verdicts: an `arena.planning.Steering`.

    Interim analyses rate as `venire rate` does by default or, if `even`, by its method even-pairs: for a campaign whose
    policy chooses pairs by what is known of them. Estimates, which only the planner uses, are shrunk by a prior of one
    logit, so that a model that has won or lost everything also has an estimate. Nothing here is random. Raises
    `InputError` for a stopping rule that can never hold.
    """

    models: tuple[str, ...]
    stop: StopSettings
    even: bool = False

    def __post_init__(self) -> None:
        check_stop(self.stop, self.models)

    def estimate(self, battles: Battles) -> Estimates:
        """Ratings with their errors under the prior, NaN for models without a verdict, and the judges' habits."""
        data = evidence(battles, self.models).data
        if not len(data):
            nothing = np.full(len(data.models), np.nan)
            return Estimates(data.models, nothing, nothing.copy())
        logits = bradley_terry(data, ridge=PRIOR, errors="none").logits
        se = np.sqrt(np.diagonal(model_covariance(data, logits, ridge=PRIOR)))
        return Estimates(data.models, logits, se, planning_habits(battles, data.models, logits))

    def analyse(self, battles: Battles, nano_usd: int) -> InterimAnalysis:
        """Ratings with intervals for this analysis and for all analyses, `nano_usd` spent, and whether to stop."""
        return interim_analysis(battles, self.models, self.stop, nano=nano_usd, even=self.even)
