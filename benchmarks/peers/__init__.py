"""Other tools that make the same calls, each in a separate environment: their pins conflict with others and ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PEERS", "Peer"]

_HERE = Path(__file__).parent
_ENVIRONMENTS = _HERE.parent.parent / ".venv-peers"
_TIKTOKEN = "lib/python{0.major}.{0.minor}/site-packages/litellm/litellm_core_utils/tokenizers"


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool, its package, and the settings that keep it from the network."""

    name: str
    package: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Its environment, which `make bench-peers` creates."""
        return _ENVIRONMENTS / self.name

    @property
    def python(self) -> Path:
        """The interpreter in its environment."""
        return self.folder / "bin" / "python"

    @property
    def driver(self) -> Path:
        """The script that makes the calls."""
        return _HERE / f"{self.name}_driver.py"

    @property
    def version(self) -> str:
        """The version in its lock."""
        lock = (_HERE / f"{self.name}.lock").read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(self.package)}==([^\s;]+)", lock, re.MULTILINE)
        assert found is not None, self.name
        return found[1]

    @property
    def settings(self) -> dict[str, str]:
        """Environment variables for its process; the tokenizer that litellm ships replaces a download."""
        tokens = self.folder / _TIKTOKEN.format(sys.version_info)
        return {**self.environment, "TIKTOKEN_CACHE_DIR": str(tokens), "NO_COLOR": "1"}


_QUIET_LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
_QUIET_CURATOR = {
    "TELEMETRY_ENABLED": "false",
    "CURATOR_DISABLE_CACHE": "1",
    "CURATOR_DISABLE_RICH_DISPLAY": "1",
    "CURATOR_VIEWER": "0",
    "OPENAI_API_KEY": "none",
    "HF_HUB_OFFLINE": "1",
}

PEERS: dict[str, Peer] = {
    "litellm": Peer("litellm", "litellm", _QUIET_LITELLM),
    "curator": Peer("curator", "bespokelabs-curator", _QUIET_LITELLM | _QUIET_CURATOR),
    "async_batch_llm": Peer("async_batch_llm", "async-batch-llm"),
    "inspect_ai": Peer("inspect_ai", "inspect-ai"),
}
"""Every peer by its name."""
