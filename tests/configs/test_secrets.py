"""Danger: a user pastes a key into the campaign file, and the error message carries it into a log."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from venire.arena.errors import InputError
from venire.configs.loading import load_campaign

SECRET = "sk-proj-A1b2C3d4E5f6G7h8"
PLAIN = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7"
JUDGE = '[[judge]]\nmodel = "m"\n'


def refusal(tmp_path: Path, text: str) -> tuple[str, str]:
    """The message, and the whole traceback as a terminal would show it."""
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_campaign(path)
    return str(caught.value), "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("secret", [SECRET, PLAIN])
@pytest.mark.parametrize(
    "text",
    [
        'api_key = "{0}"\n',
        JUDGE + 'api_key = "{0}"\n',
        JUDGE + 'key = ["{0}"]\n',
        JUDGE + 'headers = {{ Authorization = "Bearer {0}" }}\n',
        '[keys]\nopenai = "{0}"\n' + JUDGE,
        JUDGE + 'key_variable = "{0}"\n',
        JUDGE + 'key_variable = ["{0}"]\n',
        JUDGE + 'key_variable = {{ name = "{0}" }}\n',
        JUDGE + 'base_url = "https://user:{0}@host.example/v1"\n',
        JUDGE + 'base_url = "https://{0}@host.example/v1"\n',
        JUDGE + 'base_url = "https://host.example/v1?key={0}"\n',
        JUDGE + 'base_url = "https://host.example/v1#{0}"\n',
        JUDGE + 'base_url = "{0}"\n',
        JUDGE + 'base_url = "https://[{0}/v1"\n',
        JUDGE + 'base_url = ["{0}"]\n',
        JUDGE + 'max_tokens = "{0}"\n',
        JUDGE + 'provider = "{0}"\n',
        JUDGE + 'price = "{0}"\n',
        'judge = ["{0}"]\n',
        JUDGE + '"{0}" = 1\n',
        '[data.families]\n"{0}" = 1\n',
        '[data.map]\n"{0}" = 1\n',
        JUDGE + "key_variable = {0}\n",
        JUDGE + "{0}\n",
        "[{0}]\n[{0}]\n",
        'x = {{ "{0}" = 1, "{0}" = 2 }}\n',
        JUDGE + 'name = "{0}"\n' + JUDGE + 'name = "{0}"\n',
    ],
)
def test_no_error_shows_a_pasted_key(tmp_path: Path, text: str, secret: str) -> None:
    for shown in refusal(tmp_path, text.format(secret)):
        assert secret not in shown
        assert secret[8:] not in shown


@pytest.mark.parametrize(
    "value",
    [SECRET, PLAIN, "AKIAIOSFODNN7EXAMPLE", "gsk_Abc123", "MyKey", "1KEY", "", "A B", "deadbeef0123456789abcdef"],
)
def test_a_key_variable_that_is_no_name_is_told_apart_from_a_key(tmp_path: Path, value: str) -> None:
    message, _ = refusal(tmp_path, JUDGE + f'base_url = "https://host.example"\nkey_variable = "{value}"\n')
    assert "judge[1].key_variable" in message
    assert "this looks like a key itself: put it into an environment variable and name that" in message
    assert not value or f'"{value}"' not in message


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "_KEY", "KEY2", "openai_key"])
def test_names_of_environment_variables_are_accepted(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(JUDGE + f'base_url = "https://host.example"\nkey_variable = "{name}"\n')
    assert load_campaign(path).judges[0].lane.routes[0].key_variable == name


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://user:word@host.example/v1", "a user name or password"),
        ("https://user@host.example/v1", "a user name or password"),
        ("https://host.example/v1?x=y", "a query string or fragment"),
        ("https://host.example/v1?", "a query string or fragment"),
        ("https://host.example/v1#z", "a query string or fragment"),
        ("ftp://host.example/v1", "not an http or https URL"),
        ("host.example/v1", "not an http or https URL"),
        ("https:///v1", "not an http or https URL"),
        ("https://host.example:99999/v1", "not a URL"),
        ("https://ho st.example/v1", "not an http or https URL"),
        ("", "not an http or https URL"),
    ],
)
def test_a_base_url_is_refused_without_being_shown(tmp_path: Path, url: str, reason: str) -> None:
    message, _ = refusal(tmp_path, JUDGE + f'base_url = "{url}"\n')
    assert f'judge[1].base_url (judge "m"): {reason}' in message
    assert not url or url not in message


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "https://[::1]:8000", "https://api.openai.com/v1"])
def test_http_and_https_addresses_are_accepted(tmp_path: Path, url: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(JUDGE + f'base_url = "{url}"\n')
    assert load_campaign(path).judges[0].lane.routes[0].base_url == url


def test_a_pasted_key_is_sent_to_the_environment(tmp_path: Path) -> None:
    message, _ = refusal(tmp_path, JUDGE + f'api_key = "{SECRET}"\n')
    assert "judge[1].api_key" in message
    assert "put it into an environment variable and name that in key_variable" in message
