"""One installed name: what is built holds `venire` and nothing else at its top, and starts without heavy imports."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("litellm", "scipy", "duckdb", "numpy", "aiohttp", "ry")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The files of the wheel built from the tree, and of the one built from the sdist."""
    found = []
    for how, options in (("tree", ["--wheel"]), ("sdist", [])):
        folder = tmp_path_factory.mktemp(how)
        command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        (wheel,) = folder.glob("*.whl")
        found.append(set(zipfile.ZipFile(wheel).namelist()))
    return found[0], found[1]


@pytest.mark.slow
def test_the_wheel_has_one_top_level_name(wheels: tuple[set[str], set[str]]) -> None:
    tops = {name.split("/")[0] for name in wheels[0]}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"venire"}


def test_the_wheel_is_the_same_from_the_tree_and_from_the_sdist(wheels: tuple[set[str], set[str]]) -> None:
    assert wheels[0] == wheels[1]


@pytest.mark.parametrize(
    "name",
    [
        "venire/py.typed",
        "venire/storage/migrations/0001_first.sql",
        "venire/storage/queries/plans.sql",
        "venire/judges/protocols/two_stage/reasons.txt",
        "venire/simulation/profiles.json",
        "venire/simulation/injections.jsonl",
        "venire/configs/template.toml",
        "venire/configs/demo/completions.jsonl",
    ],
)
def test_the_wheel_holds_what_is_not_code(wheels: tuple[set[str], set[str]], name: str) -> None:
    assert name in wheels[0]


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys, contextlib, io\n"
        "from venire.cli import main\n"
        f"sys.argv = ['venire', *{words!r}]\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_lock_has_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = [line for line in lock.splitlines() if line[:1].isalnum()]
    assert len(pinned) > 50
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert "://" not in lock
