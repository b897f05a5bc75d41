"""Names in a campaign file that a registry knows, and what the file's keys mean to the parts behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from venire.arena.records import RECORDED
from venire.arena.registry import POLICIES

__all__ = ["OneOf", "chooses_battles", "needless_matchups", "policies_with"]


@dataclass(frozen=True)
class OneOf:
    """A text that must be a name of a registry, or one of `also`; `lead` stands before the names in a message."""

    registry: Mapping[str, Any]
    also: tuple[str, ...] = ()
    lead: str = ""

    @property
    def accepted(self) -> str:
        """The names in words, those of installed packages included."""
        *most, last = (f'"{name}"' for name in (*self.registry, *self.also))
        return f"{self.lead}{', '.join(most)} or {last}"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def _known(self, value: str) -> str:
        if value not in self.registry and value not in self.also:
            raise PydanticCustomError("unknown_name", "there is nothing of this name")
        return value


def chooses_battles(policy: str) -> bool:
    """Whether a policy plans battles, not matchups for all instructions."""
    return policy in POLICIES and not POLICIES[policy].crossed


def needless_matchups(policy: str) -> str:
    """Why no number of matchups is given for a policy; empty where one is, and for an unknown policy."""
    if policy == RECORDED:
        return "takes every pair that is on record"
    if policy not in POLICIES:
        return ""
    if not POLICIES[policy].crossed:
        return "chooses battles, one pair on one instruction each"
    return "takes every pair of models" if POLICIES[policy].every_pair else ""


def policies_with(setting: str) -> tuple[str, ...]:
    """Policies that take a key of a phase which others do not."""
    return tuple(name for name, policy in POLICIES.items() if setting in policy.settings)
