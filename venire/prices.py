"""What a respondent's tokens cost, by its campaign file, else by the table that litellm ships; whether it can be so.

A price per token or per thousand tokens, as many tables quote it, would make a budget of money a million or a thousand
times too high. So what no model costs is refused, and what differs much from the table is said before anything is paid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from venire.arena.campaigns import BATCH_PART, CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.judges.providers.price_table import find_price, nearest_model, price_table

_MIN_RATE = 1_000_000
"""$0.001 per million tokens: the smallest models cost ten times as much."""

_MAX_RATIO = 3
"""Prices change, and gateways have their own: by more than this, it is another unit or another model's price."""


def judge_price(campaign: CampaignSettings, judge: JudgeSettings) -> TokenPrice:
    """The price of a judge's tokens.

    Raises InputError where neither the campaign nor the price table has one, and as `check_prices`.
    """
    check_prices(campaign, judge)
    if judge.free:
        return TokenPrice(0, 0)
    address = judge.lane.routes[0].base_url
    found = judge.price or find_price(judge.model, address)
    if found is None:
        price, free = _words(campaign)
        near = nearest_model(judge.model, address) if address else None
        known = "" if near is None else f" (the nearest known is {near})"
        raise InputError(
            f"{campaign.path}: judge {judge.name!r}: no price is known for the model {judge.model!r}{known}: add "
            f"{price} per million tokens, or {free}"
        )
    return found


def _words(campaign: CampaignSettings) -> tuple[str, str]:
    """How a judge's price, and that it has none, are written: as in its campaign file, else as in Python."""
    if campaign.path.is_file():
        return "price = { input = DOLLARS, output = DOLLARS }", "free = true"
    return "price=vn.Price(input=DOLLARS, output=DOLLARS)", "free=True"


def check_prices(campaign: CampaignSettings, judge: JudgeSettings) -> None:
    """Raises InputError for a price in the file, that of a fallback or of batches too, that no model has.

    A price of 0 is `free = true`, but for fallbacks and batches, which have no such key.
    """
    if judge.price == TokenPrice(0, 0):
        raise InputError(f"{campaign.path}: judge {judge.name!r}: price is 0: write {_words(campaign)[1]} in its place")
    for key, price, known in _given_prices(judge):
        _refuse_tiny(f"{campaign.path}: judge {judge.name!r}: {key}", price, known, _words(campaign)[1])


def batch_price(judge: JudgeSettings, price: TokenPrice) -> TokenPrice:
    """The price of a judge's tokens by its batch interface, where the live price is `price`.

    What is given in the file counts, then the part of the live price that vendors charge; files for a server of one's
    own are at the live price.
    """
    batch = judge.lane.batch
    if batch is not None and batch.price is not None:
        return batch.price
    live = judge.lane.routes[0].price or price
    return live if batch is not None and batch.form == "file" else live.times(BATCH_PART)


def price_warnings(judges: Iterable[JudgeSettings]) -> Iterator[str]:
    """A sentence for each rate in the file that is more than 3 times what the table has, or less than a third of it.

    So is a rate of 0 beside others: what costs nothing has no rate at all.
    """
    for judge, (key, price, known) in ((one, given) for one in judges for given in _given_prices(one)):
        table = {} if known is None else asdict(known)
        for name, rate in asdict(price).items():
            expected = table.get(name)
            nothing = rate is None or not (price.input or price.output)
            if nothing or not expected or expected / _MAX_RATIO <= rate <= expected * _MAX_RATIO:
                continue
            yield (
                f"judge {judge.name!r}: {key}.{name} is {_dollars(rate)} per million tokens, "
                f"{_times(rate, expected)} the {_dollars(expected)} of {price_table()}: budgets count by the file; "
                "compare with your provider's page"
            )


def _times(rate: int, expected: int) -> str:
    """How a rate compares with the expected one, for a sentence that goes on with "the" and the expected one."""
    if rate == 0:
        return "not"
    return f"{rate / expected:,.3g} times" if rate > expected else f"1/{expected / rate:,.3g} of"


def _given_prices(judge: JudgeSettings) -> Iterator[tuple[str, TokenPrice, TokenPrice | None]]:
    """Every price that the file gives for a judge: its key there, the price, and the one of the table."""
    first, batch = judge.lane.routes[0], judge.lane.batch
    simulated = judge.origin is Origin.SIMULATED
    if judge.price is not None:
        yield "price", judge.price, None if simulated else find_price(judge.model, first.base_url)
    for route in judge.lane.routes:
        if route.price is not None:
            key = f"fallback[{route.rank}].price"
            yield key, route.price, None if simulated else find_price(route.model, route.base_url)
    if batch is not None and batch.price is not None:
        live = None if simulated or batch.form == "file" else find_price(judge.model, first.base_url)
        yield "batch_price", batch.price, None if live is None else live.times(BATCH_PART)


def _refuse_tiny(place: str, price: TokenPrice, known: TokenPrice | None, free: str) -> None:
    """Raises InputError for a rate above nothing that is below what any model costs."""
    for name, rate in asdict(price).items():
        if rate and rate < _MIN_RATE:
            table = None if known is None else asdict(known)[name]
            has = f"; {price_table()} has {name} = {_dollars(table)[1:]}" if table else ""
            raise InputError(
                f"{place}.{name} is {_dollars(rate)} per million tokens, which no model costs. Write dollars per "
                "million tokens: a price per token times 1,000,000, one per thousand tokens times 1,000"
                f"{has}. What costs nothing is {free}, in a fallback 0 for both"
            )


def _dollars(nano: int) -> str:
    """US dollars with all their digits."""
    return "$" + f"{nano // 10**9}.{nano % 10**9:09d}".rstrip("0").rstrip(".")
