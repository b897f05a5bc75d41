"""Run the cells of examples/notebook.ipynb in a folder of their own and write what they show into it.

Usage: python examples/make_notebook.py

Needs altair and vl-convert (`pip install 'venire[report]'`): charts are kept as pictures, so that the notebook can be
read where no code runs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that hold code, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell among the names of the cells before it: what it printed, and the value of its last line, if any."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    return printed.getvalue(), value


def outputs(printed: str, value: Any, count: int) -> list[dict[str, Any]]:
    """What a notebook keeps of a cell: the text it printed and its value, as a picture, HTML or text."""
    found: list[dict[str, Any]] = []
    if printed:
        found.append({"output_type": "stream", "name": "stdout", "text": printed.splitlines(keepends=True)})
    if value is None:
        return found
    if type(value).__module__.startswith("altair"):
        picture = io.StringIO()
        value.save(picture, format="svg")
        data = {"image/svg+xml": picture.getvalue()}
    elif hasattr(value, "_repr_html_"):
        data = {"text/html": value._repr_html_()}
    else:
        data = {"text/plain": repr(value)}
    found.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    return found


def main() -> None:
    """Run all cells and write the notebook anew."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for count, cell in enumerate(code_cells(notebook), start=1):
                printed, value = run_cell("".join(cell["source"]), names)
                cell["outputs"], cell["execution_count"] = outputs(printed, value, count), count
        finally:
            os.chdir(here)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
