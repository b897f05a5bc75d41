"""A signal while a command starts: no traceback, and the status of an interrupted command."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import signal, sys
from venire.cli import main

class Sends:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            signal.raise_signal({number})

sys.meta_path.insert(0, Sends())
sys.argv = ["venire", *{words!r}]
main()
"""


@pytest.mark.parametrize(
    ("words", "module", "number"),
    [
        (["status", "nowhere"], "typer", signal.SIGINT),
        (["status", "nowhere"], "venire.cli.run", signal.SIGTERM),
        (["rate", "nowhere.csv"], "duckdb", signal.SIGINT),
        pytest.param(["run", "nowhere.toml"], "venire.session", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_signal_during_an_import_ends_a_command_with_a_word(
    words: list[str], module: str, number: signal.Signals
) -> None:
    script = START.format(module=module, number=int(number), words=words)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "venire: interrupted\n")


def test_a_ctrl_c_in_a_callback_is_not_lost(tmp_path: Path) -> None:
    """Python prints and forgets what a callback raises, and imports have some: the command went on."""
    table = tmp_path / "battles.csv"  # of a file that is not there the command says so before the signal comes again
    table.write_text("model_a,model_b,winner\na,b,model_a\nb,a,model_a\n", encoding="utf-8")
    script = START.format(module="duckdb", number=0, words=["rate", str(table)])
    lost = "weakref.finalize(Sends(), signal.raise_signal, signal.SIGINT)"
    script = script.replace("signal.raise_signal(0)", f"import weakref; {lost}")
    for _ in range(3):  # one in forty falls into the import of a native module, which aborts
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        if done.returncode == 130:
            break
    assert (done.returncode, done.stderr) == (130, "venire: interrupted\n")
