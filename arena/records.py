"""The nouns of a campaign, as frozen records; see docs/architecture.md for the words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

EDIT = "edit"
"""The protocol by which an editor writes a completion again with a change."""
GENERATE = "generate"
"""The protocol by which a contestant is asked for a completion; all but this and `EDIT` are judges'."""
RECORDED = "recorded"
"""The protocol of judgments that were made elsewhere, by whatever prompts."""


class Status(IntEnum):
    """What became of a trial that was asked to the end."""

    OK = 0
    UNREADABLE = 1
    REFUSED = 2
    TRUNCATED = 3
    FILTERED = 4
    TOO_LONG = 5


class Origin(StrEnum):
    """Where a respondent's answers come from; part of the trial key, and shown on every board."""

    REAL = "real"
    SIMULATED = "simulated"
    RECORDED = "recorded"
    PEOPLE = "people"
    """Votes of people, which no respondent has: they are imported, or rated from a table."""

    @classmethod
    def of_model(cls, model: str) -> Origin:
        """The origin that a model name denotes: `simulated/<profile>@<seed>` is simulated, any other is real."""
        return cls.SIMULATED if model.startswith("simulated/") else cls.REAL


@dataclass(frozen=True, slots=True)
class Instruction:
    """A prompt put to contestants: its turns in order, with an optional reference answer and category."""

    id: str
    turns: tuple[str, ...]
    reference: str | None = None
    category: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """One model's answer to one instruction (named by its id); `variant` marks an edited copy."""

    model: str
    instruction: str
    text: str
    sample: int = 1
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """A known rating of a model, in Elo points of people's votes."""

    model: str
    elo: float


@dataclass(frozen=True, slots=True, order=True)
class Matchup:
    """Two models in canonical order, with the width of their Elo gap (None where ratings are not known)."""

    model_a: str
    model_b: str
    gap: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.model_a < self.model_b:
            raise ValueError(f"model_a must sort before model_b, got {self.model_a!r} and {self.model_b!r}")


@dataclass(frozen=True, slots=True)
class Respondent:
    """A judge: a model with the settings that shape its answers. Its lane, key and price are not part of it."""

    model: str
    protocol: str
    origin: Origin
    options: tuple[tuple[str, str], ...] = ()
    prompts: tuple[bytes, ...] = ()
    """Digests of the prompt texts that the protocol sends."""

    def __post_init__(self) -> None:
        names = [name for name, _ in self.options]
        if sorted(set(names)) != names:
            raise ValueError("options must be sorted by name, each name once")


@dataclass(frozen=True, slots=True)
class Trial:
    """The unit of work, of payment and of resumption: what is shown to one respondent, once."""

    key: bytes
    """16 bytes: digest of everything that can change the answer."""
    respondent: bytes
    protocol: str
    instruction: str
    shown: tuple[bytes, ...]
    """Completion keys in the order shown: none where the respondent writes one."""
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Battle:
    """The models of a pairwise trial in canonical order, whether B is shown first, and the width of their gap."""

    model_a: int
    model_b: int
    swapped: bool
    gap: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial as the plan knows it: its key, and the store's short names of what it is made of."""

    key: bytes
    protocol: int
    respondent: int
    instruction: int
    shown: tuple[int, ...]
    """Completions in the order shown."""
    repeat: int
    battle: Battle | None = None
    """What a pairwise trial is an order of."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a trial's names stand for, in the order shown; `fences` has the instruction's fence first."""

    instruction: Instruction
    shown: tuple[Completion, ...]
    fences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One call to a respondent, before any provider's dialect."""

    messages: tuple[Mapping[str, str], ...]
    max_tokens: int
    temperature: float | None = 0.0
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer, for endpoints that can hold to one; the prompt asks for the same in words."""
    top_logprobs: int = 0
    """How many likeliest tokens are wanted at each place of the answer, with their log-probabilities; 0: none."""
    cut: int = 0
    """Characters that were cut out of the texts that it shows, so that it fits the respondent's context."""
    otherwise: Outcome | None = None
    """What the trial comes to where this cannot be sent; None: it is too long."""


class Reply(NamedTuple):
    """What a provider answered; tokens are counts, `cost` is in nano-dollars and None when not known.

    A named tuple, since one is made for every call: a frozen dataclass of fourteen fields takes a microsecond longer.
    """

    text: str
    finish: str = "stop"
    """stop, length, content_filter or refusal."""
    reasoning: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: int | None = None
    served_model: str = ""
    fingerprint: str = ""
    raw: str = ""
    estimated: bool = False
    """Whether tokens were estimated, since the provider counted none."""
    written_tokens: int | None = None
    """Of the input tokens those that the provider wrote to its cache; None where it does not say."""
    logprobs: tuple[tuple[tuple[str, float], ...], ...] = ()
    """The likeliest tokens at the first places of the text, each with its natural log-probability; empty: not given."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A pairwise reading in the order shown: +1 first, 0 tie, -1 second; `score` is first minus second."""

    winner: int
    score: float | None = None
    criteria: tuple[tuple[float, float], ...] = ()


class AnswerGrade(IntEnum):
    """The grade of one completion, as protocols read it, stores keep it and ratings count it."""

    INCORRECT = 0
    CORRECT = 1
    NOT_ATTEMPTED = 2


@dataclass(frozen=True, slots=True)
class Grade:
    """A reading of one completion: an `AnswerGrade`, or of a yes-or-no question 1 and 0; and the word that said so."""

    label: int
    word: str


@dataclass(frozen=True, slots=True)
class Ballot:
    """A reading of several completions: the place of each in the order shown, 1 is best, 0 is not ranked."""

    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """A contestant's own text."""

    text: str


Reading = Preference | Grade | Ballot | GeneratedText


UNSENT = "context"
"""The rule of a verdict that is too long without a call: the request was counted and not sent."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a conversation ended: a status, and a reading exactly when the status is OK."""

    status: Status
    reading: Reading | None = None
    rule: str = ""
    """Name of the parsing rule that read it."""

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != (self.reading is not None):
            raise ValueError("an outcome has a reading exactly when its status is OK")


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome in model terms: of a battle `label`, `score` and `criteria` are of A against B."""

    trial: bytes
    status: Status
    label: int | None = None
    """+1 A, 0 tie, -1 B of a battle; of one completion an `AnswerGrade`, or of a yes-or-no question 1 and 0."""
    score: float | None = None
    criteria: tuple[float, ...] = ()
    """A's and B's score on each criterion in turn."""
    places: tuple[int, ...] = ()
    """The place of each completion in the order shown; 1 is best, 0 is not ranked."""
    answered: bool = False
    """Whether the reply is what was asked for: a contestant's own text."""
    rule: str = ""
    flagged: bool = False
    """Whether a completion that was shown tries to instruct the judge."""

    def __post_init__(self) -> None:
        found = (self.label is not None) + bool(self.places) + self.answered
        if found != (self.status is Status.OK):
            raise ValueError("a verdict has one of label, places and answered exactly when its status is OK")
        if self.status is not Status.OK and (self.score is not None or self.criteria):
            raise ValueError("a verdict has a score only when its status is OK")


Conversation = Generator[Request, Reply, Outcome]
Protocol = Callable[[Trial, Material, Mapping[str, str]], Conversation]
