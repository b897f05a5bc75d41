"""Votes over HTTP: kept where they come from a page of this server, refused with a sentence where they do not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import pytest

from tests.venire.conftest import Done
from venire.annotation import annotation_pages
from venire.arena.errors import InputError, StoreHeldError
from venire.live.fits import Fits
from venire.live.guard import DoorAddress, Guard
from venire.live.library import Library
from venire.live.pages import Pages
from venire.live.server import serve_pages
from venire.live.voting import MAX_VOTE_BYTES, Voting, read_vote
from venire.pages.rendering import SECURITY_HEADERS
from venire.reports.documents.boards import read_for_board
from venire.storage.read import frames
from venire.storage.store.files import StoreLock
from venire.storage.store.opening import open_store, reading
from venire.storage.transfer.votes import add_votes, read_votes

BASE = "/s/small/c/1"
VOTE = f"{BASE}/annotate/vote"
COUNT = 6


@pytest.fixture
def store(judged: Callable[..., Path]) -> Path:
    return judged().with_suffix(".duckdb")


class Booth:
    """A served store, a session with it, and what a page of it would send."""

    def __init__(self, pages: Pages, session: aiohttp.ClientSession) -> None:
        self.pages, self.session = pages, session
        (self.served,) = pages.library.stores.values()
        self.origin = {"Origin": f"http://127.0.0.1:{pages.guard.port}"}

    async def battles(self, name: str = "ann") -> tuple[int, dict[str, Any]]:
        async with self.session.get(f"{BASE}/annotate/battles", params={"annotator": name}) as response:
            return response.status, await response.json()

    def ballot(self, battle: dict[str, Any], winner: str = "answer_1", **changes: Any) -> dict[str, Any]:
        codes = {f"answer_{side}": one["code"] for side, one in enumerate(battle["answers"], 1)}
        token = self.pages.guard.page_token
        return {"token": token, "annotator": "ann", "winner": winner, "note": "", **codes, **changes}

    async def post(self, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **self.origin, **headers}
        async with self.session.post(VOTE, data=data, headers=sent) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else {"page": text}


@contextlib.asynccontextmanager
async def booth(store: Path, **options: Any) -> AsyncIterator[Booth]:
    voting = Voting(**{"people": "crowd", "count": COUNT, **options})
    pages = Pages(Library.of_paths([store]), Guard(DoorAddress(port=0)), voting=voting, _fits=Unwarmed())
    async with serve_pages(pages):
        base = f"http://127.0.0.1:{pages.guard.port}"
        async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(total=30)) as session:
            yield Booth(pages, session)


class Unwarmed(Fits):
    """Fits of pages on which no board is asked for: no process is started for them."""

    def warm(self) -> None:
        pass


def visit(store: Path, act: Callable[[Booth], Awaitable[None]], **options: Any) -> None:
    async def go() -> None:
        async with booth(store, **options) as one:
            await act(one)

    asyncio.run(go())


def kept(store: Path) -> list[Any]:
    with open_store(store) as opened:
        query = "select people, annotator, winner, note from people_vote order by all"
        return opened.connection.execute(query).fetchall()


def test_a_vote_is_in_the_store_and_comes_back_to_whoever_gave_it(store: Path) -> None:
    async def act(one: Booth) -> None:
        status, found = await one.battles(" ann ")
        assert (status, found["annotator"], len(found["battles"])) == (200, "ann", COUNT)
        battle = found["battles"][2]
        assert battle.keys() == {"asked", "answers", "vote"}
        assert battle["vote"] is None
        assert await one.post(one.ballot(battle, "answer_2", note=" why ")) == (200, {"changed": True})
        assert await one.post(one.ballot(battle, "answer_2", note="why")) == (200, {"changed": False})
        _, again = await one.battles("ann")
        assert again["page"] == found["page"]
        assert [one["vote"] for one in again["battles"]] == [
            {"winner": "answer_2", "note": "why"} if place == 2 else None for place in range(COUNT)
        ]
        assert await one.post(one.ballot(battle, "tie")) == (200, {"changed": True})
        _, other = await one.battles("bob")
        assert all(one["vote"] is None for one in other["battles"])
        codes = [[{each["code"] for each in one["answers"]} for one in each["battles"]] for each in (found, other)]
        assert codes[0] != codes[1]
        assert sorted(map(sorted, codes[0])) == sorted(map(sorted, codes[1]))

    visit(store, act)
    assert kept(store) == [("crowd", "ann", "tie", None)]


def test_the_sample_is_that_of_a_page_by_the_same_options(store: Path) -> None:
    with reading(store) as opened:
        page = annotation_pages(opened, count=COUNT, seed=5, sample="disputed").pages[0].html
    file = json.loads(page.partition('id="data">')[2].partition("</script>")[0])

    async def act(one: Booth) -> None:
        _, found = await one.battles()
        sides = [
            {frozenset(each["code"] for each in one["answers"]) for one in each["battles"]} for each in (file, found)
        ]
        assert sides[0] == sides[1]

    visit(store, act, seed=5, sample="disputed")


def test_nobody_who_votes_is_sent_whose_the_answers_are(store: Path) -> None:
    said: list[str] = []

    async def act(one: Booth) -> None:
        async with one.session.get(f"{BASE}/annotate") as response:
            said.append(f"{response.headers} {await response.text()}")
        _, found = await one.battles()
        said.append(json.dumps(found))
        said.extend([json.dumps(await one.post(one.ballot(battle))) for battle in found["battles"]])
        said.append(json.dumps(await one.battles()))
        for battle in found["battles"]:
            for answer in battle["answers"]:
                assert answer.keys() == {"code", "text"}

    visit(store, act)
    with open_store(store) as opened:
        run = opened.connection.execute
        names = run("select name from model union all select external_id from instruction").fetchall()
        judges = run("select name from campaign_judge").fetchall()
        keys = run("select lower(hex(completion_key)) from completion").fetchall()
    assert len(names) > 6
    for text in said:
        assert not any(json.dumps(name) in text for (name,) in (*names, *judges))
        assert not any(key in text for (key,) in keys)


def test_the_page_has_the_strict_headers_and_every_page_leads_to_it(store: Path) -> None:
    async def act(one: Booth) -> None:
        async with one.session.get("/s/small/annotate") as response:
            text = await response.text()
            assert response.url.path == f"{BASE}/annotate"
            assert SECURITY_HEADERS.items() <= response.headers.items()
            assert response.headers["Cache-Control"] == "no-store"
            assert "<style" not in text
        async with one.session.get(f"{BASE}/overview") as response:
            assert f'<a href="{BASE}/annotate">Vote</a>' in await response.text()

    visit(store, act)


def test_without_the_option_nobody_can_vote(store: Path) -> None:
    async def go() -> None:
        pages = Pages(Library.of_paths([store]), Guard(DoorAddress(port=0)), _fits=Unwarmed())
        async with serve_pages(pages), aiohttp.ClientSession(f"http://127.0.0.1:{pages.guard.port}") as session:
            one = Booth(pages, session)
            for path in ("annotate", "annotate/battles"):
                async with session.get(f"{BASE}/{path}") as response:
                    assert response.status == 404
            assert (await one.post({}))[0] in (404, 405)
            async with session.get(f"{BASE}/overview") as response:
                assert "annotate" not in await response.text()

    asyncio.run(go())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_vote_from_another_page_is_refused(store: Path, headers: dict[str, str], status: int) -> None:
    async def act(one: Booth) -> None:
        _, found = await one.battles()
        assert (await one.post(one.ballot(found["battles"][0]), **headers))[0] == status

    visit(store, act)
    assert kept(store) == []


def test_a_vote_needs_the_token_of_a_page_and_an_origin(store: Path) -> None:
    async def act(one: Booth) -> None:
        _, found = await one.battles()
        for token in ("", "x" * 43):
            status, said = await one.post(one.ballot(found["battles"][0], token=token))
            assert (status, "page of this server" in said["error"]) == (403, True)
        one.origin = {}
        assert (await one.post(one.ballot(found["battles"][0])))[0] == 403

    visit(store, act)
    assert kept(store) == []


def test_a_body_that_is_too_long_is_read_no_further(store: Path) -> None:
    async def act(one: Booth) -> None:
        _, found = await one.battles()
        ballot = one.ballot(found["battles"][0])
        status, said = await one.post(json.dumps(ballot).encode() + b" " * MAX_VOTE_BYTES)
        assert (status, said) == (413, {"error": "a vote has up to 65,536 bytes"})

        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            while sent < 64 << 20:
                sent += 1 << 16
                yield b" " * (1 << 16)

        headers = {"Content-Type": "application/json", **one.origin}
        with contextlib.suppress(aiohttp.ClientError):  # cut off in the middle, or answered
            async with one.session.post(VOTE, data=endless(), headers=headers) as response:
                assert response.status == 413
        assert sent < 32 << 20

    visit(store, act)
    assert kept(store) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"winner": "model_a"}, "winner of a vote is one of answer_1, answer_2, tie"),
        ({"note": "x" * 2_001}, "the note has 2,001 characters, and may have 2,000"),
        ({"note": None}, "note of a vote is a text"),
        ({"annotator": " "}, "votes need a name"),
        ({"annotator": "a\u202eb"}, "characters that cannot be seen"),
        ({"annotator": "\ud800"}, "half a letter"),
        ({"more": "x"}, "a vote is a JSON object of annotator, answer_1"),
        ({"answer_1": "x" * 65}, "codes of completions"),
    ],
)
def test_a_vote_that_is_none_is_refused_with_its_field(store: Path, changes: dict[str, Any], said: str) -> None:
    ballot = {"token": "t", "annotator": "ann", "answer_1": "a", "answer_2": "b", "winner": "tie", "note": ""}
    with pytest.raises(InputError, match=said):
        read_vote(json.dumps(ballot | changes).encode())


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"[" * 60_000, b"\xff", b"NaN"])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InputError, match="a vote is a JSON object"):
        read_vote(body)


def test_a_battle_that_is_not_of_the_sample_is_refused(store: Path) -> None:
    async def act(one: Booth) -> None:
        _, found = await one.battles()
        first, other = found["battles"][0], found["battles"][1]
        for changes in (
            {"answer_1": "0" * 16},
            {"answer_1": first["answers"][1]["code"]},
            {"answer_2": other["answers"][1]["code"]},
        ):
            status, said = await one.post(one.ballot(first, **changes))
            assert (status, "among those to vote" in said["error"]) == (404, True)

    visit(store, act)
    assert kept(store) == []


def test_a_store_that_another_process_holds_is_a_sentence_and_is_written_afterwards(store: Path) -> None:
    async def act(one: Booth) -> None:
        _, found = await one.battles()
        one.served.close_if_idle(0.0)
        lock = StoreLock.acquire(store)
        try:
            for status, said in (await one.post(one.ballot(found["battles"][0])), await one.battles()):
                assert status == 409
                assert f"the store {store} is held by" in said["error"]
                assert f"held by process {os.getpid()}" in said["error"]
        finally:
            lock.release()
        assert await one.post(one.ballot(found["battles"][0])) == (200, {"changed": True})

    visit(store, act)
    assert len(kept(store)) == 1


def test_a_vote_on_a_store_that_cannot_be_opened_may_be_sent_again(store: Path, tmp_path: Path) -> None:
    """The danger: the browser takes it for a bad vote, and gives it up."""

    async def act(one: Booth) -> None:
        _, found = await one.battles()
        one.served.close_if_idle(0.0)
        os.replace(store, tmp_path / "away.duckdb")
        status, said = await one.post(one.ballot(found["battles"][0]))
        assert (status, "there is no store" in said["error"]) == (409, True)
        os.replace(tmp_path / "away.duckdb", store)
        assert await one.post(one.ballot(found["battles"][0])) == (200, {"changed": True})

    visit(store, act)
    assert len(kept(store)) == 1


def test_a_vote_outlives_the_server_that_is_killed(store: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("-m", "venire", "serve", store, "--annotate", "--as", "crowd", "--at", "127.0.0.1:0")
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("votes: "))
    with urlopen(line.removeprefix("votes: ").strip(), timeout=30) as answer:
        base, text = answer.url, answer.read().decode()
    live = json.loads(text.partition('id="data">')[2].partition("</script>")[0])["live"]
    with urlopen(f"{base}/battles?annotator=ann", timeout=30) as answer:
        battle = json.load(answer)["battles"][0]
    ballot = {"token": live["token"], "annotator": "ann", "winner": "tie", "note": ""}
    ballot |= {f"answer_{side}": one["code"] for side, one in enumerate(battle["answers"], 1)}
    headers = {"Content-Type": "application/json", "Origin": base.partition("/s/")[0]}
    with urlopen(Request(f"{base}/vote", json.dumps(ballot).encode(), headers), timeout=30) as answer:
        assert json.load(answer) == {"changed": True}
    process.kill()
    process.wait(30)
    assert kept(store) == [("crowd", "ann", "tie", None)]


def test_the_store_is_given_back_when_nobody_votes_any_more(store: Path) -> None:
    """The danger: a run cannot begin because somebody voted once."""

    async def act(one: Booth) -> None:
        _, found = await one.battles()
        await one.post(one.ballot(found["battles"][0]))
        one.served.close_if_idle(30.0)
        with pytest.raises(StoreHeldError, match="is looked at by `venire serve`"):
            open_store(store)
        one.served.close_if_idle(0.0)
        open_store(store).close()
        assert not store.with_name(store.name + ".wal").exists()
        _, again = await one.battles()
        assert sum(each["vote"] is not None for each in again["battles"]) == 1

    visit(store, act)


def test_pages_are_read_while_votes_are_written(store: Path) -> None:
    async def act(one: Booth) -> None:
        _, found = await one.battles()

        async def read() -> None:
            for page in ("overview", "calls", "battle/1", "instructions"):
                async with one.session.get(f"{BASE}/{page}") as response:
                    assert response.status == 200, await response.text()

        async def vote() -> None:
            for winner in ("answer_1", "tie", "answer_2"):
                for battle in found["battles"]:
                    assert await one.post(one.ballot(battle, winner)) == (200, {"changed": True})

        await asyncio.gather(read(), read(), vote())

    visit(store, act)
    assert len(kept(store)) == COUNT


def test_a_store_that_was_replaced_has_battles_of_its_own(store: Path, tmp_path: Path) -> None:
    """The danger: a vote on one store's completions is written beside the numbers of another's."""
    other = tmp_path / "other.duckdb"
    with open_store(store) as opened:
        constant = opened.constant
    shutil.copy(store, other)

    async def act(one: Booth) -> None:
        _, found = await one.battles()
        one.served.close_if_idle(0.0)
        with open_store(other) as opened, opened.commit() as commit:
            opened.connection.execute("update store set store_id = uuid()")
            commit.written += 1
        os.replace(other, store)
        with open_store(store) as opened:
            assert opened.constant != constant
        assert (await one.post(one.ballot(found["battles"][0])))[0] == 404
        _, again = await one.battles()
        assert again["page"] != found["page"]

    visit(store, act)
    assert kept(store) == []


def test_boards_of_pages_have_the_votes_of_who_votes_there(store: Path, tmp_path: Path) -> None:
    """The danger: a store has two groups, and the pages show neither."""
    with open_store(store) as opened:
        battle = opened.connection.execute("select instruction_id, model_a, model_b from battle limit 1").fetchall()[0]
        table = tmp_path / "v.csv"
        table.write_text(f"instruction_id,model_a,model_b,winner\n{','.join(battle)},tie\n", encoding="utf-8")
        add_votes(opened, "others", read_votes(table))
        (campaign,) = frames.campaigns(opened)
        for imported in ("others", "crowd", "experts"):
            if imported != "others":
                add_votes(opened, imported, read_votes(table))
            found, *_ = read_for_board(opened, campaign, None, "", "", "crowd")
            assert found.people.name == ("others" if imported == "others" else "crowd")


def test_a_group_of_simulated_people_takes_no_votes(store: Path, tmp_path: Path) -> None:
    with open_store(store) as opened:
        query = "select instruction_id, model_a, model_b from battle limit 1"
        (battle,) = opened.connection.execute(query).fetchall()
        table = tmp_path / "v.csv"
        table.write_text(
            f"judge,instruction_id,model_a,model_b,winner\nsimulated/person@1,{','.join(battle)},tie\n",
            encoding="utf-8",
        )
        add_votes(opened, "crowd", read_votes(table))

    async def act(one: Booth) -> None:
        status, said = await one.battles()
        assert (status, "simulated: give those of people" in said["error"]) == (400, True)

    visit(store, act)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--as", "crowd"], "--as, --sample, --count and --seed are for votes: add --annotate"),
        (["--count", "3"], "add --annotate"),
        (["--annotate", "--as", " "], "no name for a group of people"),
    ],
)
def test_options_of_votes_are_refused_without_them(
    store: Path, venire: Callable[..., Done], words: list[str], said: str
) -> None:
    done = venire("serve", store, *words, "--at", "127.0.0.1:0")
    assert (done.code, said in done.err) == (2, True)


@pytest.fixture
def unwritable(store: Path) -> Iterator[Path]:
    """A store that this user may not write; root may write all of them."""
    store.chmod(0o444)
    if os.access(store, os.W_OK):
        pytest.skip("root writes any file")
    yield store
    store.chmod(0o644)


def test_a_store_that_cannot_be_written_is_refused_at_once(unwritable: Path, venire: Callable[..., Done]) -> None:
    done = venire("serve", unwritable, "--annotate", "--at", "127.0.0.1:0")
    assert (done.code, "cannot be written" in done.err) == (2, True)
