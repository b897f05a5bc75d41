"""Each vendor's batch interface in its own wire format, from its documentation, beside the contract of all forms.

A file in `vendors/` holds what is sent and what is answered, with the pages that say so and their dates. Ids, names and
words of messages are ours.
"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from aiohttp import web

from venire.arena.errors import InputError, TransientError
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.vendors import VENDORS as DIFFERENCES

HERE = Path(__file__).resolve().parent
FILES = sorted((HERE / "vendors").glob("*.json"))
VENDORS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
DOCUMENT = HERE.parents[3] / "docs" / "batch.md"
KEY = "sk-proj-Zx81/Qf+7mW_2d"
DAY = datetime(2026, 11, 24, tzinfo=UTC)
FORMS = PROVIDERS["openai"].batches


def test_every_form_is_documented_with_source_and_date():
    registered = {(name, form) for name, entry in PROVIDERS.items() for form in entry.batches}
    assert {(vendor["provider"], vendor["form"]) for vendor in VENDORS.values()} == registered
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


def test_an_upload_s_address_must_be_as_safe_as_the_vendor_s(monkeypatch, tmp_path, serving, saying):
    wave = tmp_path / "wave.jsonl"
    wave.write_bytes(b'{"key":"a","request":{}}\n' * 101)

    async def script():
        for address in ("ftp://127.0.0.1/u", "", "file:///etc/passwd"):
            async with serving(saying({}, headers={"X-Goog-Upload-URL": address})) as server:
                batches = PROVIDERS["gemini"].open_batches(Endpoint(server.url, KEY, 30.0, 4))
                with pytest.raises(TransientError, match="no address"):
                    await batches.submit("wave-1", "judge", wave)

    asyncio.run(script())


def test_a_vendor_without_a_known_form_is_refused_with_a_sentence():
    for host, vendor in ((host, one) for one in DIFFERENCES.values() for host in one.hosts):
        endpoint = Endpoint(f"https://{re.sub(r'^[.]', 'eu.', host)}/v1", KEY, 30.0, 4)
        if vendor.batches is None:
            with pytest.raises(InputError, match="one call at a time"):
                PROVIDERS["openai"].open_batches(endpoint)
        else:
            assert type(PROVIDERS["openai"].open_batches(endpoint)) is FORMS[vendor.batches]
    assert not PROVIDERS["litellm"].batches


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
            found = await PROVIDERS["gemini"].open_batches(Endpoint(server.url, KEY, 30.0, 4)).batches(DAY)
            assert [one.id for one in found] == ["batches/0", "batches/1", "batches/2"]

    asyncio.run(script())
