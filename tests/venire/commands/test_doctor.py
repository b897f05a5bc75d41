"""`venire doctor` looks over keys, endpoints, prices and the machine, and asks endpoints only with consent."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from venire.arena.errors import InputError
from venire.configs.loading import load_campaign
from venire.doctor import file_system_of
from venire.endpoints import check_routes

Venire = Callable[..., Any]
Write = Callable[..., Path]

JUDGE = """\
[[judge]]
name = "near"
model = "simulated/gpt-4-0613@1"
base_url = "{url}"
{more}
"""


def states(document: Any) -> dict[str, str]:
    return {one["subject"]: one["state"] for one in document["findings"]}


def test_without_a_file_the_machine_is_looked_over(venire: Venire) -> None:
    done = venire("doctor", "--json")
    assert done.code == 0
    assert list(states(done.json())) == ["versions", "clock", "file system", "folder", "disk", "open files"]
    assert "venire 0." in venire("doctor").out


def test_an_endpoint_is_asked_once_with_consent_and_its_model_shown(
    venire: Venire, write_campaign: Write, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEAR_KEY", "sk-doctor-0123456789")
    with serve() as server:
        more = 'key_variable = "NEAR_KEY"\nprice = { input = 1, output = 2 }'
        campaign = write_campaign(judges=JUDGE.format(url=server.base_url, more=more))
        asked = venire("doctor", campaign)
        assert asked.code == 0
        assert "1 endpoint was not asked" in asked.out
        assert "--yes" in asked.out
        assert not server.ledger.entries
        done = venire("doctor", campaign, "--yes", "--json")
        assert len(server.ledger.entries) == 1
    assert done.code == 0, done.out
    (near,) = [one for one in done.json()["findings"] if one["subject"] == "endpoint of near"]
    assert near["state"] == "ok"
    assert "served model: simulated/gpt-4-0613" in near["says"]
    (abilities,) = [one for one in done.json()["findings"] if one["subject"] == "abilities of near"]
    assert all(word in abilities["says"] for word in ("log-probabilities asked for", "schema", "batches"))
    assert "sk-doctor" not in done.out + done.err
    assert not campaign.with_suffix(".duckdb").exists()


@pytest.mark.parametrize(
    "more",
    [
        "price = { input = 0.000001, output = 2 }",
        "price = { input = 0, output = 0 }",
        "",
        'free = true\n[[judge.fallback]]\nbase_url = "{url}"\nmodel = "m"\nprice = { input = 1, output = 0.000002 }',
    ],
)
def test_what_has_no_price_that_can_be_is_not_asked(
    venire: Venire, write_campaign: Write, serve: Any, more: str
) -> None:
    with serve() as server:
        judge = JUDGE.replace("simulated/gpt-4-0613@1", "made-up")
        file = write_campaign(judges=judge.format(url=server.base_url, more=more.replace("{url}", server.base_url)))
        done = venire("doctor", file, "--yes", "--json")
        assert not server.ledger.entries
    assert done.code == 1
    assert states(done.json())["price of near"] == "problem"


def test_a_missing_key_an_unknown_price_and_a_dead_endpoint_are_problems(
    venire: Venire, write_campaign: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEAR_KEY", raising=False)
    judges = JUDGE.format(url="http://127.0.0.1:9/v1", more='key_variable = "NEAR_KEY"')
    judges = judges.replace("simulated/gpt-4-0613@1", "made-up")
    dead = judges.replace('"near"', '"dead"').replace('key_variable = "NEAR_KEY"', "free = true")
    done = venire("doctor", write_campaign(judges=judges + dead), "--yes")
    assert done.code == 1
    assert "export NEAR_KEY=..." in done.out
    assert "known for the model 'made-up'" in done.out
    assert "endpoint of dead" in done.out
    assert "3 of " in done.out


def test_few_open_files_are_warned_of(venire: Venire, write_campaign: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (40, 40))
    done = venire("doctor", write_campaign(), "--json")
    assert done.code == 0
    assert states(done.json())["open files"] == "warning"
    assert "ulimit -n " in done.out


def test_the_file_system_is_that_of_the_longest_mount_point(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    inner = tmp_path / "a b"
    inner.mkdir()
    shown = str(inner).replace(" ", "\\040")
    lines = (
        f"23 22 0:22 / {shown} rw,relatime shared:1 - nfs4 server:/x rw",
        "22 1 0:21 / / rw - ext4 /dev/sda rw",
    )
    mounts.write_text("\n".join(lines), encoding="utf-8")
    assert file_system_of(inner, mounts) == "nfs4"
    assert file_system_of(tmp_path, mounts) == "ext4"
    assert file_system_of(tmp_path, tmp_path / "nothing") is None


def test_a_proxy_of_the_environment_is_named_where_it_is_not_used(
    venire: Venire, write_campaign: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The danger: behind a proxy nobody answered, and nothing said that HTTPS_PROXY is not looked at."""
    more = "price = { input = 1, output = 2 }"
    monkeypatch.setenv("https_proxy", "http://user:pa55word@proxy.example.org:3128")
    far = JUDGE.format(url="https://host.example/v1", more=more)
    done = venire("doctor", write_campaign(judges=far), "--json")
    (proxy,) = [one for one in done.json()["findings"] if one["subject"] == "proxy"]
    assert proxy["state"] == "warning"
    assert 'proxy_variable = "https_proxy"' in proxy["says"]
    assert "pa55word" not in done.out + done.err
    for named in (
        JUDGE.format(url="https://host.example/v1", more=f'{more}\nproxy_variable = "https_proxy"'),
        JUDGE.format(url="http://127.0.0.1:9/v1", more=more),
    ):
        assert "proxy" not in states(venire("doctor", write_campaign(judges=named), "--json").json())


def test_a_run_that_reaches_nobody_names_the_proxy_that_it_does_not_use(
    write_campaign: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    far = JUDGE.format(url="https://host.example/v1", more="price = { input = 1, output = 2 }")
    campaign = load_campaign(write_campaign(judges=far))

    class Nobody:
        async def check(self) -> str | None:
            raise InputError("nobody answers at this address")

    (judge,) = campaign.judges
    asked: Any = SimpleNamespace(judge=judge, route=judge.lane.routes[0], provider=Nobody())
    with pytest.raises(InputError, match=r"nobody answers .*\n.*HTTPS_PROXY is set, .* proxy_variable"):
        asyncio.run(check_routes(campaign, [asked], None))
