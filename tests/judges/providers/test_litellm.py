"""litellm takes seconds to import and warns: each of these tests has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_litellm_keeps_the_contract():
    command = [sys.executable, "-m", "pytest", "-q", "-W", "default", "--timeout=60"]
    finished = subprocess.run(
        [*command, str(HERE / "test_contract.py"), str(HERE / "litellm_cases.py")],
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
from venire.judges.providers.prices import find_price
assert find_price("gpt-4o-mini") is not None
provider = PROVIDERS["litellm"](Endpoint("http://127.0.0.1:1", None, 1.0, 1))
provider.encode("openai/m", Request(({"role": "user", "content": "?"},), 8))
found = sorted(name for name in sys.modules if name.partition(".")[0] in ("litellm", "openai", "httpx"))
assert not found, found
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
