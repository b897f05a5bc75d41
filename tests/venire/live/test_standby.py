"""A store is lent while its owner plans or rates: status and SQL need not wait for a run with a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.venire.conftest import Done
from venire.arena.errors import InputError
from venire.configs.loading import load_campaign
from venire.live.client import Owner
from venire.live.sockets import socket_path
from venire.session import Session


def test_a_session_answers_before_a_run_and_after_it(
    write_campaign: Callable[..., Path], venire: Callable[..., Done], direct_judges: None
) -> None:
    file = write_campaign()
    with Session(load_campaign(file)) as session:
        before = Owner(session.store.path).status()["campaigns"][0]["progress"]
        assert before["settled"] == 0 < before["planned"]
        session.run()
        after = Owner(session.store.path).status()["campaigns"][0]["progress"]
        assert after["settled"] == after["planned"] == before["planned"]
        assert venire("status", session.store.path).code == 0
        counted = venire("sql", session.store.path, "select count(*) as n from verdict", "--csv")
        assert counted.out.replace(chr(34), "").split() == ["n", str(after["settled"])]
        assert Owner(session.store.path).live() is None
        assert venire("watch", session.store.path).code == 2
    assert not socket_path(session.store.path).exists()


def test_a_session_that_is_refused_lends_nothing(write_campaign: Callable[..., Path]) -> None:
    file = write_campaign(more="[budget]\ncalls = 1")
    session = Session(load_campaign(file), spends=True)
    with pytest.raises(InputError), session:
        pass
    assert not socket_path(session.campaign.store).exists()


def test_a_status_that_takes_long_is_the_last_one_that_was_made(tmp_path: Path) -> None:
    import asyncio
    import threading

    from venire.live.answers import Answers
    from venire.live.server import serve
    from venire.storage.read.selecting import Selected

    made, going_on = [], threading.Event()

    def status() -> dict[str, Any]:
        made.append(len(made))
        if len(made) == 2:
            going_on.wait(30)
        return {"made": made[-1]}

    async def ask() -> list[dict[str, Any]]:
        answers = Answers(None, status, lambda *_: Selected((), []))
        async with serve(tmp_path / "a.duckdb", answers):
            owner = Owner(tmp_path / "a.duckdb")
            first = await asyncio.to_thread(owner.status)
            monkey.setattr("venire.live.server._STATUS_SECONDS", -1.0)
            second = await asyncio.to_thread(owner.status)
            going_on.set()
            return [first, second]

    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr("venire.live.server._GLANCE_SECONDS", 0.01)
        assert asyncio.run(ask()) == [{"made": 0}, {"made": 0}]
