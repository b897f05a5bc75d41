"""The charts of a report as files: for a paper, a slide, or whoever wants to draw them otherwise."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from venire.arena.errors import InputError
from venire.arena.wording import plain
from venire.reports.board.board import Board
from venire.reports.plots import CHARTS


def write_figures(board: Board, folder: Path) -> tuple[str, ...]:
    """Draw each chart that a board has data for as SVG and PNG, with its Vega-Lite specification; the kinds drawn.

    The folder is made where it is missing, files of these names in it are replaced. Raises InputError where altair or
    vl-convert is missing or the folder cannot be written.
    """
    if missing := [package for module, package in _NEEDED.items() if find_spec(module) is None]:
        raise InputError(f"figures need {', '.join(missing)}: pip install 'venire[report]'")
    made: dict[str, str] = {}
    for kind in CHARTS:
        with suppress(InputError):  # it has no data for this kind
            made[kind] = board.plot(kind).to_json(indent=None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _drawer() as process:
            for kind, specification in made.items():
                _draw(process, folder, kind, specification)
    except OSError as error:
        raise InputError(f"figures cannot be written to {folder}: {error.strerror or error}") from error
    return tuple(made)


def _draw(process: ProcessPoolExecutor, folder: Path, kind: str, specification: str) -> None:
    """Write the files of one chart; what draws may end its process."""
    written = folder / f"{kind}.json"
    written.write_text(specification, encoding="utf-8")
    for form in _PICTURES:
        try:
            drawn = process.submit(_picture, specification, form).result()
        except (BrokenProcessPool, ValueError) as error:
            raise InputError(
                f"{folder / kind}.{form} cannot be drawn: {plain(str(error))}; what it shows is in {written}, "
                "for another program that draws Vega-Lite"
            ) from error
        (folder / f"{kind}.{form}").write_bytes(drawn)


def _drawer() -> ProcessPoolExecutor:
    """A process that draws: what aborts it is a BrokenProcessPool here."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin_to_draw)


def _begin_to_draw() -> None:
    """Do not outlive the process that asks, which may be killed; a Ctrl-C is for it, as are sentences."""

    def watch() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)  # a panic prints its stack there
    os.close(silent)


def _picture(specification: str, form: Literal["svg", "png"]) -> bytes:
    """A Vega-Lite specification as SVG, or as PNG at twice its size. Raises ImportError without vl-convert."""
    import vl_convert

    version = re.search(r"/v(\d+\.\d+)", json.loads(specification)["$schema"])
    assert version is not None  # altair writes it
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification, vl_version=version[1], scale=2))
    return str(vl_convert.vegalite_to_svg(specification, vl_version=version[1])).encode()


_PICTURES: tuple[Literal["svg", "png"], ...] = ("svg", "png")
_NEEDED = {"altair": "altair", "vl_convert": "vl-convert-python"}
