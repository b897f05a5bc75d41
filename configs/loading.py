"""From a campaign file to plain records; later code does not use pydantic."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    BatchSettings,
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    Limits,
    PhaseSettings,
    PlanSettings,
    QualitySettings,
    Recorded,
    RouteSettings,
    StopSettings,
    TokenPrice,
)
from venire.arena.errors import InputError
from venire.arena.keywords import checked
from venire.arena.records import EDIT, GENERATE
from venire.arena.registry import PROVIDERS
from venire.arena.wording import suggest
from venire.configs.checks import cross_problems, is_simulated
from venire.configs.problems import Place, Problem, found_problems, key_path, lines
from venire.configs.schema import (
    Campaign,
    Contestant,
    Data,
    Editor,
    Fallback,
    Judge,
    PhaseTable,
    Plan,
    Price,
    Quality,
    RespondentTable,
)
from venire.configs.settings import canonical_settings, editing_settings, generation_settings, plain_number
from venire.configs.values import FilePath, Number, needless_matchups

Respondent = TypeVar("Respondent", bound=RespondentTable)


@checked
def load_campaign(path: Path | str) -> CampaignSettings:
    """Read a campaign file (TOML) into a `CampaignSettings` with absolute paths and money in whole nano-dollars.

    Raises InputError with one line for each thing that is wrong; values that may be secrets are not shown.

    >>> campaign = load_campaign("campaign.toml")
    >>> campaign.name, campaign.store.name, [judge.name for judge in campaign.judges]
    ('campaign', 'campaign.duckdb', ['simulated/gpt-4-0613@1'])
    """
    path = Path(path)
    return campaign_of(path, _read(path))


def checked_file(path: Path) -> Campaign:
    """A campaign file as it is written, with its defaults; what it names is not read. Raises InputError likewise."""
    return _with_defaults(path, _validated(path, _parsed(path, _read(path))))


def in_batches(campaign: CampaignSettings, names: Sequence[str]) -> CampaignSettings:
    """The campaign with some of its judges asked by batches, with the defaults of that, whatever the file says.

    Raises InputError for a name that no judge has, and for one whose provider has no batch interface.
    """
    judges = {judge.name: judge for judge in campaign.judges}
    lanes = set()
    for name in names:
        if name not in judges:
            raise InputError(f"--batch {name}: no judge of that name; {suggest(name, judges)}")
        route = judges[name].lane.routes[0]
        if route.provider not in PROVIDERS or not PROVIDERS[route.provider].batches:
            raise InputError(f"--batch {name}: provider {route.provider!r} has no batch interface")
        if any(way.replicas is not None for way in judges[name].lane.routes):
            raise InputError(f"--batch {name}: replicas in a Ray cluster are asked call by call")
        lanes.add(judges[name].lane.identity)
    chosen = (
        replace(judge, lane=replace(judge.lane, batch=judge.lane.batch or BatchSettings()))
        if judge.lane.identity in lanes
        else judge
        for judge in campaign.judges
    )
    return replace(campaign, judges=tuple(chosen))


def campaign_of(path: Path, text: str) -> CampaignSettings:
    """The same from the text of a campaign file; what it names is beside `path`. Raises InputError likewise."""
    return _resolved(path, _validated(path, _parsed(path, text)), text)


def store_of(path: Path) -> Path:
    """The store that a path names: itself, or that of a campaign file, or of the one campaign file in a folder.

    Of several files in a folder, `campaign.toml` is meant, and never `pyproject.toml`; another one where that alone
    has a store, such as a rehearsal before the first real run. Raises InputError for a folder where none can be chosen,
    and as `load_campaign` does.
    """
    if path.is_dir():
        files = sorted(file for file in path.glob("*.toml") if file.name != "pyproject.toml")
        chosen = files if len(files) == 1 else [file for file in files if file.name == "campaign.toml"]
        if not chosen:
            found = f"{len(files)} campaign files and none is campaign.toml" if files else "no campaign file"
            raise InputError(f"{path} is a folder with {found}: name a campaign file or a store in it")
        store = load_campaign(chosen[0]).store
        others = [] if store.exists() else [load_campaign(file).store for file in files if file != chosen[0]]
        begun = [one for one in others if one.exists()]
        return begun[0] if len(begun) == 1 else store
    return load_campaign(path).store if path.suffix == ".toml" else path


def resolve(campaign: Campaign | CampaignSettings | Path | str) -> CampaignSettings:
    """A campaign that was written in Python, or the path of its file, as what the engine reads.

    Paths in it are relative to the working directory. A campaign of the same keys has the same settings whether it is
    written in Python or in a file, so either goes on with a store that the other began. What is resolved already is
    returned as it is.

    Raises InputError with one line for each thing that is wrong.
    """
    if isinstance(campaign, CampaignSettings):
        return campaign
    if not isinstance(campaign, Campaign):
        return load_campaign(campaign)
    raw = dict(campaign.given)
    path = Path(campaign.name or "campaign")
    if problems := cross_problems(raw):
        raise InputError(lines("Campaign", raw, problems))
    return _resolved(path, campaign, _toml(raw))


def _toml(raw: Mapping[str, Any]) -> str:
    """The text of a campaign file with these keys: a line for each, and one for each table of a list."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in raw.items())


def toml_value(value: Any) -> str:
    """A value of a campaign file as TOML writes it, tables inline."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml_value(key)} = {toml_value(part)}' for key, part in value.items())} }}"
    if isinstance(value, list):
        if any(isinstance(part, Mapping) for part in value):
            return "\n".join(("[", *(f"  {toml_value(part)}," for part in value), "]"))
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Decimal):
        return plain_number(value)
    # JSON's texts are TOML's, but that TOML escapes DEL and has no pairs of surrogates.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _resolved(path: Path, file: Campaign, text: str) -> CampaignSettings:
    """What a checked campaign comes to: paths from the folder of `path`, defaults that follow from other keys."""
    folder = path.absolute().parent
    tables = [None if judge.recorded is None else Recorded(folder / judge.recorded, judge.map) for judge in file.judge]
    file = _with_defaults(path, file)
    judges = [_with_texts(path, number, judge) for number, judge in enumerate(file.judge)]
    editors = [_with_prompts(path, number, editor) for number, editor in enumerate(file.editor)]
    file = file.model_copy(update={"judge": judges, "editor": editors})
    return CampaignSettings(
        name=str(file.name),
        seed=file.seed,
        path=path.absolute(),
        store=folder / str(file.store),
        data=_data(file.data, folder),
        plan=_plan(file.plan),
        judges=tuple(_judge(judge, table) for judge, table in zip(file.judge, tables, strict=True)),
        budget=BudgetSettings.of_table(vars(file.budget)),
        text=text,
        settings=canonical_settings(file),
        judge_budgets={name: BudgetSettings.of_table(vars(limits)) for name, limits in file.budget.judge.items()},
        model_budgets={name: BudgetSettings.of_table(vars(limits)) for name, limits in file.budget.model.items()},
        contestants=tuple(_contestant(contestant) for contestant in file.contestant),
        generation=BudgetSettings.of_table(vars(file.budget.generation)),
        generation_settings=generation_settings(file),
        editors=tuple(_editor(editor) for editor in file.editor),
        editing_settings=editing_settings(file),
        quality=_quality(file.quality),
        strict=file.durability == "strict",
    )


def _quality(given: Quality) -> QualitySettings:
    readable, flips = (None if share is None else float(share) for share in (given.readable, given.flips))
    return QualitySettings(readable, flips, float(given.give_up))


def difference(old_text: str, new_text: str) -> str:
    """Unified diff of a campaign file as its run was started and as it is now, for showing; empty if they are equal."""
    old, new = old_text.splitlines(), new_text.splitlines()
    return "\n".join(difflib.unified_diff(old, new, "as started", "as it is now", lineterm=""))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such campaign file; `venire init` writes one to start from") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a UTF-8 text; save the campaign file as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: the campaign file cannot be read: {error.strerror}") from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    # Decimal keeps money exact.
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        # A key that was pasted where a key of the file belongs would be quoted in the parser's own words.
        reason = re.sub(r"'[^']{20,}'", "a key that is not shown", str(error))
        raise InputError(f"{path}: not valid TOML: {reason}; mend the file there") from None
    except (ValueError, ArithmeticError):
        raise InputError(f"{path}: not valid TOML: a number in it is too large or has too many digits") from None
    except RecursionError:
        raise InputError(f"{path}: not valid TOML: lists or tables are nested too deeply") from None


def _validated(path: Path, raw: dict[str, Any]) -> Campaign:
    problems: list[Problem] = []
    file = None
    try:
        file = Campaign.model_validate(raw)
    except ValidationError as error:
        problems = found_problems(error, Campaign)
    problems += cross_problems(raw)
    if file is None or problems:
        raise InputError(lines(path, raw, problems))
    return file


def _with_defaults(path: Path, file: Campaign) -> Campaign:
    """With the defaults that follow from the file's name and from other keys."""
    return file.model_copy(
        update={
            "name": file.name or path.stem,
            "store": file.store or f"{path.stem}.duckdb",
            "judge": [_completed(judge) for judge in file.judge],
            "contestant": [_completed(contestant) for contestant in file.contestant],
            "editor": [_completed(editor) for editor in file.editor],
        }
    )


def _completed(one: Respondent) -> Respondent:
    """With the defaults that follow from other keys: the name, and that what is simulated or recorded is free."""
    free = one.free or one.provider == "replay" or (is_simulated(one.model) and one.price is None)
    return one.model_copy(update={"name": one.name or one.model, "free": free})


def _with_texts(path: Path, number: int, judge: Judge) -> Judge:
    """The judge with the contents of the files that it names: the contents are settings, the paths are not."""
    place = ("judge", number)
    texts = {name: _text(path, (*place, "prompts", name), file) for name, file in judge.prompts.items()}
    examples = None if judge.examples is None else _examples(path, (*place, "examples"), judge.examples)
    table = None if judge.recorded is None else _digest(path, (*place, "recorded"), judge.recorded)
    return judge.model_copy(update={"prompts": texts, "examples": examples, "recorded": table})


def _with_prompts(path: Path, number: int, editor: Editor) -> Editor:
    """The editor with the contents of its prompt files."""
    texts = {name: _text(path, ("editor", number, "prompts", name), file) for name, file in editor.prompts.items()}
    return editor.model_copy(update={"prompts": texts})


def _digest(path: Path, place: Place, name: FilePath) -> str:
    """Digest of a file that the campaign file names, 16 bytes in hexadecimal digits: other content is another judge."""
    try:
        with (path.absolute().parent / name).open("rb") as file:
            return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise InputError(f"{path}: {key_path(place)}: cannot read {name}: {error.strerror}") from None


def _text(path: Path, place: Place, name: FilePath) -> str:
    """The text of a file that the campaign file names."""
    try:
        return (path.absolute().parent / name).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
        raise InputError(f"{path}: {key_path(place)}: cannot read {name}: {why}") from None


def _examples(path: Path, place: Place, name: FilePath) -> str:
    """Few-shot examples as a JSON list of objects with `user` and `assistant`; one such object a line in the file."""
    found = []
    for number, line in enumerate(_text(path, place, name).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}: {key_path(place)}: {name} line {number} is no JSON: {error.msg}") from None
        if not isinstance(one, dict) or one.keys() != {"user", "assistant"} or not _are_texts(one.values()):
            raise InputError(
                f"{path}: {key_path(place)}: {name} line {number} is not an object of two texts, "
                "user and assistant; each line is one example"
            )
        found.append({"user": one["user"], "assistant": one["assistant"]})
    return json.dumps(found, ensure_ascii=False)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) and value.strip() for value in values)


def _data(table: Data, folder: Path) -> DataSettings:
    maps = {kind: columns for kind, columns in table.map.model_dump().items() if columns}
    return DataSettings(
        instructions=None if table.instructions is None else folder / table.instructions,
        completions=None if table.completions is None else folder / table.completions,
        elo=None if table.elo is None else folder / table.elo,
        maps=maps or None,
        models=None if table.models is None else tuple(table.models),
        families=dict(table.families) or None,
    )


def _plan(table: Plan) -> PlanSettings:
    stop = table.stop
    return PlanSettings(
        tuple(_phase(phase.name, phase) for phase in table.phase) or (_phase("plan", table),),
        instructions=table.instructions,
        repeats=table.repeats,
        orders=table.orders,
        variants=tuple(table.variants),
        stop=StopSettings(
            battles=stop.battles,
            half_width=None if stop.half_width is None else float(stop.half_width),
            top=stop.top,
            ranks=stop.ranks,
            indifference=float(stop.indifference),
            level=float(stop.level),
        ),
    )


def _phase(name: str, table: PhaseTable) -> PhaseSettings:
    low, high = table.band
    return PhaseSettings(
        table.policy,
        name,
        matchups=None if needless_matchups(table.policy) else table.matchups,
        battles=table.battles,
        round=table.round,
        coverage=float(table.coverage),
        band=(float(low), float(high)),
        purpose=table.purpose,
        top=table.top,
        place=table.place,
    )


def _judge(table: Judge, recorded: Recorded | None) -> JudgeSettings:
    options = {**table.options, "repair": str(int(table.repair and recorded is None))}
    options |= {"logprobs": "1"} if table.logprobs else {}
    options |= {"best": str(table.best)} if table.best is not None else {}
    if table.too_long != "error":  # what is sent depends on it then, and on the context
        options |= {"too_long": table.too_long, "context": str(table.context)}
    options |= {"examples": str(table.examples)} if table.examples is not None else {}
    options |= {f"prompt.{name}": str(text) for name, text in table.prompts.items()}
    options |= {"dialect": table.dialect} if table.dialect is not None else {}
    options |= {"recorded": str(table.recorded)} if table.recorded is not None else {}
    options |= {"map": json.dumps(table.map, sort_keys=True, ensure_ascii=False)} if table.map else {}
    return replace(_respondent(table, table.protocol, options), recorded=recorded)


def _contestant(table: Contestant) -> JudgeSettings:
    return replace(_respondent(table, GENERATE, {}), repeats=table.samples)


def _editor(table: Editor) -> JudgeSettings:
    return _respondent(table, EDIT, {f"prompt.{name}": str(text) for name, text in table.prompts.items()})


def _respondent(table: RespondentTable, protocol: str, options: Mapping[str, str]) -> JudgeSettings:
    found = {**options, "max_tokens": str(table.max_tokens)}
    if table.temperature is not None and table.provider != "replay":  # whatever it was
        found["temperature"] = plain_number(Decimal(table.temperature))
    if table.system is not None:
        found["system"] = table.system
    return JudgeSettings(
        name=table.name or table.model,
        model=table.model,
        protocol=protocol,
        options=dict(sorted(found.items())),
        lane=_lane(table),
        price=None if table.price is None else _price(table.price),
        free=table.free,
        elo=None if table.elo is None else float(table.elo),
        family=table.family,
        context=table.context,
    )


def _lane(table: RespondentTable) -> LaneSettings:
    keys = [table.key_variable] if table.key_variables is None else table.key_variables
    return LaneSettings(
        routes=(
            *(
                RouteSettings(table.provider, table.base_url, key, table.model, structured=table.structured_output)
                for key in keys
            ),
            *(_fallback(table, rank, other) for rank, other in enumerate(table.fallback, start=1)),
        ),
        limits=Limits(**{limit.name: getattr(table, limit.name) for limit in fields(Limits)}),
        share=float(table.share),
        skew=float(table.skew),
        concurrency=table.concurrency,
        timeout=float(table.timeout),
        max_attempts=table.max_attempts,
        max_elapsed=float(table.max_elapsed),
        patience=float(table.patience),
        connect_timeout=float(table.connect_timeout),
        read_timeout=None if table.read_timeout is None else float(table.read_timeout),
        headers=dict(table.headers),
        proxy=table.proxy,
        proxy_variable=table.proxy_variable,
        batch=_batch(table),
    )


def _batch(table: RespondentTable) -> BatchSettings | None:
    if table.transport == "live":
        return None
    return BatchSettings(
        table.transport,
        wave_size=table.wave_size,
        max_wait=None if table.max_wait is None else float(table.max_wait),
        after_wait=table.after_wait,
        price=None if table.batch_price is None else _price(table.batch_price),
    )


def _fallback(judge: RespondentTable, rank: int, table: Fallback) -> RouteSettings:
    price = None if table.price is None else _price(table.price)
    provider, model = table.provider or judge.provider, table.model or judge.model
    return RouteSettings(provider, table.base_url, table.key_variable, model, rank, price, table.structured_output)


def _price(table: Price) -> TokenPrice:
    cached, written = (None if rate is None else _nano(rate) for rate in (table.cached, table.written))
    return TokenPrice(_nano(table.input), _nano(table.output), cached, written)


def _nano(dollars: Number) -> int:
    """Dollars as whole nano-dollars; exact, since the schema takes at most nine decimals."""
    return int(Decimal(dollars).scaleb(9)) if dollars else 0
