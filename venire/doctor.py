"""What a run will need, looked over beforehand: keys, endpoints, prices, and the machine that it runs on."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from venire.arena.campaigns import CampaignSettings, Identity, JudgeSettings, RouteSettings
from venire.arena.errors import CallError, InputError
from venire.arena.records import Request
from venire.arena.wording import money
from venire.endpoints import endpoint_of, ignored_proxy, open_routes, read_secrets
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.servers import identify_server
from venire.prices import judge_price, price_warnings

State = Literal["ok", "warning", "problem"]
_NETWORK = ("9p", "afs", "ceph", "cifs", "fuse.sshfs", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "smb", "virtiofs")
"""Beginnings of the types of file systems that other machines share, as Linux names them."""
_MIN_FREE_BYTES = 1_000_000_000
_OTHER_FILES = 64
"""Descriptors beside those of calls: the store, its log and journal, terminals, libraries."""
_AHEAD = 60.0
_TOKENS = 16
_QUESTION = ({"role": "user", "content": "Answer with the word yes."},)


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing that was looked at, whether it is as a run needs it, and what was found or what to do."""

    subject: str
    state: State
    says: str


def examine_machine(folder: Path, campaign: CampaignSettings | None = None) -> Iterator[HealthFinding]:
    """The machine that a run would use: versions, clock, the disk of `folder` and its file system, open files."""
    system = f"{platform.system()} {platform.machine()}"
    yield HealthFinding("versions", "ok", f"venire {version('venire')}, Python {platform.python_version()}, {system}")
    yield _clock(folder if campaign is None else campaign.path)
    yield _file_system(folder)
    if os.access(folder, os.W_OK):
        yield HealthFinding("folder", "ok", f"{folder} can be written")
    else:
        yield HealthFinding("folder", "problem", f"{folder} cannot be written: choose another place with `store`")
    free = shutil.disk_usage(folder).free
    room = f"{free / 1e9:,.1f} GB free in {folder}"
    short = free < _MIN_FREE_BYTES
    yield HealthFinding("disk", "warning" if short else "ok", room + (": a store may need more" if short else ""))
    yield _open_files([] if campaign is None else [*campaign.judges, *campaign.contestants, *campaign.editors])


def _clock(path: Path) -> HealthFinding:
    now = time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if path.stat().st_mtime > now + _AHEAD:
        return HealthFinding("clock", "warning", f"{shown} is earlier than the last change of {path}: set the clock")
    return HealthFinding("clock", "ok", shown)


def _file_system(folder: Path) -> HealthFinding:
    kind = file_system_of(folder)
    if kind is None:
        return HealthFinding("file system", "ok", "its type is not known here")
    if kind.startswith(_NETWORK):
        return HealthFinding(
            "file system", "warning", f"{folder} is on a network ({kind}): keep the store on a disk of this machine"
        )
    return HealthFinding("file system", "ok", kind)


def file_system_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of a folder's file system, by the longest mount point above it; None without Linux's list of them."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    whole = folder.resolve()
    found: tuple[int, str | None] = (-1, None)
    for line in lines:
        head, _, tail = line.partition(" - ")
        point = Path(head.split()[4].encode().decode("unicode_escape"))
        if whole.is_relative_to(point) and len(point.parts) >= found[0]:
            found = (len(point.parts), tail.split()[0])
    return found[1]


def _open_files(asked: Sequence[JudgeSettings]) -> HealthFinding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lanes = {judge.lane.routes[0].identity: judge.lane.concurrency for judge in asked}
    needed = _OTHER_FILES + sum(lanes.values())
    if soft != resource.RLIM_INFINITY and soft < needed:
        return HealthFinding(
            "open files", "warning", f"at most {soft:,}, about {needed:,} are needed: ulimit -n {needed}"
        )
    return HealthFinding("open files", "ok", "no limit" if soft == resource.RLIM_INFINITY else f"at most {soft:,}")


def examine_campaign(campaign: CampaignSettings, environ: Mapping[str, str] | None) -> Iterator[HealthFinding]:
    """For every judge and contestant, whether its keys are there and its price is known; nobody is asked."""
    asked = (*campaign.judges, *campaign.contestants, *campaign.editors)
    if (proxy := ignored_proxy(asked, environ)) is not None:
        yield HealthFinding("proxy", "warning", proxy)
    for judge in asked:
        for route in judge.lane.routes:
            if route.replicas is not None:
                says = f"{route.base_url} is looked for in the Ray cluster that a run is given, and not here"
                yield HealthFinding(f"endpoint of {judge.name}", "ok", says)
        names = sorted({name for route in judge.lane.routes if (name := route.key_variable) is not None})
        try:
            read_secrets(campaign, [judge], environ)
        except InputError as error:
            yield HealthFinding(f"key of {judge.name}", "problem", str(error))
        else:
            yield HealthFinding(f"key of {judge.name}", "ok", f"{', '.join(names)} is there" if names else "needs none")
        try:
            price = judge_price(campaign, judge)
        except InputError as error:
            yield HealthFinding(f"price of {judge.name}", "problem", f"{error}. Until then its endpoint is not asked")
        else:
            rates = f"{money(price.input)} in, {money(price.output)} out, per million tokens"
            table = "" if judge.free or judge.price is not None else ", by the table of litellm"
            strange = "; ".join(price_warnings([judge]))
            says = strange or ("free" if judge.free else rates + table)
            yield HealthFinding(f"price of {judge.name}", "warning" if strange else "ok", says)


def endpoints_to_ask(campaign: CampaignSettings, environ: Mapping[str, str] | None) -> list[JudgeSettings]:
    """A judge or contestant for every endpoint that can be asked, with its key and price, each with that one route."""
    found: dict[Identity, JudgeSettings] = {}
    for judge in (*campaign.judges, *campaign.contestants, *campaign.editors):
        for route in judge.lane.routes:
            if route.base_url is None or route.replicas is not None or route.identity in found:
                continue
            try:
                price = judge_price(campaign, judge)
                alone = replace(judge, price=route.price or price, lane=replace(judge.lane, routes=(route,)))
                read_secrets(campaign, [alone], environ)
            except InputError:  # a finding of `examine_campaign`
                continue
            found[route.identity] = alone
    return list(found.values())


def highest_price(asked: Sequence[JudgeSettings]) -> int:
    """What one call to each of `endpoints_to_ask` costs at most, in nano-dollars."""
    return sum(judge.price.cost(64, _TOKENS) for judge in asked if judge.price is not None)


def ask_endpoints(
    campaign: CampaignSettings, asked: Sequence[JudgeSettings], environ: Mapping[str, str] | None
) -> list[HealthFinding]:
    """Send every endpoint one call of a few tokens, which no store keeps; findings in the same order.

    A server of one's own is asked for its name and version besides, without the key.
    """
    keys = read_secrets(campaign, asked, environ)

    async def ask(judge: JudgeSettings) -> list[HealthFinding]:
        route: RouteSettings = judge.lane.routes[0]
        answered = await call(judge)
        if answered.state == "problem":
            return [answered]
        assert route.base_url is not None  # `endpoints_to_ask` has no other
        endpoint = endpoint_of(judge, route, keys[route.identity], route.base_url)
        server = await identify_server(endpoint)
        if server is not None:
            answered = replace(answered, says=f"{answered.says}; server: {server}")
        return [answered, HealthFinding(f"abilities of {judge.name}", "ok", _abilities(judge, endpoint))]

    async def call(judge: JudgeSettings) -> HealthFinding:
        route: RouteSettings = judge.lane.routes[0]
        name = f"endpoint of {judge.name}"
        try:
            (opened,) = open_routes(campaign, [judge], keys, None, {})
        except InputError as error:
            return HealthFinding(name, "problem", str(error))
        model, provider = route.model or judge.model, opened.provider
        try:
            note = await provider.check()
            begun = time.monotonic()
            request = Request(_QUESTION, max_tokens=_TOKENS, temperature=None)
            reply = await provider.send(provider.encode(model, request), secrets.token_hex(16))
        except (InputError, CallError) as error:
            where = "" if str(route.base_url) in str(error) else f"{route.base_url}: "
            return HealthFinding(name, "problem", f"{where}{error}")
        finally:
            await provider.close()
        served = reply.served_model or "no model named"
        says = f"{route.base_url} answered in {time.monotonic() - begun:.1f} s; served model: {served}"
        if note is not None:
            return HealthFinding(name, "warning", f"{says}; {note}")
        return HealthFinding(name, "ok", says)

    async def all_of_them() -> list[HealthFinding]:
        return [finding for found in await asyncio.gather(*map(ask, asked)) for finding in found]

    return asyncio.run(all_of_them())


def _abilities(judge: JudgeSettings, endpoint: Endpoint) -> str:
    """What an endpoint is asked for beyond a text: log-probabilities, a schema, batches."""
    route = judge.lane.routes[0]
    entry, model = PROVIDERS[route.provider], route.model or judge.model
    provider = entry.open(endpoint)
    plain = provider.encode(model, Request(_QUESTION, max_tokens=_TOKENS, temperature=None))
    likely = provider.encode(model, Request(_QUESTION, max_tokens=_TOKENS, temperature=None, top_logprobs=20))
    try:
        batches = bool(entry.batches) and entry.open_batches(endpoint) is not None
    except InputError:
        batches = False
    schema = "held to" if provider.is_structured(model) else "asked for in words (structured_output)"
    return (
        f"log-probabilities {'asked for' if likely != plain else 'not to be had'}; schema {schema}; "
        f"batches {'in a form that is spoken' if batches else 'none that are spoken'}"
    )
