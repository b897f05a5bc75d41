"""Registries: protocols, providers, policies, rating methods and file formats by the names that users write.

Each part is one object with all facts about it, found by a reference such as `venire.judges.protocols.binary:BINARY`.
Venire's own are the lines below. An installed package adds to them by an entry point in the group of their kind:

    [project.entry-points."venire.protocols"]
    scale = "venire_scale:SCALE"

Nothing is imported before it is used: a name is looked up first among our own, then among the entry points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Any, Generic, Literal, TypeVar

from venire.arena.errors import InputError
from venire.arena.wording import meant, suggest

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry], Generic[Entry]):
    """The parts of one kind by name, our own first; each is loaded when it is first asked for.

    `kind` names them in messages, `entry` refers to the class that all of them are instances of, and `own` maps our
    names to references `module:object`. Entry points of the group `venire.<plural>` are added; the plural has an s.

    >>> PROTOCOLS["binary"].number
    3
    """

    def __init__(self, kind: str, entry: str, own: Mapping[str, str], *, plural: str | None = None) -> None:
        self.kind = kind
        self.group = f"venire.{plural or f'{kind}s'}"
        self._entry = entry
        self._own = {name: EntryPoint(name, reference, self.group) for name, reference in own.items()}
        self._loaded: dict[str, Entry] = {}
        self._registered: dict[str, Entry] = {}
        self.changes = 0
        """How often parts were registered or taken away: what is derived from all parts may be kept until then."""

    def __getitem__(self, name: str) -> Entry:
        """The part of that name. Raises KeyError for an unknown name, InputError for one that cannot be loaded."""
        if name in self._registered:
            return self._registered[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(self._own[name] if name in self._own else self.installed[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self.installed
        yield from self._registered

    def __len__(self) -> int:
        return len(self._own) + len(self.installed) + len(self._registered)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._registered or name in self.installed

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # there is one of each kind, and an annotation may hold it

    def register(self, name: str, part: Entry) -> None:
        """Add a part in this process alone, as a notebook or a test does. Raises InputError for a taken name."""
        if name in self:
            raise InputError(f"there is a {self.kind} {name!r} of {self.package(name)} already: choose another name")
        self._registered[name] = self._checked(name, "this process", part)
        self.changes += 1

    def unregister(self, name: str) -> None:
        """Take a part away that was added by `register`. Raises KeyError for any other."""
        del self._registered[name]
        self.changes += 1

    def named(self, word: str) -> str:
        """The name that a user meant, whatever its case and whether `_` or `-` is in it; the word where none is."""
        return word if word in self else meant(word, self)

    def find(self, name: str) -> Entry:
        """The part of that name, for a name that a user wrote. Raises InputError that lists what there is."""
        known = self.named(name)
        if known not in self:
            raise InputError(f"there is no {self.kind} {name!r}; {suggest(name, self)}")
        return self[known]

    @cached_property
    def installed(self) -> Mapping[str, EntryPoint]:
        """What installed packages add, by name.

        Raises InputError where two packages give one name, or one of them a name of ours.
        """
        found: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=self.group), key=lambda one: one.name):
            known = self._own.get(point.name) or found.get(point.name)
            if known is not None and known != point:
                raise InputError(
                    f"two packages give a {self.kind} {point.name!r}: {_package(known)} and {_package(point)}; "
                    "uninstall one of them"
                )
            found[point.name] = point
        return found

    def package(self, name: str) -> str:
        """The package that gives a part, with its version. Raises KeyError for an unknown name."""
        if name in self._registered:
            return "this process"
        return _package(self._own[name] if name in self._own else self.installed[name])

    def _load(self, point: EntryPoint) -> Entry:
        try:
            part = point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            raise InputError(
                f"the {self.kind} {point.name!r} of {_package(point)} cannot be loaded from {point.value!r}: {error}; "
                "mend or uninstall that package"
            ) from error
        return self._checked(point.name, _package(point), part)

    def _checked(self, name: str, package: str, part: Any) -> Entry:
        if not isinstance(part, resolve_name(self._entry)):
            raise InputError(
                f"the {self.kind} {name!r} of {package} is a {type(part).__name__}, and must be a "
                f"{self._entry.replace(':', '.')}: mend it, or uninstall that package"
            )
        found: Entry = part
        return found


def _package(point: EntryPoint) -> str:
    return "venire" if point.dist is None else f"{point.dist.name} {point.dist.version}"


# What a type checker accepts in Python: our own names, held to the lines below by a test. A name that a package adds is
# accepted too when it is used, and is written `cast(Any, "NAME")` for a type checker.
ProtocolName = Literal[
    "two-stage",
    "criteria",
    "binary",
    "direct",
    "direct-reference",
    "listwise",
    "echo",
    "five-point",
    "generate",
    "edit",
    "recorded",
]
ProviderName = Literal["openai", "anthropic", "gemini", "litellm"]
PolicyName = Literal[
    "widest-gap", "banded-gap", "half-banded", "random", "all-pairs", "balanced", "near-tie", "information", "gap-error"
]

PROTOCOLS: Registry[Any] = Registry(
    "protocol",
    "venire.judges.entry:ProtocolEntry",
    {
        "two-stage": "venire.judges.protocols.two_stage:TWO_STAGE",
        "criteria": "venire.judges.protocols.criteria:PROTOCOL",
        "binary": "venire.judges.protocols.binary:BINARY",
        "direct": "venire.judges.protocols.direct:DIRECT",
        "direct-reference": "venire.judges.protocols.direct:DIRECT_REFERENCE",
        "listwise": "venire.judges.protocols.listwise:LISTWISE",
        "echo": "venire.judges.protocols.echo:ECHO",
        "five-point": "venire.judges.protocols.five_point:FIVE_POINT",
        "generate": "venire.judges.protocols.generate:GENERATE",
        "edit": "venire.judges.protocols.edit:EDIT",
        "recorded": "venire.judges.protocols.recorded:RECORDED",
    },
)
"""Judge protocols, by the name used in a campaign file: `venire.judges.entry.ProtocolEntry`."""

PROVIDERS: Registry[Any] = Registry(
    "provider",
    "venire.judges.providers.base:ProviderEntry",
    {
        "openai": "venire.judges.providers.openai:OPENAI",
        "anthropic": "venire.judges.providers.anthropic:ANTHROPIC",
        "gemini": "venire.judges.providers.gemini:GEMINI",
        "litellm": "venire.judges.providers.litellm:LITELLM",
    },
)
"""Ways to send calls, by the name used in a campaign file: `venire.judges.providers.base.ProviderEntry`."""

POLICIES: Registry[Any] = Registry(
    "policy",
    "venire.arena.planning:Policy",
    {
        "widest-gap": "venire.orchestrator.policies.matchup_policies:WIDEST_GAP",
        "banded-gap": "venire.orchestrator.policies.matchup_policies:BANDED_GAP",
        "half-banded": "venire.orchestrator.policies.matchup_policies:HALF_BANDED",
        "random": "venire.orchestrator.policies.matchup_policies:RANDOM",
        "all-pairs": "venire.orchestrator.policies.matchup_policies:ALL_PAIRS",
        "balanced": "venire.orchestrator.policies.battle_policies:BALANCED",
        "near-tie": "venire.orchestrator.policies.battle_policies:NEAR_TIE",
        "information": "venire.orchestrator.policies.battle_policies:INFORMATION",
        "gap-error": "venire.orchestrator.policies.battle_policies:GAP_ERROR",
    },
    plural="policies",
)
"""Matchup policies, by the name used in a campaign file: `venire.arena.planning.Policy`."""

METHODS: Registry[Any] = Registry(
    "method",
    "venire.ratings.methods.methods:Method",
    {
        "bradley-terry": "venire.ratings.methods.pairwise_recipes:BRADLEY_TERRY",
        "even-pairs": "venire.ratings.methods.pairwise_recipes:BALANCED_PAIRS",
        "covariates": "venire.ratings.methods.pairwise_recipes:COVARIATES",
        "soft-elo": "venire.ratings.methods.soft_elo_recipes:SOFT_ELO",
        "smoothed-elo": "venire.ratings.methods.soft_elo_recipes:SMOOTHED_ELO",
        "scaled-elo": "venire.ratings.methods.soft_elo_recipes:SCALED_ELO",
        "hard-elo": "venire.ratings.methods.soft_elo_recipes:HARD_ELO",
        "human-elo": "venire.ratings.methods.soft_elo_recipes:HUMAN_ELO",
        "m-elo": "venire.ratings.methods.pairwise_recipes:M_ELO",
        "elo": "venire.ratings.methods.pairwise_recipes:ELO",
        "trueskill": "venire.ratings.methods.pairwise_recipes:TRUESKILL",
        "am-elo": "venire.ratings.methods.am_elo_recipes:AM_ELO",
        "stable-arena": "venire.ratings.methods.am_elo_recipes:STABLE_ARENA",
        "win-rate": "venire.ratings.methods.pairwise_recipes:WIN_RATE",
        "win-rate-balanced": "venire.ratings.methods.pairwise_recipes:WIN_RATE_BALANCED",
        "kemeny": "venire.ratings.methods.voting_recipes:KEMENY",
        "borda": "venire.ratings.methods.voting_recipes:BORDA",
        "copeland": "venire.ratings.methods.voting_recipes:COPELAND",
        "minimax": "venire.ratings.methods.voting_recipes:MINIMAX",
        "ranked-pairs": "venire.ratings.methods.voting_recipes:RANKED_PAIRS",
        "schulze": "venire.ratings.methods.voting_recipes:SCHULZE",
        "markov": "venire.ratings.methods.voting_recipes:MARKOV",
        "median-rank": "venire.ratings.methods.voting_recipes:MEDIAN_RANK",
        "plackett-luce": "venire.ratings.methods.voting_recipes:PLACKETT_LUCE",
        "consistency": "venire.ratings.methods.pairwise_recipes:CONSISTENCY",
    },
)
"""Rating methods, by the name used on the command line: `venire.ratings.methods.methods.Method`."""

FORMATS: Registry[Any] = Registry(
    "format",
    "venire.storage.transfer.formats.entry:Format",
    {
        "alpaca-eval": "venire.storage.transfer.formats.alpaca_eval:ALPACA_EVAL",
        "arena-hard": "venire.storage.transfer.formats.mt_bench:ARENA_HARD",
        "mt-bench": "venire.storage.transfer.formats.mt_bench:MT_BENCH",
        "chatbot-arena": "venire.storage.transfer.formats.chatbot_arena:CHATBOT_ARENA",
        "soft-elo": "venire.storage.transfer.formats.chatbot_arena:SOFT_ELO",
        "am-elo": "venire.storage.transfer.formats.chatbot_arena:AM_ELO",
        "llm-comparator": "venire.storage.transfer.formats.llm_comparator:LLM_COMPARATOR",
        "wildbench": "venire.storage.transfer.formats.wildbench:WILDBENCH",
        "label-studio": "venire.storage.transfer.formats.label_studio:LABEL_STUDIO",
        "argilla": "venire.storage.transfer.formats.argilla:ARGILLA",
        "judgelm": "venire.storage.transfer.formats.judge_models:JUDGELM",
        "pandalm": "venire.storage.transfer.formats.judge_models:PANDALM",
        "promptfoo": "venire.storage.transfer.formats.promptfoo:PROMPTFOO",
        "inspect-ai": "venire.storage.transfer.formats.eval_logs:INSPECT",
        "lm-eval": "venire.storage.transfer.formats.eval_logs:LM_EVAL",
        "batch": "venire.storage.transfer.formats.batches:BATCHES",
        "openai-evals": "venire.storage.transfer.formats.eval_logs:OPENAI_EVALS",
        "helm": "venire.storage.transfer.formats.eval_logs:HELM",
        "langfuse": "venire.storage.transfer.formats.traces:LANGFUSE",
        "langsmith": "venire.storage.transfer.formats.traces:LANGSMITH",
        "preferences": "venire.storage.transfer.formats.preferences:PREFERENCES",
        "dataset": "venire.storage.transfer.formats.dataset:DATASET",
    },
)
"""File formats of other tools, by the name used on the command line: `venire.storage.transfer.formats.entry.Format`."""

REGISTRIES = (PROTOCOLS, PROVIDERS, POLICIES, METHODS, FORMATS)
