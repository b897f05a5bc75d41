"""Pairs of texts judged from memory: read from any table, planned as a campaign of two sides, asked, and given back."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from venire.arena.battles import Statistics
from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError, VenireError
from venire.arena.planning import Pick
from venire.arena.records import Completion, Instruction, Origin, Rating
from venire.arena.wording import money
from venire.configs.checks import is_simulated
from venire.configs.loading import resolve
from venire.configs.schema import Budget, Campaign, Data, Judge, Plan
from venire.configs.short_names import missing_address
from venire.judges import PROTOCOLS
from venire.judges.providers.price_table import selling_vendor
from venire.orchestrator.planning.oversized import OversizedText
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.prices import price_warnings
from venire.session import GivenBattles, Records, Session
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.transfer.formats.columns import INSTRUCTION_TEXTS, answers_hint, with_text
from venire.storage.transfer.formats.source import MissingColumnError, NoRowsError, open_table
from venire.storage.transfer.memory import is_missing, is_table, memory_table
from venire.wording import set_aside

Winner = Literal["a", "b", "tie"]
Report = Callable[[str], None]

_NAME = "pairs"
"""Of the campaign in the store."""
_CALL = Path("vn.judge")
"""What messages name in place of a campaign file; `.env` is looked for in the working directory."""
_SIDES = ("a", "b")
_SHOWN = 5
"""Texts that are named of those left out."""
_COLUMNS = ("instruction", *_SIDES, "reference")


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """One judge's verdicts on one pair, asked in both orders."""

    pair: int
    """Position among the given pairs, counted from 0."""
    judge: str
    winner: Winner | None
    """From both orders: "tie" for a judge that always prefers the answer shown first. None: neither was readable."""
    a_first: Winner | None
    """The verdict with `a` shown first; None where the reply could not be read, or the call failed or was not made."""
    b_first: Winner | None
    """The same with `b` shown first."""
    replies: tuple[tuple[str, ...], tuple[str, ...]]
    """The judge's replies in each order, one text per step: with `two-stage` its reasons, then its verdict."""
    cost: float
    """Cost of both orders in US dollars, of an earlier call too."""

    @property
    def flipped(self) -> bool:
        """Whether the two orders name different winners."""
        return {self.a_first, self.b_first} == {"a", "b"}


@dataclass(frozen=True)
class Pair:
    """Two answers to one instruction."""

    instruction: str
    a: str
    b: str
    reference: str | None

    @cached_property
    def id(self) -> str:
        """Names the instruction: the same text is the same in every call, and a changed one is another."""
        return _digest(self.instruction)

    @cached_property
    def sides(self) -> tuple[str, str]:
        """Names of two models that wrote this answer each: an instruction may stand in any number of pairs."""
        return f"a {_digest(self.a)}", f"b {_digest(self.b)}"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def judge_pairs(
    pairs: Any,
    judges: Judge | str | Sequence[Judge | str],
    protocol: str,
    *,
    budget: Budget | float | Decimal | None,
    store: Path | None,
    mapping: Mapping[str, str],
    elo: Mapping[str, float] | None,
    progress: Callable[[Statistics], None] | None,
    warn: Report | None,
    environ: Mapping[str, str] | None,
) -> list[JudgedPair]:
    """What `venire.judge` does, whose arguments these are."""
    asked = [_asked(one, protocol) for one in _several(judges)]
    given = list(read_pairs(pairs, mapping))
    if not given:
        return []
    with _folder(store) as path:
        campaign = _campaign(path, asked, budget)
        _refuse_unknown(campaign, elo)
        battles = [Pick(*pair.sides, instruction=pair.id) for pair in dict.fromkeys(given)]
        with Session(campaign, amend=True, given=GivenBattles(battles, _records(given, elo))) as session:
            for sentence in price_warnings(campaign.judges):
                _say(sentence, warn)
            for sentence in _left_out(session.oversized(), given):
                _say(sentence, warn)
            summary = session.run(environ=environ, progress=progress, warn=warn)
            paid, found = session.spending, _verdicts(session)
    names = [one.name for one in campaign.judges]
    keys = ((name, pair.id, *pair.sides, swapped) for pair in set(given) for name in names for swapped in (False, True))
    unreadable = sum(key in found and found[key][0] is None for key in keys)
    _report(summary, paid, unreadable, store, warn)
    return [_judged(number, name, found, pair) for number, pair in enumerate(given) for name in names]


def _several(judges: Judge | str | Sequence[Judge | str]) -> list[Judge | str]:
    """One judge or several, as a list. Raises InputError for none, and for one without a name."""
    several = [judges] if isinstance(judges, Judge | str) else list(judges)
    if not several:
        raise InputError("judge: name at least one judge")
    if "" in several:
        raise InputError("judge is '': give a vn.Judge, such as vn.Judge(model=...), or the name of a model")
    return several


def _shown(value: Any) -> str:
    """What was given in place of something else, for a message: a plain value, of others the type alone."""
    plain = isinstance(value, int | float | None) or (isinstance(value, str) and not value)
    return repr(value) if plain else type(value).__name__


def _asked(judge: Judge | str, protocol: str) -> Judge:
    """A judge with its protocol, and where only its model is named, with the address and key of that model's vendor.

    Raises InputError for a model whose vendor is not known, and for a protocol that shows other than two answers.
    """
    if isinstance(judge, str):
        judge = _named(judge)
    if "protocol" not in judge.given:
        judge = Judge(**{**judge.given, "protocol": protocol})
    if judge.protocol in PROTOCOLS and PROTOCOLS[judge.protocol].shape.pairwise:
        return judge
    wrong = "does not show two answers" if judge.protocol in PROTOCOLS else "does not exist"
    pairwise = ", ".join(name for name in PROTOCOLS if PROTOCOLS[name].shape.pairwise)
    raise InputError(f"protocol {judge.protocol!r} {wrong}: name one of {pairwise}")


def _named(model: str) -> Judge:
    """The judge of a model by its name, with its vendor before it or as the price table has it for one vendor."""
    judge = Judge(name=model, model=model)
    if judge.base_url is not None or is_simulated(judge.model):
        return judge
    vendor = selling_vendor(model)
    if vendor is None:
        raise InputError(f"judge {model!r}: base_url: {missing_address(model)}")
    return Judge(name=model, model=f"{vendor}:{model}")


def read_pairs(pairs: Any, mapping: Mapping[str, str]) -> Iterator[Pair]:
    """The pairs of a table in memory, of a file, or one by one; `mapping` is from our names to the table's columns.

    Raises InputError that names the file and its row, or the pair, counted from 0.
    """
    if strange := sorted(map(str, mapping.keys() - set(_COLUMNS))):
        raise InputError(f"mapping: {strange[0]!r} is no name of ours: it takes {', '.join(_COLUMNS)}")
    table = isinstance(pairs, str | Path) or (is_table(pairs) and not isinstance(pairs, Sequence))
    if not (table or isinstance(pairs, Iterable)) or (isinstance(pairs, str) and not pairs):
        raise InputError(f"pairs: give a list of pairs, a table or the path of a file, not {_shown(pairs)}")
    if table:
        yield from _of_table(Path(pairs) if isinstance(pairs, str) else pairs, mapping)
        return
    unused, number = dict(mapping), None
    for number, one in enumerate(pairs):
        yield _checked(f"pair {number}", *_texts(number, one, mapping))
        unused = {name: theirs for name, theirs in unused.items() if not isinstance(one, Mapping) or theirs not in one}
    if unused and number is not None:
        name, theirs = next(iter(unused.items()))
        raise InputError(f"mapping: no pair has {theirs!r}, which is to hold {name}")


def _of_table(source: Any, mapping: Mapping[str, str]) -> Iterator[Pair]:
    try:
        table = open_table(source if isinstance(source, Path) else memory_table(source, "instruction, a and b"))
    except NoRowsError:  # as an empty list
        return
    try:
        mapping = with_text(table, mapping)
        optional = ["reference"] if "reference" in {*mapping, *table.columns} else []
        cells = [table.text(table.column(name, mapping)) for name in ("instruction", *_SIDES, *optional)]
        rows = table.execute(f"select {', '.join(cells)} from {{table}}").fetchall()
    except MissingColumnError as error:
        if (hint := answers_hint(table)) is not None:
            raise InputError(f"{table.path}: {hint}; vn.judge takes an instruction and two answers a row") from None
        raise InputError(
            f'{error.sentence}. Where another column holds it: mapping={{"{error.ours}": "{error.hint}"}}; columns of '
            "more models than two: `venire judge FILE`"
        ) from None
    finally:
        table.connection.close()
    for number, row in enumerate(rows, start=1):
        instruction, a, b, reference = (*row, None)[:4]
        if isinstance(source, Path) and table.delimited:  # where an empty text is no other than a missing one
            a, b = a or "", b or ""
        yield _checked(f"{table.path}: row {number}", instruction, a, b, reference)


def _texts(number: int, pair: Any, mapping: Mapping[str, str]) -> tuple[Any, Any, Any, Any]:
    """The four texts of one pair that is a dict or a sequence of three."""
    if not isinstance(pair, Mapping):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 3:
            raise InputError(
                f"pair {number}: give the texts instruction, a and b, as a dict or in this order, not {_shown(pair)}"
            )
        return (*pair, None)
    text = next((name for name in INSTRUCTION_TEXTS if name in pair), "instruction")
    names = {name: mapping.get(name, text if name == "instruction" else name) for name in _COLUMNS}
    for name in ("instruction", *_SIDES):
        if (theirs := names[name]) not in pair:
            raise InputError(f"pair {number}: {name} is missing: it has no {theirs!r}, but {', '.join(map(str, pair))}")
    instruction, a, b, reference = (pair.get(name) for name in names.values())
    return instruction, a, b, None if is_missing(reference) else reference


def _checked(place: str, instruction: Any, a: Any, b: Any, reference: Any) -> Pair:
    texts = (instruction, a, b)
    for name, text in zip(_COLUMNS, (*texts, reference or ""), strict=True):
        if not isinstance(text, str):
            raise InputError(f"{place}: {name} is {_shown(text)}: give a text, or leave this pair out")
    try:
        "".join((*texts, reference or "")).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{place}: {error.object[error.start]!r} is half a character, which no provider takes: read the text with "
            'errors="replace"'
        ) from None
    if not instruction.strip():
        raise InputError(f"{place}: the instruction is empty: say what a and b are answers to")
    if a == b:
        raise InputError(f"{place}: a and b are the same text: there is nothing to judge")
    return Pair(instruction, a, b, reference or None)


@contextmanager
def _folder(store: Path | None) -> Iterator[Path]:
    """The store to use; without one, a store that is gone at the end."""
    if store is not None:
        _refuse_foreign(store)
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="venire-judge-") as folder:
        yield Path(folder) / "pairs.duckdb"


def _refuse_foreign(store: Path) -> None:
    """Raises InputError for a store of other campaigns, and for a folder that is not there."""
    if not store.exists():
        if not store.absolute().parent.is_dir():
            raise InputError(f"store {store}: there is no folder {store.absolute().parent}; make it first")
        return
    with open_store(store, create=False, to_read=True) as opened:
        others = [row.name for row in frames.campaigns(opened) if row.name != _NAME]
    if others:
        raise InputError(f"{store} holds the campaign {others[0]!r}: give vn.judge a store of its own")


def _campaign(store: Path, judges: Sequence[Judge], budget: Budget | float | Decimal | None) -> CampaignSettings:
    """A campaign of two models, whose completions are the two sides of each pair."""
    limits = budget if isinstance(budget, Budget) else Budget() if budget is None else Budget(money=budget)
    campaign = Campaign(
        name=_NAME,
        store=store,
        data=Data(),
        judges=judges,
        plan=Plan(policy="all-pairs"),
        budget=limits,
    )
    return replace(resolve(campaign), path=_CALL)


def _refuse_unknown(campaign: CampaignSettings, elo: Mapping[str, float] | None) -> None:
    """Raises InputError for ratings of other than both sides, and for simulated judges without any."""
    if elo is not None and set(elo) != set(_SIDES):
        raise InputError('elo: give the Elo of both sides, such as elo={"a": 1200, "b": 1000}')
    if elo is None and (names := [one.name for one in campaign.judges if one.origin is Origin.SIMULATED]):
        raise InputError(
            f"judge {names[0]!r} is simulated, and decides by the Elo of both sides: give it, such as "
            'elo={"a": 1200, "b": 1000}'
        )


def _records(pairs: Iterable[Pair], elo: Mapping[str, float] | None) -> list[Records]:
    """What these pairs bring into a store. Raises InputError for an instruction with two references."""
    instructions: dict[str, Instruction] = {}
    texts, ratings = {}, {}
    for number, one in enumerate(pairs):
        known = instructions.get(one.id)
        reference = one.reference if known is None or known.reference is None else known.reference
        if one.reference not in (None, reference):
            raise InputError(f"pair {number}: its instruction has another reference in an earlier pair: give it one")
        instructions[one.id] = Instruction(one.id, (one.instruction,), reference)
        for side, name, text in zip(_SIDES, one.sides, (one.a, one.b), strict=True):
            texts[name, one.id] = text
            if elo is not None:
                ratings[name] = elo[side]
    return [
        list(instructions.values()),
        [Completion(name, instruction, text) for (name, instruction), text in texts.items()],
        [Rating(name, points) for name, points in ratings.items()],
    ]


def _left_out(texts: Sequence[OversizedText], given: Sequence[Pair]) -> Iterator[str]:
    """A sentence for each of the first texts that no budget covers, by the pair that it is of, and how many more."""
    numbers = {(pair.id, side): number for number, pair in enumerate(given) for side in (None, *pair.sides)}
    said = {
        one.sentence(
            f"{'the instruction' if one.model is None else one.model.split()[0]} of pair "
            f"{numbers[one.instruction, one.model]}",
            "judge again",
        ): None
        for one in texts
    }
    yield from islice(said, _SHOWN)
    if (more := len(said) - _SHOWN) > 0:
        yield f"left out as well: {more:,} more texts that are too long for their budget"


def _report(
    summary: CampaignSummary, paid: frames.CampaignSpending, unreadable: int, store: Path | None, warn: Report | None
) -> None:
    """What a caller must know of a run that did not answer everything, or whose replies name no verdict.

    Raises VenireError where nothing was answered since no judge could be asked, KeyboardInterrupt after Ctrl-C.
    """
    progress = summary.progress
    kept = "lost, since no store was given" if store is None else f"in {store}, and the same call goes on"
    if summary.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt(f"{progress.settled:,} of {progress.planned:,} verdicts are settled: they are {kept}")
    closed = "; ".join(f"{lane}: {why}" for lane, why in summary.closed_lanes.items())
    if summary.ending is Ending.LANE_CLOSED and not progress.settled:
        raise VenireError(closed)
    for name, why in summary.unreadable.items():
        _say(f"judge {name!r} was asked no more: {why}", warn)
    if unreadable:
        _say(f"{unreadable:,} of {progress.planned:,} verdicts could not be read (None): see `replies`", warn)
    unasked = progress.planned - progress.settled
    if not unasked:
        return
    why = closed
    if summary.ending is Ending.BUDGET:
        limits = "; ".join(dict.fromkeys(summary.unaffordable.values()))
        again = "" if store is None else ": with a higher budget the same call asks the rest alone"
        held = set_aside(paid.unanswered, paid.unanswered_tokens)
        aside = f", {held} of it set aside for calls without an answer" if held else ""
        aside += f" (`venire store release-unanswered {store}` frees it)" if held and store else ""
        why = f"the budget is reached, {money(paid.nano)} is spent{aside} ({limits}){again}"
    elif summary.ending is Ending.FAILED_STEPS:
        why = f"{progress.failed:,} failed after all their attempts"
    _say(f"{unasked:,} of {progress.planned:,} verdicts are missing (None): {why or summary.ending.value}", warn)


def _say(sentence: str, warn: Report | None) -> None:
    if warn is not None:
        warn(sentence)
    else:
        warnings.warn(sentence, stacklevel=5)


_Verdict = tuple[Winner | None, int, tuple[str, ...]]
_Verdicts = Mapping[tuple[str, str, str, str, bool], _Verdict]
"""By judge, instruction, both sides, and whether `b` was shown first."""


def _verdicts(session: Session) -> _Verdicts:
    rows = session.store.read("judged_pairs")
    return {tuple(key): (winner, cost, tuple(texts)) for *key, winner, cost, texts in rows}


def _judged(number: int, name: str, found: _Verdicts, pair: Pair) -> JudgedPair:
    nothing: _Verdict = (None, 0, ())
    (first, paid, said), (second, paid_too, said_too) = (
        found.get((name, pair.id, *pair.sides, swapped), nothing) for swapped in (False, True)
    )
    return JudgedPair(number, name, _winner(first, second), first, second, (said, said_too), (paid + paid_too) / 1e9)


def _winner(*verdicts: Winner | None) -> Winner | None:
    """Combine the readable verdicts of both orders: the side with more of them, or a tie."""
    sides = [one for one in verdicts if one is not None]
    lead = sides.count("a") - sides.count("b")
    return None if not sides else "a" if lead > 0 else "b" if lead < 0 else "tie"
