"""Files of tables as they come: by pattern or from standard input, in other encodings, and what is no table at all."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from glob import glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from venire.arena.errors import InputError

STANDARD_INPUT = Path("-")
_HEAD = 1 << 12
_TABLES = ((".parquet",), (".jsonl", ".ndjson"), (".csv", ".tsv"), (".json",))
_ABOUT = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
"""Files of a dataset that say what it is."""


def refuse_address(path: Path) -> None:
    """Raises InputError for an address in place of a path: tables are read from files."""
    if (found := re.search(r"(?:^|/)(https?|ftp|s3|gs|hf):/+(.+)", str(path))) is None:
        return
    address = f"{found[1]}://{found[2]}"
    name = found[2].partition("?")[0].rstrip("/").rpartition("/")[2] or "table.csv"
    raise InputError(
        f"{address}: tables are read from files, not from the network: fetch it first, "
        f"`curl -fsSL -o {shlex.quote(name)} {shlex.quote(address)}`, and give the file; or give `-` and pipe it in, "
        f"`curl -fsSL {shlex.quote(address)} | venire ...`"
    )


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Paths, with the files that a pattern such as `answers/*.csv` stands for, which a shell left as it is.

    A folder of a Hugging Face dataset stands for the tables in it. Raises InputError for a pattern of no file, and such
    a folder without tables.
    """
    found: list[Path] = []
    for path in paths:
        if any((path / name).exists() for name in ("data", *_ABOUT)):
            found += _tables_in(path)
            continue
        if not has_magic(str(path)) or path.exists():
            found.append(path)
            continue
        files = sorted(Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file())
        if not files:
            raise InputError(f"{path}: no file has such a name; the folder is {path.absolute().parent}")
        found += files
    return found


def _tables_in(folder: Path) -> list[Path]:
    """The tables of a dataset, in its `data` if it has that, of the first kind that there is."""
    data = folder / "data"
    there = sorted(path for path in (data if data.is_dir() else folder).rglob("*") if path.is_file())
    for endings in _TABLES:
        tables = [path for path in there if path.name.lower().removesuffix(".gz").endswith(endings)]
        if tables := [path for path in tables if path.name not in _ABOUT]:
            return tables
    if arrow := [path for path in there if path.suffix == ".arrow"]:
        copy = shlex.quote(str(folder.with_suffix(".parquet")))
        raise InputError(
            f"{folder}: a dataset that save_to_disk wrote, in {arrow[0].name}: write it as Parquet with "
            f"`datasets.load_from_disk({str(folder)!r}).to_parquet({copy!r})`, each split by itself, and give that"
        )
    raise InputError(f"{folder}: the folder of a dataset without a table in it: .parquet, .jsonl, .csv, .tsv or .json")


@cache
def _scratch() -> TemporaryDirectory[str]:
    """A folder for copies, gone with this process."""
    return TemporaryDirectory(prefix="venire-tables-")


def file_of(path: Path) -> Path:
    """The file of a path; of `-` a copy of what standard input has."""
    return _standard_input() if path == STANDARD_INPUT else path


@cache
def _standard_input() -> Path:
    """What standard input has, read once, with an ending that says what it is."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("-: nothing is piped in: give a file, or `cat FILE | venire ...`")
    copy = Path(_scratch().name) / "standard input"
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    head = _head(copy)
    packed = ".gz" if head.startswith(b"\x1f\x8b") else ""
    if packed:
        with gzip.open(copy) as file:
            head = file.read(_HEAD)
    text = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    ending = ".csv"
    if head.startswith(b"PAR1"):
        ending = ".parquet"
    elif text.startswith((b"{", b"[")):
        ending = ".json"  # lines or a list
    return copy.rename(copy.with_name(f"standard-input{ending}{packed}"))


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(_HEAD)


def refuse_archive(path: Path, file: Path) -> None:
    """Raises InputError for a workbook and other archives, whatever their name."""
    if not file.is_file():
        return
    head = _head(file)
    if head.startswith(b"PK\x03\x04"):
        try:
            with ZipFile(file) as archive:
                excel = any(name.startswith("xl/") for name in archive.namelist())
        except BadZipFile:
            excel = False
        what = "an Excel workbook" if excel else "an archive or a workbook"
    elif head.startswith(b"\xd0\xcf\x11\xe0"):
        what = "an Excel workbook"
    else:
        return
    raise InputError(
        f"{path}: {what} and no text, whatever its name: open it, save the sheet as CSV UTF-8 (File, Save As), and "
        "give that file"
    )


def in_utf8(path: Path, file: Path, compression: str, *, marked: bool) -> tuple[Path, str]:
    """A text file and its compression: itself, or a copy in UTF-8 of one in UTF-16, or with a mark unless `marked`."""
    opened = gzip.open if compression == "gzip" else open
    try:
        with opened(file, "rb") as content:
            head = content.read(_HEAD)
            encoding = "utf-8" if head.startswith(b"\xef\xbb\xbf") and not marked else _encoding(head)
            if encoding is None:
                return file, compression
            text = (head + content.read()).decode(encoding)
    except (OSError, EOFError, zlib.error):
        return file, compression  # what is wrong is said where the header or the rows are read
    except UnicodeDecodeError:
        raise InputError(f"{path}: neither UTF-8 nor whole UTF-16; save the file as UTF-8") from None
    copy = Path(_scratch().name) / f"{abs(hash(file.absolute()))}{''.join(file.suffixes[:1])}"
    copy.write_text(text.removeprefix("\ufeff"), encoding="utf-8", newline="")
    return copy, "none"


def _encoding(head: bytes) -> str | None:
    """UTF-16 of either byte order, by its mark or since every other byte of plain letters is zero; None: another."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    pairs = len(head) // 2
    for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if pairs > 1 and zeros.count(0) > 0.6 * pairs:
            return encoding
    return None


def not_utf8(path: object, place: str = "") -> InputError:
    """The error of a text in another encoding, with a command that writes it in UTF-8."""
    how = "save the file as UTF-8"
    if isinstance(path, Path) and path != STANDARD_INPUT:
        new = path.with_name(f"{path.name.partition('.')[0]}-utf8{''.join(path.suffixes[-1:])}")
        how += (
            f", or, where it is Windows-1252 or Latin-1 as Excel writes it: "
            f"`iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(str(new))}`, and give {new.name}"
        )
    return InputError(f"{path}: {place}not UTF-8; {how}")
