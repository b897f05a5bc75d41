"""The notebook of the examples: its cells run in order, anywhere, and what it shows is what they show."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOK = EXAMPLES / "notebook.ipynb"


def shown(outputs: list[dict[str, Any]]) -> list[str]:
    """What a cell shows as text: what it printed, its tables, and that there is a picture."""
    found = ["".join(one["text"]) if one["output_type"] == "stream" else "" for one in outputs]
    data = [one.get("data", {}) for one in outputs]
    return [*found, *(one.get("text/html", one.get("text/plain", "")) for one in data), *map(str, map(list, data))]


@pytest.mark.usefixtures("direct_judges")
def test_the_cells_run_in_order_in_any_folder_and_show_what_the_notebook_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    maker = runpy.run_path(str(EXAMPLES / "make_notebook.py"))
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = maker["code_cells"](json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    for count, cell in enumerate(cells, start=1):
        printed, value = maker["run_cell"]("".join(cell["source"]), names)
        assert shown(maker["outputs"](printed, value, count)) == shown(cell["outputs"]), "make notebook"
    assert [one.name for one in tmp_path.glob("*.duckdb")] == ["demo.duckdb"]


def test_the_notebook_has_outputs_and_no_path_of_the_machine_that_made_it() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [
        place
        for place in ("/tmp", "/home", "/root", "/Users", "site-packages")
        if place in "".join(map(str, (shown(cell["outputs"]) for cell in cells)))
    ]
    assert len(text) < 300_000
