"""Each vendor's batch interface in its own wire format, from its documentation: a server on loopback replays it.

A file in `vendors/` holds what is sent and what is answered, with the pages that say so and their dates. Ids, names and
words of messages are ours.
"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, date, datetime
from email import message_from_bytes
from email.policy import HTTP
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from ry import Client, SocketAddr

from venire.arena.errors import CallError, Fault, InputError, TransientError
from venire.judges.providers import PROVIDERS, Endpoint, connections
from venire.judges.providers.batches.base import BatchState
from venire.judges.providers.batches.by_vendor import FORMS
from venire.judges.providers.vendors import VENDORS as DIFFERENCES

HERE = Path(__file__).resolve().parent
FILES = sorted((HERE / "vendors").glob("*.json"))
VENDORS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
DOCUMENT = HERE.parents[3] / "docs" / "batch.md"
KEY = "sk-proj-Zx81/Qf+7mW_2d"
DAY = datetime(2026, 11, 24, tzinfo=UTC)
REQUESTS = {
    "openai": b'{"model":"judge"}',
    "anthropic": b'{"model":"judge"}',
    "gemini": b'{"model":"judge","contents":[]}',
}


@pytest.fixture(params=VENDORS)
def vendor(request, monkeypatch):
    """A vendor's file; its host is this machine, so that the adapter can be given its own address."""
    found = VENDORS[request.param]
    hosts = {urlsplit(found["base_url"]).hostname: [SocketAddr.parse("127.0.0.1:0")]}
    monkeypatch.setattr(connections, "Client", partial(Client, resolve=hosts))
    return found


def as_answer(shown, server, status=200, headers=None):
    origin = f"http://{urlsplit(server.url).netloc}"
    headers = {name: value.replace("{origin}", origin) for name, value in (headers or {}).items()}
    return web.Response(text=json.dumps(shown), status=status, headers=headers, content_type="application/json")


def against(vendor, serving, answer, script):
    """Run a script with the vendor's adapter; `answer` makes an answer of a request's method and path, and itself."""

    async def run():
        async def handle(request):
            return answer(f"{request.method} {request.path}", server)

        async with serving(handle) as server:
            home = urlsplit(vendor["base_url"])
            address = f"http://{home.hostname}:{urlsplit(server.url).port}{home.path}"
            batches = PROVIDERS[vendor["provider"]].batches(Endpoint(address, KEY, 30.0, 4))
            try:
                await script(batches, server)
            finally:
                await batches.close()

    asyncio.run(run())


def form_of(headers, body):
    """The fields of a form, and its file under the name `file`."""
    whole = b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + body
    parts = message_from_bytes(whole, policy=HTTP).iter_parts()
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}


def test_every_form_is_documented_with_source_and_date():
    assert {"openai", "anthropic", "mistral", "together", "gemini-file", "gemini-inline"} == set(VENDORS)
    for vendor in VENDORS.values():
        for page in vendor["sources"]:
            assert page["source"].startswith("https://")
            assert page["what"]
            date.fromisoformat(page["date"])


def test_the_page_has_the_limits_that_are_kept_to():
    page = DOCUMENT.read_text(encoding="utf-8").partition("### States")[0]
    rows = {cells[1].strip(): cells for line in page.splitlines() if len(cells := line.split("|")) > 8}
    units = {"MB": 10**6, "GB": 10**9}
    for vendor in VENDORS.values():
        cells = rows[vendor["vendor"].partition(",")[0]]
        number, unit = cells[4].split()[:2]
        size = int(number) * units[unit]
        lines = int(cells[3].split()[0].replace(",", ""))
        assert [lines, size] == [vendor["limits"][0], round(vendor["limits"][1], -3)], vendor["vendor"]


def test_limits_are_the_documented_ones(vendor, serving):
    async def script(batches, server):
        assert [batches.limits.lines, batches.limits.bytes] == vendor["limits"]

    against(vendor, serving, None, script)


def test_a_wave_is_submitted_in_the_vendor_s_form(vendor, serving, tmp_path):
    wave = tmp_path / "wave.jsonl"
    expected = vendor["submitted"]

    def answer(request, server):
        step = expected[len(server.paths) - 1]
        assert request == step["request"]
        return as_answer(step["answer"], server, step.get("status", 200), step.get("answer_headers"))

    async def script(batches, server):
        line = batches.line("line-1", REQUESTS[vendor["provider"]])
        assert json.loads(line) == vendor["line"]
        content = line + b"\n"
        if vendor.get("large"):
            content *= 101
        wave.write_bytes(content)
        status = await batches.submit("wave-1", "judge", wave)
        assert (status.state, status.name) == (BatchState.RUNNING, "wave-1" if batches.keeps_names else "")
        assert len(server.paths) == len(expected)
        for step, headers, body in zip(expected, server.headers, server.bodies, strict=True):
            assert any(KEY in value for value in headers.values()) is not step.get("keyless", False)
            assert {name: headers[name] for name in step.get("headers", {})} == step.get("headers", {})
            assert headers["content-length"] == str(len(body))
            if "form" in step:
                sent = form_of(headers, body)
                assert sent.pop("file") == content
                assert {name: value.decode() for name, value in sent.items()} == step["form"]
            elif "wave" in step:
                assert body == content
            else:
                assert json.loads(body) == step["body"]

    against(vendor, serving, answer, script)


def test_every_state_is_understood(vendor, serving):
    shown = iter(vendor["states"])

    def answer(request, server):
        assert request == vendor["status"]
        return as_answer(next(shown)["shown"], server)

    async def script(batches, server):
        known = vendor["states"][0]["shown"]
        id = known.get("id", known.get("name"))
        for state in vendor["states"]:
            status = await batches.status(id)
            assert status.id == id
            assert status.state is BatchState(state["state"])
            assert status.problem == state.get("problem", "")
            assert (status.may_pass, status.cancelling) == (
                state.get("may_pass", False),
                state.get("cancelling", False),
            )
            for name in ("name", "lines", "answered", "failed"):
                assert getattr(status, name) == state.get(name, getattr(status, name))
            assert status.created_at.date() == DAY.date()

    against(vendor, serving, answer, script)


def test_the_list_has_a_batch_by_its_name_since_a_time(vendor, serving):
    batch = vendor["states"][0]["shown"]
    page = dict(vendor["page"])
    name = page.pop("list")
    known = {vendor["list"]: [batch] if name is None else {**page, name: [batch]}, **vendor.get("others", {})}

    def answer(request, server):
        return as_answer(known[request], server)

    async def script(batches, server):
        (found,) = await batches.batches(DAY)
        assert (found.name, found.created_at.date()) == ("wave-1" if batches.keeps_names else "", DAY.date())
        query = dict(pair.split("=") for pair in server.queries[0].split("&")) if server.queries[0] else {}
        assert {name: value.replace("%3A", ":").replace("%2B", "+") for name, value in query.items()} == vendor["query"]
        assert await batches.batches(DAY.replace(day=25)) == []

    against(vendor, serving, answer, script)


def test_every_registered_form_is_replayed():
    replayed = {
        type(PROVIDERS[one["provider"]].batches(Endpoint(one["base_url"], KEY, 30.0, 4))) for one in VENDORS.values()
    }
    entries = [entry for entry in PROVIDERS.values() if entry.batches is not None]
    registered = {type(entry.batches(Endpoint("https://localhost/v1", KEY, 30.0, 4))) for entry in entries}
    assert replayed == registered | set(FORMS.values())


def test_a_list_proves_a_batch_ours_by_its_name_and_by_nothing_else(vendor, serving):
    batch = vendor["states"][0]["shown"]
    page = dict(vendor["page"])
    name = page.pop("list")
    known = {vendor["list"]: [batch] if name is None else {**page, name: [batch]}, **vendor.get("others", {})}
    others = json.loads(json.dumps(known).replace("wave-1", "wave-2"))

    def answer(request, server):
        return as_answer(others[request], server)

    async def script(batches, server):
        (found,) = await batches.batches(DAY)
        assert found.name == ("wave-2" if batches.keeps_names else "")

    against(vendor, serving, answer, script)


def test_answers_are_read_line_by_line_without_the_key(vendor, serving):
    batch = vendor["answered"]

    def answer(request, server):
        if request == vendor["status"]:
            return as_answer(batch, server)
        lines = "".join(json.dumps(line) + "\n" for line in vendor["files"][request])
        return web.Response(text=lines.replace("The first.", f"The first.{KEY}"))

    async def script(batches, server):
        found = []
        async for one in batches.answers(batch.get("id", batch.get("name"))):
            assert KEY not in one.text
            if one.status is None:
                found.append([one.custom_id, None])
                continue
            try:
                found.append([one.custom_id, batches.read(one, b"{}").text.replace("[redacted]", "")])
            except CallError as error:
                found.append([one.custom_id, error.fault.name])
        assert found == vendor["answers"]
        assert all(any(KEY in value for value in headers.values()) for headers in server.headers)

    against(vendor, serving, answer, script)


def test_a_batch_is_cancelled_at_its_path(vendor, serving):
    cancelling = next(one["shown"] for one in vendor["states"] if one.get("cancelling"))

    def answer(request, server):
        assert request in (vendor["cancel"], vendor["status"])
        return as_answer(vendor.get("cancelled", cancelling) if "cancel" in request else cancelling, server)

    async def script(batches, server):
        status = await batches.cancel(cancelling.get("id", cancelling.get("name")))
        assert status.cancelling
        assert f"POST {server.paths[0]}" == vendor["cancel"]

    against(vendor, serving, answer, script)


@pytest.mark.parametrize("status", [401, 500])
def test_a_vendor_s_refusal_is_the_fault_of_any_call(status, vendor, serving, tmp_path):
    wave = tmp_path / "wave.jsonl"

    def answer(request, server):
        return as_answer({"error": {"message": f"{KEY} is wrong"}}, server, status)

    async def script(batches, server):
        wave.write_bytes(batches.line("line-1", REQUESTS[vendor["provider"]]) + b"\n")
        for call in (
            batches.submit("wave-1", "judge", wave),
            batches.batches(DAY),
            batches.status("b"),
            batches.cancel("b"),
        ):
            with pytest.raises(CallError) as caught:
                await call
            assert caught.value.fault is (Fault.AUTHENTICATION if status == 401 else Fault.TRANSIENT)
            assert KEY not in str(caught.value)

    against(vendor, serving, answer, script)


def test_an_upload_s_address_must_be_as_safe_as_the_vendor_s(monkeypatch, tmp_path, serving, saying):
    wave = tmp_path / "wave.jsonl"
    wave.write_bytes(b'{"key":"a","request":{}}\n' * 101)

    async def script():
        for address in ("ftp://127.0.0.1/u", "", "file:///etc/passwd"):
            async with serving(saying({}, headers={"X-Goog-Upload-URL": address})) as server:
                batches = PROVIDERS["gemini"].batches(Endpoint(server.url, KEY, 30.0, 4))
                with pytest.raises(TransientError, match="no address"):
                    await batches.submit("wave-1", "judge", wave)

    asyncio.run(script())


def test_a_vendor_without_a_known_form_is_refused_with_a_sentence():
    for host, vendor in DIFFERENCES.items():
        endpoint = Endpoint(f"https://{re.sub(r'^[.]', 'eu.', host)}/v1", KEY, 30.0, 4)
        if vendor.batches is None:
            with pytest.raises(InputError, match="one call at a time"):
                PROVIDERS["openai"].batches(endpoint)
        else:
            assert type(PROVIDERS["openai"].batches(endpoint)) is FORMS[vendor.batches]
    assert PROVIDERS["litellm"].batches is None


def test_pages_of_mistral_and_gemini_are_read_to_the_end(serving):
    def job(number):
        return {**VENDORS["mistral"]["states"][0]["shown"], "id": f"job-{number}"}

    async def mistral(request):
        page = int(request.query["page"])
        return web.json_response(
            {"total": 205, "data": [job(number) for number in range(100 * page, min(205, 100 * page + 100))]}
        )

    async def gemini(request):
        token = int(request.query.get("pageToken", "0"))
        shown = {**VENDORS["gemini-file"]["states"][0]["shown"], "name": f"batches/{token}"}
        return web.json_response({"operations": [shown], **({"nextPageToken": str(token + 1)} if token < 2 else {})})

    async def script():
        async with serving(mistral) as server:
            assert len(await FORMS["mistral"](Endpoint(server.url, KEY, 30.0, 4)).batches(DAY)) == 205
            assert len(server.paths) == 3
        async with serving(gemini) as server:
            found = await PROVIDERS["gemini"].batches(Endpoint(server.url, KEY, 30.0, 4)).batches(DAY)
            assert [one.id for one in found] == ["batches/0", "batches/1", "batches/2"]

    asyncio.run(script())
