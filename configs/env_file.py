"""Environment variables, which hold keys: those of this process, and files of them, such as `.env`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from venire.arena.errors import InputError


def environment(given: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """The variables given to a function, or those that this process has now.

    A default value of `os.environ` would stand with every key of it in the signature, and so in help and tooltips.
    """
    return os.environ if given is None else given


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file of lines `NAME=value`, quotes and `export` allowed; nothing is put into the environment.

    Raises InputError with the number of a line that is none, and for a file that cannot be read; values are not shown.

    >>> sorted(read_env_file(Path("first/.env")))
    ['OPENAI_API_KEY']
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = list(parse_stream(file))
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: the file of environment variables cannot be read: {error.strerror}") from None
    for one in lines:
        if one.error or (one.key is not None and one.value is None):
            raise InputError(
                f"{path}: line {one.original.line} gives no variable; write NAME=value, in quotes where the value has "
                "spaces"
            )
    return {line.key: line.value for line in lines if line.key is not None and line.value is not None}
