"""A file format: a row with a question, two answers, who wrote them, and which side a rater chose."""

from venire.arena.records import Completion, Instruction
from venire.storage.transfer.formats import Format
from venire.storage.transfer.formats.judged import VerdictDialect
from venire.storage.transfer.formats.texts import digest_id, rows

_CELLS = ("question", "left", "right", "left_model", "right_model")

VERDICTS = VerdictDialect(
    format="sides",
    query="""
        select file, row, 0 as part, model_a, model_b, winner as word, instruction_id, judge,
            null::boolean as swapped, null::double as score,
            case winner when 'left' then 'model_a' when 'right' then 'model_b' when 'both' then 'tie' else '?' end
                as winner
        from given
    """,
    columns={
        "model_a": ("left_model",),
        "model_b": ("right_model",),
        "winner": ("chosen",),
        "judge": ("rater",),
        "instruction_id": ("question",),
    },
    needed=("model_a", "model_b", "winner"),
    words="left, right, both",
)


def read(paths):
    """An instruction and two completions of each row."""
    for path in paths:
        for row in rows(path, _CELLS):
            question = row.text("question")
            yield Instruction(digest_id([question]), (question,))
            for side in ("left", "right"):
                yield Completion(row.text(f"{side}_model"), digest_id([question]), row.text(side))


SIDES = Format(
    "Import questions and pairs of answers: question, left, right, left_model, right_model.", read, (VERDICTS,)
)
