"""One installed name: what is built holds `venire` and nothing else at its top, and starts without heavy imports."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_sdist, build_wheel

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("litellm", "scipy", "duckdb", "numpy", "aiohttp", "ry")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The files of the wheel built from the tree, and of the one built from the sdist."""
    made = tmp_path_factory.mktemp("built")

    def names(source: Path, folder: Path) -> set[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(source)
            return set(zipfile.ZipFile(folder / build_wheel(str(folder))).namelist())

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        sdist = made / build_sdist(str(made))
    with tarfile.open(sdist) as packed:
        packed.extractall(made, filter="data")
    return names(ROOT, made), names(made / sdist.name.removesuffix(".tar.gz"), made)


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
        "venire/configs/template.toml",
        "venire/configs/demo/completions.jsonl",
    ],
)
def test_the_wheel_holds_what_is_not_code(wheels: tuple[set[str], set[str]], name: str) -> None:
    assert name in wheels[0]


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys, contextlib, io\n"
        "from venire.cli import main\n"
        "for words in ['--help'], ['run', '--help'], ['--version']:\n"
        "    sys.argv = ['venire', *words]\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "        main()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def pinned(name: str) -> dict[str, str]:
    """The version of each package of a lock, with the marker that says where it is installed."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.removesuffix(" \\").split("==", 1) for line in lines if line[:1].isalnum())


@pytest.mark.parametrize(("name", "least"), [("requirements.lock", 50), ("requirements-ray.lock", 10)])
def test_a_lock_has_hashes_and_no_address(name: str, least: int) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    assert len(pinned(name)) > least
    assert lock.count("--hash=sha256:") >= len(pinned(name))
    assert "://" not in lock


def test_the_lock_of_ray_can_be_installed_beside_the_other() -> None:
    main, ray = pinned("requirements.lock"), pinned("requirements-ray.lock")
    assert "ray" in ray.keys() - main.keys()
    both = main.keys() & ray.keys()
    assert {name: ray[name].split(" ;")[0] for name in both} == {name: main[name].split(" ;")[0] for name in both}


def test_the_extra_and_the_lock_of_ray_have_one_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["optional-dependencies"]["ray"] == project["dependency-groups"]["ray"]
