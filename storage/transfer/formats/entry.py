"""What the registry knows of a file format."""

from __future__ import annotations

from dataclasses import dataclass

from venire.storage.transfer.formats.judged import Dialect
from venire.storage.transfer.formats.texts import Reader
from venire.storage.transfer.formats.writing import Writer

__all__ = ["Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format, an entry of `registry.FORMATS`: what of it can be read and written; each part may be absent.

    `read` yields the instructions and completions of files, and goes through them as often as it is asked to.
    `dialects` are the forms of its verdicts. `write` writes a store. `purpose` is a line for `venire import --help`.
    """

    purpose: str = ""
    read: Reader | None = None
    dialects: tuple[Dialect, ...] = ()
    write: Writer | None = None
