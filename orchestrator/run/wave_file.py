"""A wave on its way to a provider: the lines of one submission, in a file beside the store."""

from __future__ import annotations

import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from venire.storage.plans.submissions import SubmissionLine
from venire.storage.store.files import make_private

if TYPE_CHECKING:
    from types import TracebackType


def waves_folder(store: Path) -> Path:
    """Where the waves of a store are written before they are sent: a folder beside it."""
    return store.with_name(f"{store.name}.waves")


def clear_waves(store: Path) -> None:
    """Remove what a run that was killed left in that folder: nothing of it is ever sent again."""
    folder = waves_folder(store)
    for left in folder.glob("venire-*.jsonl"):
        left.unlink(missing_ok=True)
    with suppress(OSError):  # it is not there, or something of somebody else's is in it
        folder.rmdir()


class WaveFile:
    """The lines of a submission, written to `folder/<name>.jsonl` as they come; only its owner may read the file.

    Within `with` lines are added; what is left in the folder after a stop is of no use and may be removed.
    """

    def __init__(self, folder: Path, *, most_lines: int, most_bytes: int) -> None:
        self.name = f"venire-{secrets.token_hex(8)}"
        """Ours for the submission, by which it is found again at the provider."""
        self.path = folder / f"{self.name}.jsonl"
        self.lines: list[SubmissionLine] = []
        self.bytes = 0
        self._most_lines, self._most_bytes = most_lines, most_bytes
        self._digest = sha256()
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self.path.touch()
        make_private(self.path)
        self._file = self.path.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        self._file.close()

    @property
    def digest(self) -> bytes:
        """Digest of the file's content so far, 16 bytes."""
        return self._digest.digest()[:16]

    def has_room(self, line: bytes) -> bool:
        """Whether a line can be added within the limits."""
        return len(self.lines) < self._most_lines and self.bytes + len(line) + 1 <= self._most_bytes

    def add(self, about: SubmissionLine, line: bytes) -> None:
        """Write a line."""
        assert self._file is not None
        content = line + b"\n"
        self._file.write(content)
        self._digest.update(content)
        self.bytes += len(content)
        self.lines.append(about)

    def remove(self) -> None:
        """Remove the file, and the folder when it was the last one in it."""
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # others are there, or nothing
            self.path.parent.rmdir()
