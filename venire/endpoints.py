"""The endpoints of a campaign: opened with their keys, and tested before any money is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from venire.arena.campaigns import CampaignSettings, Identity, JudgeSettings, RouteSettings
from venire.arena.errors import InputError
from venire.arena.wording import few
from venire.configs.env_file import environment, read_env_file
from venire.judges.providers import PROVIDERS
from venire.judges.providers.base import Endpoint, Provider, SecretHolder
from venire.judges.providers.batches.base import BatchProvider
from venire.judges.providers.batches.file import FileBatches
from venire.judges.providers.replay import REPLAY, ReplayProvider
from venire.judges.providers.vendors import vendor_of
from venire.orchestrator.engines.ray_cluster import EngineChoice

if TYPE_CHECKING:
    from venire.orchestrator.engines.ray_actors import RayCrew


_MIN_LEASE = 1.0
"""Seconds."""


_PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
"""Where other programs look for a proxy."""


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """A route with its connections, and the first judge that asks through it."""

    judge: JudgeSettings
    route: RouteSettings
    provider: Provider
    batches: BatchProvider | None = None
    """Its batch interface, where the judge is asked in waves."""


class EmbeddedProvider(NamedTuple):
    """The provider of simulated judges that name no endpoint: an address, and a function that opens a route to it."""

    base_url: str
    open: Callable[[Endpoint], Provider]
    batches: Callable[[Endpoint], BatchProvider] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Secrets(SecretHolder):
    """Secrets of a route from the environment: its key, and its proxy's address with the password."""

    key: str | None
    proxy: str | None


def _routes(judges: Sequence[JudgeSettings]) -> Iterator[tuple[JudgeSettings, RouteSettings]]:
    """Every route once, with the first judge that asks through it."""
    known: set[Identity] = set()
    for judge in judges:
        for route in judge.lane.routes:
            if route.identity not in known:
                known.add(route.identity)
                yield judge, route


def read_secrets(
    campaign: CampaignSettings, judges: Sequence[JudgeSettings], environ: Mapping[str, str] | None
) -> Mapping[Identity, Secrets]:
    """Keys and proxies by route, from `environ` (None: this process's), or else from `.env` beside the campaign file.

    Raises InputError for a variable that is in neither, and for a file that cannot be read.
    """
    environ = environment(environ)
    beside = campaign.path.parent / ".env"
    needed = {name for judge, route in _routes(judges) for name in (route.key_variable, judge.lane.proxy_variable)}
    if any(name is not None and not environ.get(name, "").strip() for name in needed) and beside.is_file():
        environ = read_env_file(beside) | {name: value for name, value in environ.items() if value.strip()}
    found = {}
    for judge, route in _routes(judges):
        key, proxy = route.key_variable, judge.lane.proxy_variable
        found[route.identity] = Secrets(
            None if key is None else _variable(campaign, judge, "key", key, environ, _key_page(route)),
            judge.lane.proxy if proxy is None else _variable(campaign, judge, "proxy", proxy, environ),
        )
    return found


def keys_of(campaign: CampaignSettings, environ: Mapping[str, str] | None) -> Mapping[str, str]:
    """The variables of an environment (None: this process's) that hold keys and proxies of a campaign's judges."""
    environ = environment(environ)
    needed = {
        name for judge, route in _routes(campaign.judges) for name in (route.key_variable, judge.lane.proxy_variable)
    }
    return {name: environ[name] for name in needed if name is not None and name in environ}


@contextmanager
def open_crew(
    engine: str,
    campaign: CampaignSettings,
    store: Path,
    environ: Mapping[str, str] | None,
    *,
    actors: int | None = None,
    lease_seconds: float | None = None,
    warn: Callable[[str], None] | None = None,
) -> Iterator[tuple[RayCrew | None, CampaignSettings]]:
    """The actors that ask a campaign's calls, for an engine as written on the command line; None: this process does.

    With them comes the campaign as it is to be run: its judges have a route to each of their replicas in the cluster.
    Raises InputError for an engine that there is not, for replicas without a cluster, and as `ray_crew` and
    `with_replicas` do.
    """
    choice = EngineChoice.read(engine)
    if not choice.is_ray:
        if actors is not None:
            raise InputError("actors are those of a Ray cluster: give the engine ray too")
        _refuse_replicas(campaign, campaign.judges)
        yield None, campaign
        return
    from venire.orchestrator.engines.ray_actors import ray_crew
    from venire.orchestrator.engines.remote import LEASE_SECONDS

    seconds = LEASE_SECONDS if lease_seconds is None else lease_seconds
    if seconds < _MIN_LEASE:
        raise InputError(
            f"a lease of {seconds:g} s ends before its actor can have answered: give {_MIN_LEASE:g} s or more"
        )
    keys = keys_of(campaign, environ)
    with ray_crew(choice, store, campaign.name, number=actors, lease_seconds=seconds, environ=keys) as crew:
        yield crew, crew.with_replicas(campaign, warn)


def _refuse_replicas(campaign: CampaignSettings, judges: Sequence[JudgeSettings]) -> None:
    """Raises InputError for a judge whose replicas nobody has looked for."""
    for judge, route in _routes(judges):
        if route.replicas is not None:
            raise InputError(
                f"{campaign.path}: judge {judge.name!r}: {route.base_url} stands for servers that are found in a Ray "
                "cluster: run it with --engine ray:ADDRESS, or give one server's http URL as base_url"
            )


def open_routes(
    campaign: CampaignSettings,
    judges: Sequence[JudgeSettings],
    secrets: Mapping[Identity, Secrets],
    inside: EmbeddedProvider | None,
    recorded: Mapping[str, str],
) -> list[OpenRoute]:
    """A provider for every route; `inside` answers for simulated judges without an endpoint.

    `recorded` holds the replies of recorded judges by trial key.

    Raises InputError for an endpoint that cannot be used.
    """
    _refuse_replicas(campaign, judges)
    return [
        _open(campaign, judge, route, secrets[route.identity], inside, recorded) for judge, route in _routes(judges)
    ]


def open_elsewhere(
    campaign: CampaignSettings, judges: Sequence[JudgeSettings], inside: EmbeddedProvider | None
) -> list[tuple[Identity, Provider]]:
    """The routes of some judges in another process, with the keys of its environment; by route identity.

    Raises InputError for a key that is missing there.
    """
    secrets = read_secrets(campaign, judges, None)
    return [(one.route.identity, one.provider) for one in open_routes(campaign, judges, secrets, inside, {})]


def _open(
    campaign: CampaignSettings,
    judge: JudgeSettings,
    route: RouteSettings,
    secrets: Secrets,
    inside: EmbeddedProvider | None,
    recorded: Mapping[str, str],
) -> OpenRoute:
    lane = judge.lane
    if route.provider == REPLAY:
        return OpenRoute(judge, route, ReplayProvider(recorded))
    if route.base_url is None:
        assert inside is not None  # a campaign file names an address for every judge that is not simulated
        base_url, opened, batches = inside
    else:
        base_url = route.base_url
        entry = PROVIDERS[route.provider]
        opened, batches = entry.open, entry.open_batches if entry.batches else None
    try:
        endpoint = endpoint_of(judge, route, secrets, base_url)
        waves: BatchProvider | None = None
        if lane.batch is not None and route == lane.routes[0]:
            if lane.batch.form == "file":
                waves = FileBatches(campaign.store.with_name(f"{campaign.store.name}.batches"))
            elif batches is not None:
                waves = batches(endpoint)
        return OpenRoute(judge, route, opened(endpoint), waves)
    except InputError as error:
        raise InputError(f"{campaign.path}: judge {judge.name!r}: {error}") from error


def endpoint_of(judge: JudgeSettings, route: RouteSettings, secrets: Secrets, base_url: str) -> Endpoint:
    """The endpoint of a route; raises InputError where its settings cannot be used."""
    lane = judge.lane
    return Endpoint(
        base_url,
        secrets.key,
        lane.timeout,
        lane.concurrency,
        connect_timeout=lane.connect_timeout,
        read_timeout=lane.read_timeout,
        headers=lane.headers,
        proxy=None if route.base_url is None else secrets.proxy,
        structured=route.structured,
    )


async def check_routes(
    campaign: CampaignSettings,
    asked: Sequence[OpenRoute],
    warn: Callable[[str], None] | None,
) -> None:
    """Test all endpoints concurrently; an InputError names all that cannot be used.

    An unusable endpoint causes only a warning if it is a fallback, or if another key of its judge is accepted. One
    whose waves are answered from files need not be there.
    """
    asked = [one for one in asked if one.judge.lane.batch is None or one.judge.lane.batch.form != "file"]
    found = await asyncio.gather(*(one.provider.check() for one in asked), return_exceptions=True)
    problems = []
    sound = {one.route for one, answer in zip(asked, found, strict=True) if not isinstance(answer, BaseException)}
    for one, answer in zip(asked, found, strict=True):
        judge, route = one.judge, one.route
        key = f" (its key is in {route.key_variable})" if route.key_variable else ""
        if isinstance(answer, BaseException) and not isinstance(answer, InputError):
            raise answer
        others = [way for way in judge.lane.routes if not way.rank and way in sound]
        if isinstance(answer, InputError) and not route.rank and not others:
            problems.append(f"{campaign.path}: judge {judge.name!r}{key}: {answer}")
        elif answer is not None and warn is not None:
            warn(f"warning: judge {judge.name!r}{key if isinstance(answer, InputError) else ''}: {answer}")
    if problems:
        hint = ignored_proxy([one.judge for one in asked])
        raise InputError("\n".join([*problems, *([] if hint is None else [hint])]))


def ignored_proxy(judges: Sequence[JudgeSettings], environ: Mapping[str, str] | None = None) -> str | None:
    """That a proxy of the environment (None: this process's) is not used, and how it is; None where none is meant."""
    environ = environment(environ)
    name = next((one for one in _PROXY_VARIABLES if environ.get(one, "").strip()), None)
    direct = [one.name for one in judges if not one.lane.proxy and not one.lane.proxy_variable and _is_remote(one)]
    if name is None or not direct:
        return None
    return (
        f"{name} is set, and no proxy is taken from the environment: for what is reached through it, write "
        f'proxy_variable = "{name}" below [[judge]] ({few(direct)}); NO_PROXY is for those without that line'
    )


def _is_remote(judge: JudgeSettings) -> bool:
    """Whether another machine is asked."""
    hosts = {urlsplit(route.base_url or "").hostname for route in judge.lane.routes}
    return bool(hosts - {None, "localhost", "127.0.0.1", "::1"})


def _key_page(route: RouteSettings) -> str | None:
    """Where to get a key for a route; None where its vendor is not known."""
    home = vendor_of(route.base_url or "").home
    return None if home is None else home.key_page


def _variable(
    campaign: CampaignSettings,
    judge: JudgeSettings,
    what: str,
    name: str,
    environ: Mapping[str, str],
    page: str | None = None,
) -> str:
    if not (value := environ.get(name, "").strip()):
        where = "" if page is None else f". Get a key at {page}"
        raise InputError(
            f"{campaign.path}: judge {judge.name!r} needs its {what} in the environment variable {name}, which is not "
            f"set: export {name}=..., or write {name}=... into {campaign.path.parent / '.env'}, and try again{where}"
        )
    return value
