"""Identity by content: the key of a thing changes exactly when an answer about it could change.

Keys are BLAKE2b digests of 16 bytes over length-prefixed parts, each kind with its own personalisation, so that no
two kinds and no two splits of the same bytes can meet. Golden digests in the tests pin them: a key that changes
makes users pay again for what they already have.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from venire.arena.records import Respondent


def _digest(kind: bytes, parts: Iterable[bytes]) -> bytes:
    state = blake2b(digest_size=16, person=kind)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def instruction_key(turns: Iterable[str]) -> bytes:
    """Key of an instruction: 16 bytes over its turns. Its id, category and reference are labels, not identity."""
    return _digest(b"venire-instr-1", (turn.encode() for turn in turns))


def completion_key(model: str, instruction: bytes, sample: int, variant: str, text: str) -> bytes:
    """Key of a completion: 16 bytes over model, instruction key, sample number, variant and text."""
    return _digest(b"venire-compl-1", (model.encode(), instruction, b"%d" % sample, variant.encode(), text.encode()))


def prompt_digest(text: str) -> bytes:
    """Digest of one prompt text, 16 bytes."""
    return _digest(b"venire-prompt-1", (text.encode(),))


def respondent_key(respondent: Respondent) -> bytes:
    """Key of a respondent: 16 bytes over model, origin, protocol, its options and the digests of its prompts."""
    options = [part.encode() for option in respondent.options for part in option]
    return _digest(
        b"venire-judge-1",
        (
            respondent.model.encode(),
            respondent.origin.value.encode(),
            respondent.protocol.encode(),
            b"%d" % len(options),
            *options,
            *respondent.prompts,
        ),
    )


def trial_key(respondent: bytes, instruction: bytes, shown: Iterable[bytes], repeat: int) -> bytes:
    """Key of a trial: 16 bytes over respondent key, instruction key, repeat and the shown completions in order."""
    return _digest(b"venire-trial-1", (respondent, instruction, b"%d" % repeat, *shown))


def text_digest(text: str) -> bytes:
    """Digest of a text that was shown to a judge, 16 bytes: how an answer key finds it again."""
    return _digest(b"venire-text-1", (text.encode(),))


def fence(text: str, constant: bytes) -> str:
    """Delimiter for untrusted text: 16 hexadecimal digits of the text keyed by a constant of the store.

    The same text has the same fence for all judges, orders and campaigns of a store, and a text cannot contain its
    own fence without knowing the constant.
    """
    return blake2b(text.encode(), digest_size=8, key=constant, person=b"venire-fence-1").hexdigest()
