"""A cache of prompts as vendors document it, by itself and behind the simulated provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from venire.simulation.prefix_cache import CacheSize, PrefixCache

Make = Callable[..., Any]
Talk = Callable[..., None]

BLOCK = 128


@pytest.fixture
def ask_body(request: pytest.FixtureRequest) -> Make:
    """The folder's `ask`, whose name is taken here."""
    make: Make = request.getfixturevalue("ask")
    return make


def cache(most: int = 1_000, *, least: int = 0) -> PrefixCache:
    """Of tokens that are one character long."""
    return PrefixCache(CacheSize(most, least), characters=1)


def ask(of: PrefixCache, text: str, *, account: str = "a", model: str = "m", now: float = 0.0, delay: float = 0) -> int:
    return of.ask(account, model, [("user", text)], now=now, delay=delay)


def text(tokens: int, end: str = "") -> str:
    """A prompt of so many tokens with its role, that begins as the others do."""
    return ("abcdefgh" * tokens)[: tokens - 6 - len(end)] + end


def test_what_begins_alike_is_read_in_whole_blocks() -> None:
    of = cache()
    assert ask(of, text(1_000)) == 0
    assert ask(of, text(1_000)) == 7 * BLOCK
    assert ask(of, text(1_000, end="!")) == 7 * BLOCK
    assert ask(of, text(896, end="!")) == 6 * BLOCK
    assert ask(of, "!" + text(1_000)) == 0, "only the beginning counts"


def test_a_conversation_that_goes_on_reads_what_was_said_before() -> None:
    of = cache()
    ask(of, text(640))
    longer = [("user", text(640)), ("assistant", "reasons " * 100), ("user", "decide")]
    assert of.ask("a", "m", longer, now=0, delay=0) == 5 * BLOCK


def test_nothing_is_read_for_less_than_the_least() -> None:
    of = cache(least=1_024)
    for tokens, read in ((1_023, 0), (1_024, 1_024), (1_300, 1_280)):
        ask(of, text(tokens))
        assert ask(of, text(tokens)) == read


def test_accounts_and_models_share_nothing() -> None:
    of = cache()
    ask(of, text(640))
    assert ask(of, text(640), account="b") == 0
    assert ask(of, text(640), model="n") == 0
    assert ask(of, text(640)) == 640


def test_calls_that_leave_together_do_not_help_each_other() -> None:
    of = cache()
    assert ask(of, text(640), now=0, delay=2) == 0
    assert ask(of, text(640), now=1, delay=2) == 0
    assert ask(of, text(640), now=2, delay=2) == 640, "the first has begun to be answered"


def test_what_is_not_used_for_five_minutes_is_gone_and_use_keeps_it() -> None:
    of = cache()
    ask(of, text(640))
    assert [ask(of, text(640), now=moment) for moment in (300, 600, 901)] == [640, 640, 0]


def test_what_was_used_least_recently_gives_way_and_of_a_prompt_its_end() -> None:
    of = cache(5)
    ask(of, text(3 * BLOCK))
    ask(of, "other " + text(3 * BLOCK))
    assert ask(of, text(3 * BLOCK)) == 2 * BLOCK


MODEL = "simulated/gpt-4-0613@1"


def told(usage: dict[str, Any]) -> int:
    return usage["prompt_tokens_details"]["cached_tokens"]


def test_the_provider_tells_what_it_read_for_each_key(talk: Talk, make_server: Make, ask_body: Make) -> None:
    async def script(client: Any) -> None:
        usages = []
        for account in ("one", "one", "two"):
            answer = await client.chat(ask_body(MODEL, "What then? " * 500), {"Authorization": f"Bearer {account}"})
            usages.append(answer.usage)
        assert told(usages[0]) == told(usages[2]) == 0
        assert told(usages[1]) == usages[1]["prompt_tokens"] // BLOCK * BLOCK > 0

    talk(make_server(cache=CacheSize(1_000, 0)), script)


def test_a_verdict_reads_what_its_reasons_were_asked_with(talk: Talk, make_server: Make, ask_body: Make) -> None:
    async def script(client: Any) -> None:
        asked = (await client.chat(ask_body(MODEL, "What then? " * 500))).usage
        decided = (await client.chat(ask_body(MODEL, "What then? " * 500, "verdict"))).usage
        assert told(decided) == asked["prompt_tokens"] // BLOCK * BLOCK

    talk(make_server(cache=CacheSize(1_000)), script)


def test_without_a_cache_nothing_is_told(talk: Talk, make_server: Make, ask_body: Make) -> None:
    async def script(client: Any) -> None:
        assert "prompt_tokens_details" not in (await client.chat(ask_body(MODEL, "What then?"))).usage

    talk(make_server(), script)
