"""litellm takes seconds to import and warns: each of these tests has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from venire.arena.errors import InputError
from venire.judges.providers import litellm

HERE = Path(__file__).resolve().parent


@pytest.mark.slow
def test_litellm_keeps_the_contract():
    command = [sys.executable, "-m", "pytest", "-q", "-W", "default", "--timeout=60"]
    finished = subprocess.run(
        [*command, *(str(HERE / name) for name in ("test_contract.py", "litellm_cases.py", "litellm_vendors.py"))],
        cwd=HERE.parents[2],
        env={**os.environ, "VENIRE_CONTRACT": "litellm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout[-6000:] + finished.stderr[-2000:]


def test_nothing_imports_litellm_before_it_is_used():
    program = """
import sys
from venire.arena.records import Request
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.price_table import find_price
assert find_price("gpt-4o-mini") is not None
provider = PROVIDERS["litellm"].open(Endpoint("http://127.0.0.1:1", None, 1.0, 1))
provider.encode("openai/m", Request(({"role": "user", "content": "?"},), 8))
found = sorted(name for name in sys.modules if name.partition(".")[0] in ("litellm", "openai", "httpx"))
assert not found, found
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize(
    "version", ["1.82.6", "1.82.7", "1.82.8", "1.106.1", "1.107.0", "1.107.3", "1.110.0", "2.0.0", "1.106.2rc1", "dev"]
)
def test_a_release_outside_the_range_is_not_imported(version, monkeypatch):
    """Some published releases stole keys: the refusal has to come before the import."""
    monkeypatch.setattr(litellm, "version", lambda name: version)
    monkeypatch.setattr(litellm, "import_module", lambda name: pytest.fail(f"{name} was imported"))
    with pytest.raises(InputError, match=rf"litellm {version} is installed.*docs/security\.md"):
        litellm._load.__wrapped__()


@pytest.mark.parametrize("version", ["1.106.2", "1.106.2.post1", "1.106.10", "1.108.0", "1.109.99"])
def test_a_release_within_the_range_is_accepted(version):
    litellm._check_version(version)


def test_the_range_is_the_one_that_is_declared():
    declared = tomllib.loads((HERE.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    assert litellm.ACCEPTED in declared
    assert litellm.ACCEPTED in (HERE.parents[2] / "docs" / "security.md").read_text(encoding="utf-8")


def test_a_missing_litellm_is_said_to_be_missing(monkeypatch):
    def missing(name):
        raise litellm.PackageNotFoundError(name)

    monkeypatch.setattr(litellm, "version", missing)
    with pytest.raises(InputError, match="litellm is not installed"):
        litellm._load.__wrapped__()
