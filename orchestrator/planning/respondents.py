"""The judges of a campaign as those whose answers are told apart in a store."""

from __future__ import annotations

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key
from venire.arena.records import GENERATE, Respondent
from venire.judges import PROTOCOLS

__all__ = ["respondents"]


def respondents(campaign: CampaignSettings) -> list[tuple[JudgeSettings, Respondent]]:
    """The judges of a campaign as respondents.

    Raises InputError for an unknown protocol, for options that it does not take, and for two judges that are the same
    but for their names.
    """
    found: list[tuple[JudgeSettings, Respondent]] = []
    keys: dict[bytes, str] = {}
    for judge in campaign.judges:
        if judge.protocol not in PROTOCOLS or (judge.protocol == GENERATE and judge not in campaign.contestants):
            known = ", ".join(name for name in PROTOCOLS if name != GENERATE)
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: no protocol {judge.protocol!r}; there is: {known}"
            )
        entry = PROTOCOLS[judge.protocol]
        try:
            entry.check(judge.options)
        except InputError as error:
            raise InputError(f"{campaign.path}: {_who(judge)}: {error}") from None
        respondent = Respondent(
            judge.model,
            judge.protocol,
            judge.origin,
            tuple(sorted(judge.options.items())),
            entry.digests(judge.options),
        )
        twin = keys.setdefault(respondent_key(respondent), judge.name)
        if twin != judge.name:
            raise InputError(
                f"{campaign.path}: {twin!r} and {judge.name!r} are the same: same model, protocol and settings; for "
                "more verdicts of one judge use [plan] repeats, for more completions of a contestant samples"
            )
        found.append((judge, respondent))
    return found


def _who(judge: JudgeSettings) -> str:
    return f"{'contestant' if judge.protocol == GENERATE else 'judge'} {judge.name!r}"
