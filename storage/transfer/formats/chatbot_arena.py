"""Tables of votes on pairs of models: Chatbot Arena's, with prompts and answers, and those of am-ELO and Soft-Elo.

Of Soft-Elo a row has a person's vote, a judge's verdict, and the judge's scores of both answers on criteria.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import md5
from pathlib import Path, PurePath

import duckdb

from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats.columns import INSTRUCTION_IDS
from venire.storage.transfer.formats.entry import ExportOptions, Format, Part
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import Record, TextRow, digest_id, joined, messages, rows, turns_of

_MODELS = {"model_a": ("model_a",), "model_b": ("model_b",)}
_BATTLE = {"judge": ("judge",), "instruction_id": (*INSTRUCTION_IDS, "id")}
"""An `id` may number the rows: a column of questions comes first."""
_WORDS = "model_a, model_b, tie, tie (bothbad), both_bad"

_ARENA_DIALECTS = (
    VerdictDialect(
        "chatbot-arena",
        "judged_chatbot_arena",
        {**_MODELS, "winner": ("winner",), **_BATTLE},
        ("model_a", "model_b", "winner", "instruction_id"),
        _WORDS,
        signs=frozenset({"conversation_a"}),
        once=True,
    ),
    VerdictDialect(
        "chatbot-arena",
        "judged_chatbot_arena",
        {**_MODELS, "winner": ("winner",), **_BATTLE, "time": ("tstamp", "timestamp")},
        ("model_a", "model_b", "winner", "time"),
        _WORDS,
        once=True,
    ),
    VerdictDialect(
        "chatbot-arena",
        "judged_arena_flags",
        {
            **_MODELS,
            "won_a": ("winner_model_a",),
            "won_b": ("winner_model_b",),
            "tied": ("winner_tie",),
            **_BATTLE,
        },
        ("model_a", "model_b", "won_a", "won_b", "tied"),
        "1 in one of winner_model_a, winner_model_b and winner_tie",
    ),
    VerdictDialect(
        "chatbot-arena",
        "judged_comparia",
        {
            "model_a": ("model_a_name",),
            "model_b": ("model_b_name",),
            "winner": ("chosen_model_name",),
            "equal": ("both_equal",),
            "judge": ("judge",),
            "instruction_id": (*INSTRUCTION_IDS, "conversation_pair_id", "id"),
        },
        ("model_a", "model_b", "winner", "equal"),
        "one of the two models' names",
    ),
    # By name only: a table of these three columns is a table like any other.
    VerdictDialect(
        "chatbot-arena",
        "judged_chatbot_arena",
        {**_MODELS, "winner": ("winner",), **_BATTLE},
        ("model_a", "model_b", "winner"),
        _WORDS,
    ),
)


def read(paths: Sequence[Path]) -> Iterator[Record]:
    """Instructions and completions of battles: conversations, or `prompt`, `response_a`, `response_b`.

    An instruction is all that the person said, under a digest of it, since a battle's id is no prompt's. Where a model
    answered one prompt in several ways, its answers are samples. Raises InputError that names file, row and column.
    """
    samples: Counter[tuple[str, str]] = Counter()
    known: set[bytes] = set()
    names = ("model_a", "model_b", "conversation_a", "conversation_b", "prompt", "response_a", "response_b")
    for path in paths:
        for row in rows(path, names):
            for side in "ab":
                model = row.text(f"model_{side}")
                prompt, answer = _talk(row, side)
                name, text = digest_id(prompt), joined(answer)
                if text is None:
                    raise row.error('an answer has a line "[turn 1]" or the like, by which turns are told apart')
                yield Instruction(name, prompt)
                mark = md5("\n".join((model, name, text)).encode(), usedforsecurity=False).digest()
                if mark in known:
                    continue
                known.add(mark)
                samples[model, name] += 1
                yield Completion(model, name, text, samples[model, name])


def _talk(row: TextRow, side: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the person said and what the model answered, turn by turn."""
    said = messages(row, f"conversation_{side}")
    if said is None:
        return turns_of(row, "prompt"), turns_of(row, f"response_{side}")
    spoken = tuple(tuple(text for who, text in said if who == role) for role in ("user", "assistant"))
    if not spoken[0] or not spoken[1]:
        raise row.error(f'"conversation_{side}" has no turn of a user or of an assistant; leave the row out')
    return spoken[0], spoken[1]


def parts(connection: duckdb.DuckDBPyConnection, options: ExportOptions) -> Iterator[Part]:
    """Battles, a verdict a row with `model_a` as it was shown first."""
    yield Part(PurePath("battles.json"), "write_chatbot_arena", "list")


CHATBOT_ARENA = Format(
    "Import the prompts and answers of Chatbot Arena battles.",
    read,
    _ARENA_DIALECTS,
    parts,
    signs=(
        frozenset({"model_a", "model_b", "conversation_a", "conversation_b"}),
        frozenset({"model_a", "model_b", "prompt", "response_a", "response_b"}),
    ),
)


_AM_ELO_DIALECTS = (
    VerdictDialect(
        "am-elo",
        "judged_am_elo",
        {
            "model_a": ("model_a",),
            "model_b": ("model_b",),
            "winner": ("winner",),
            "judge": ("judge",),
            "instruction_id": INSTRUCTION_IDS,
        },
        ("model_a", "model_b", "winner", "judge"),
        "model_a, model_b, tie, tie (bothbad), or 1 for A, 0 for B, 0.5 for a tie",
    ),
)


AM_ELO = Format("The battles of am-ELO's published tables, with their judges.", dialects=_AM_ELO_DIALECTS)


_ABOUT = {"judge": ("judge",), "instruction_id": ("instruction_id_hash", *INSTRUCTION_IDS, "battle_id")}
_WHOSE = "the judge's verdicts; the people's are in {}, which may be mapped to winner"

_SOFT_ELO_DIALECTS = (
    VerdictDialect(
        "soft-elo",
        "judged_soft_elo",
        {
            **_MODELS,
            "winner": ("judge_pref",),
            "scores_a": ("scores_a",),
            "scores_b": ("scores_b",),
            "human": ("human_pref",),
            **_ABOUT,
        },
        ("model_a", "model_b", "winner", "scores_a", "scores_b"),
        "a number from 0 (A) to 1 (B), 0.5 for a tie",
        nested=frozenset({"scores_a", "scores_b"}),
        note=_WHOSE.format("human_pref"),
    ),
    VerdictDialect(
        "soft-elo",
        "judged_soft_elo_words",
        {
            **_MODELS,
            "winner": ("judge_winner",),
            "difference": ("score_difference",),
            "human": ("human_winner",),
            **_ABOUT,
        },
        ("model_a", "model_b", "winner", "difference"),
        "model_a, model_b, tie",
        note=_WHOSE.format("human_winner"),
    ),
)


SOFT_ELO = Format("The tables of Soft-Elo: a judge's verdicts and people's.", dialects=_SOFT_ELO_DIALECTS)
