"""Campaign files for others: their JSON Schema, the file with its defaults, and files of environment variables."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from venire.arena.errors import InputError
from venire.configs.env_file import read_env_file
from venire.configs.loading import load_campaign
from venire.configs.publishing import campaign_schema, resolved_text, schema_text, template_text

ROOT = Path(__file__).parents[2]


def test_the_published_schema_is_that_of_the_code() -> None:
    """After a change of a key: .venv/bin/venire init FOLDER writes the new one, for docs/."""
    assert (ROOT / "docs" / "campaign.schema.json").read_text(encoding="utf-8") == schema_text()


def test_the_schema_knows_every_key_of_the_template_and_no_other() -> None:
    schema = campaign_schema()
    template = tomllib.loads(template_text())
    assert template.keys() <= schema["properties"].keys()
    judge = schema["definitions"]["Judge"]
    assert judge["additionalProperties"] is False
    assert template["judge"][0].keys() <= judge["properties"].keys()
    assert "two-stage" in json.dumps(judge["properties"]["protocol"])
    assert judge["properties"]["max_tokens"]["type"] == "integer"
    assert "null" not in schema_text()
    assert template_text().startswith("#:schema ./")


def write(folder: Path, more: str = "") -> Path:
    room = files("venire.configs")
    (folder / "campaign.toml").write_text(
        room.joinpath("demo", "campaign.toml").read_text(encoding="utf-8") + more, encoding="utf-8"
    )
    return folder / "campaign.toml"


def test_a_resolved_file_has_the_defaults_and_the_values_of_the_file(tmp_path: Path) -> None:
    more = (
        '[[judge]]\nmodel = "far"\nbase_url = "https://far.example/v1"\nfree = true\nheaders = { "X-Title" = "hm" }\n'
    )
    path = write(tmp_path, more + 'temperature = "default"\n')
    campaign, shown = load_campaign(path), tomllib.loads(resolved_text(path))
    assert shown["name"] == campaign.name
    assert [one["model"] for one in shown["judge"]] == [one.model for one in campaign.judges]
    assert shown["judge"][-1]["max_attempts"] == 5
    assert shown["judge"][-1]["temperature"] == "default"
    assert shown["judge"][-1]["headers"] == {"X-Title": "[masked]"}
    assert "hm" not in resolved_text(path).replace("[masked]", "")


def test_an_env_file_takes_what_shells_take(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# keys\nONE=1\nexport TWO=\"a b\"\nTHREE='x=y'  # why\nFOUR=$ONE\n\n", encoding="utf-8")
    assert read_env_file(path) == {"ONE": "1", "TWO": "a b", "THREE": "x=y", "FOUR": "$ONE"}


@pytest.mark.parametrize("line", ["sk-secret and more", "sk-secret", "=sk-secret"])
def test_a_line_that_gives_no_variable_is_named_and_not_shown(tmp_path: Path, line: str) -> None:
    path = tmp_path / ".env"
    path.write_text(f"ONE=1\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"\.env: line 2 gives no variable; write NAME=value") as found:
        read_env_file(path)
    assert "secret" not in str(found.value)


def test_an_env_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing: the file of environment variables cannot be read: No such file"):
        read_env_file(tmp_path / "nothing")
