"""Pages are for this machine alone, or for who brings the token; another site's pages get nothing."""

from __future__ import annotations

import pytest

from venire.arena.errors import InputError
from venire.live.guard import TOKEN_VARIABLE, DoorAddress, Guard, parse_address

TOKEN = "a-token-of-the-environment"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, DoorAddress()),
        ("", DoorAddress()),
        ("9000", DoorAddress(port=9000)),
        (":9000", DoorAddress(port=9000)),
        ("127.0.0.1:0", DoorAddress(port=0)),
        ("localhost:80", DoorAddress("localhost", 80)),
        ("[::1]:8000", DoorAddress("::1", 8000)),
        ("0.0.0.0:8000", DoorAddress("0.0.0.0", 8000, given=True)),
        ("example.org:8000", DoorAddress("example.org", 8000, given=True)),
        ("192.168.1.5", DoorAddress("192.168.1.5", given=True)),
    ],
)
def test_an_address_is_read(text: str | None, expected: DoorAddress) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["x:y", "host:99999", "http://host:80", "user@host:80", "host:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="pages are served at HOST:PORT"):
        parse_address(text)


def guard(text: str | None = None, **environ: str) -> Guard:
    found = Guard.of(parse_address(text), environ)
    found.port = 8377
    return found


@pytest.mark.parametrize("host", ["127.0.0.1:8377", "localhost:8377", "[::1]:8377", "127.8.9.1:8377", "LOCALHOST:8377"])
def test_this_machine_is_answered(host: str) -> None:
    assert guard().knows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example:8377",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1.evil.example:8377",
        "192.168.1.5:8377",
        "x",
    ],
)
def test_a_name_that_was_bent_to_this_machine_is_not(host: str | None) -> None:
    assert not guard().knows_host(host)


def test_a_given_host_is_answered_by_its_name_and_by_addresses() -> None:
    found = guard("example.org:8377", **{TOKEN_VARIABLE: TOKEN})
    assert found.knows_host("example.org:8377")
    assert found.knows_host("10.0.0.7:8377")  # a browser sends no other site's page under an address
    assert not found.knows_host("other.example:8377")


def test_other_origins_get_nothing_and_changes_need_one() -> None:
    found, here = guard(), {"Host": "127.0.0.1:8377"}
    own = here | {"Origin": "http://127.0.0.1:8377"}
    assert found.same_origin(here, changes=False)
    assert found.same_origin(own, changes=True)
    assert not found.same_origin(here, changes=True)
    assert not found.same_origin(here | {"Origin": "http://evil.example"}, changes=False)
    assert not found.same_origin(here | {"Origin": "null"}, changes=True)
    assert not found.same_origin(here | {"Sec-Fetch-Site": "cross-site"}, changes=False)
    assert found.same_origin(here | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, changes=False)
    assert not found.same_origin(here | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, changes=True)


def test_a_token_is_asked_for_where_others_can_come() -> None:
    assert guard().knows({}, {})
    found = guard("0.0.0.0:8377", **{TOKEN_VARIABLE: TOKEN})
    assert not found.knows({}, {})
    assert not found.knows({"Authorization": "Bearer wrong-token-wrong"}, {found.cookie: "x"})
    assert not found.knows({"Authorization": f"Basic {TOKEN}"}, {})
    assert found.knows({"Authorization": f"Bearer {TOKEN}"}, {})


def test_the_link_works_once_and_does_not_hold_the_token() -> None:
    found = guard("0.0.0.0:8377", **{TOKEN_VARIABLE: TOKEN})
    link = found.link()
    assert TOKEN not in link
    key = link.partition("key=")[2]
    assert found.enter("") is None
    assert found.enter("wrong") is None
    cookie = found.enter(key)
    assert cookie is not None
    assert TOKEN not in cookie
    assert found.knows({}, {found.cookie: cookie})
    assert found.enter(key) is None


def test_without_a_variable_a_token_is_drawn_and_short_ones_are_refused() -> None:
    drawn = {guard("0.0.0.0:1").token for _ in range(3)}
    assert len(drawn) == 3
    with pytest.raises(InputError, match="at least 16") as refused:
        guard("0.0.0.0:1", **{TOKEN_VARIABLE: "short"})
    assert "short'" not in str(refused.value)


def test_forms_carry_a_token_of_this_server() -> None:
    found = guard()
    assert found.knows_form(found.page_token)
    assert not found.knows_form(guard().page_token)
    assert not found.knows_form(None)
    assert found.page_token not in found.link()
