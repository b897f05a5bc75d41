"""A part is added to the product by one new file and one line of the registry, as CONTRIBUTING says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = {
    "protocol": ("venire-scale", "scale", "SCALE", "judges/protocols/scale/__init__.py", "two-stage"),
    "provider": ("venire-plain", "plain", "PLAIN", "judges/providers/plain.py", "openai"),
    "policy": ("venire-swiss", "swiss", "SWISS", "orchestrator/policies/swiss.py", "widest-gap"),
    "method": ("venire-glicko", "glicko", "GLICKO", "ratings/methods/glicko.py", "bradley-terry"),
    "format": ("venire-sides", "sides", "SIDES", "storage/transfer/formats/sides.py", "alpaca-eval"),
}
"""The example package of each kind, its name and object, the file it becomes, and the entry its line goes before."""
CHECKS = """
import json, sys
from pathlib import Path
import venire
from venire.testing import check_format, check_method, check_policy, check_protocol, check_provider

assert Path(venire.__file__).is_relative_to(Path.cwd()), venire.__file__
check_protocol("scale")
check_provider("plain", lambda text: json.dumps({"output": text, "tokens": [9, 1]}).encode())
check_policy("swiss")
check_method("glicko")
Path("sides.csv").write_text(
    "question,left,right,left_model,right_model,chosen,rater\\n"
    "Q1?,a1,b1,ant,bee,left,me\\nQ2?,a2,b2,ant,bee,right,me\\nQ3?,a3,b3,ant,bee,both,me\\n"
)
check_format("sides", texts=[Path("sides.csv")], verdicts=[Path("sides.csv")])
"""
CAMPAIGN = """\
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"
[[judge]]
model = "simulated/gpt-4-0613@1"
protocol = "scale"
[plan]
policy = "swiss"
battles = 20
round = 10
"""


@pytest.mark.slow
def test_each_part_is_one_file_and_one_line(tmp_path: Path) -> None:
    product = tmp_path / "venire"
    shutil.copytree(ROOT / "venire", product, ignore=shutil.ignore_patterns("__pycache__"))
    registry = product / "arena" / "registry.py"
    lines = registry.read_text(encoding="utf-8").splitlines()
    for package, name, part, path, before in PARTS.values():
        source = ROOT / "examples" / "plugins" / package / package.replace("-", "_")
        file = product / path
        file.parent.mkdir(exist_ok=True)
        module = "venire." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        text = (source / "__init__.py").read_text(encoding="utf-8")
        file.write_text(text.replace(f"{source.name}:", f"{module}:"), encoding="utf-8")
        if (source / "prompts").exists():
            shutil.copytree(source / "prompts", file.parent / "prompts")
        entry = f'        "{before}": "venire.{path.split("/")[0]}.'
        at = next(number for number, line in enumerate(lines) if line.startswith(entry))
        lines.insert(at, f'        "{name}": "{module}:{part}",')
    registry.write_text("\n".join(lines) + "\n", encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "160"}

    def run(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-c", CHECKS)
    for name in ("instructions.jsonl", "completions.jsonl", "elo.csv"):
        shutil.copy(product / "configs" / "demo" / name, tmp_path / name)
    (tmp_path / "tried.toml").write_text(CAMPAIGN, encoding="utf-8")
    run("-m", "venire", "run", "tried.toml", "--yes")
    assert json.loads(run("-m", "venire", "rate", "tried.duckdb", "--method", "glicko", "--json"))["models"]
    assert "3 instructions" in run("-m", "venire", "import", "sides", "sides.csv", "--store", "s.duckdb")
