"""Endpoints, and what keeps a key from leaving."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from venire.arena.errors import InputError
from venire.judges.providers.base import Endpoint, redact

KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=60)


def test_a_repr_says_all_but_secrets():
    endpoint = Endpoint("https://api.example.org/v1", "sk-secret-1", 60.0, 8)
    assert repr(endpoint) == (
        "Endpoint(base_url='https://api.example.org/v1', key='[redacted]', timeout=60.0, concurrency=8, "
        "connect_timeout=15.0, read_timeout=None)"
    )
    assert "key=None" in repr(Endpoint("https://api.example.org/v1", None, 60.0, 8))
    full = replace(endpoint, headers={"X-Team": "blue-secret"}, proxy="http://me:pass%2Fword@proxy.example.org:3128")
    assert f"{full}".endswith("headers=['X-Team'], proxy='proxy.example.org:3128')")
    for secret in ("sk-secret-1", "blue-secret", "pass/word", "pass%2Fword", "me:"):
        assert secret not in repr(full)


@pytest.mark.parametrize("base_url", ["https://api.example.org/v1", "https://api.example.org/v1/"])
def test_paths_follow_the_base_url(base_url):
    assert Endpoint(base_url, None, 1.0, 1).url("models") == "https://api.example.org/v1/models"


@pytest.mark.parametrize(
    "base_url", ["", "api.example.org", "ftp://api.example.org", "https://", "http://[::1", "file:///etc"]
)
def test_a_base_url_that_is_none_is_refused(base_url):
    with pytest.raises(InputError, match="base_url"):
        Endpoint(base_url, None, 1.0, 1)


@pytest.mark.parametrize("tail", ["user:hunter22@host/v1", "host/v1?key=hunter22", "host/v1#hunter22"])
def test_a_base_url_that_holds_a_secret_is_refused_without_showing_it(tail):
    with pytest.raises(InputError, match="host") as caught:
        Endpoint(f"https://{tail}", None, 1.0, 1)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "sk-secret-1\n", " sk-secret-1", "sk-sécret-1", "sk-secret-1\r\nHost: evil"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key):
    with pytest.raises(InputError, match="environment variable") as caught:
        Endpoint("https://host/v1", key, 1.0, 1)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "x-api-key",
        "API-Key",
        "x-goog-api-key",
        "Cookie",
        "Proxy-Authorization",
        "content-type",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Accept-Encoding",
        "Idempotency-Key",
    ],
)
def test_a_header_of_the_users_stands_for_none_of_ours(name):
    with pytest.raises(InputError, match=rf"{name}.*key_variable") as caught:
        Endpoint("https://host/v1", None, 1.0, 1, headers={name: "hunter22"})
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    "headers", [{"X A": "b"}, {"": "b"}, {"X-A:": "b"}, {"X-A": "b\r\nHost: evil"}, {"X-A": "é"}, {"X-A\n": "b"}]
)
def test_a_header_that_http_cannot_carry_is_refused(headers):
    with pytest.raises(InputError, match="correct headers"):
        Endpoint("https://host/v1", None, 1.0, 1, headers=headers)


@pytest.mark.parametrize(
    "proxy",
    [
        "proxy:3128",
        "https://hunter22@proxy:3128",
        "socks5://proxy",
        "http://",
        "http://proxy:99999",
        "http://[::1",
        "http://proxy:3128/path",
        "http://me:hunter22@proxy?x",
        "http://a%3Ab:hunter22@proxy",
        "http://me:hun ter22@h",
    ],
)
def test_a_proxy_that_is_none_is_refused_without_showing_it(proxy):
    with pytest.raises(InputError, match="the proxy for https://host/v1") as caught:
        Endpoint("https://host/v1", None, 1.0, 1, proxy=proxy)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    "leak",
    ["me:p%2Fss", "p%2Fss", "p/ss", "me:p/ss", b64encode(b"me:p/ss").decode(), "p\\/ss:me:p\\/ss"],
)
def test_the_password_of_a_proxy_is_masked_in_every_form(leak):
    """However short it is: it is sent as user:password, and that is long enough to look for."""
    endpoint = Endpoint("https://host/v1", "sk-secret-1", 1.0, 1, proxy="http://me-and-you:p%2Fss-word@proxy:3128")
    said = endpoint.redact(f"you sent {leak.replace('me:', 'me-and-you:').replace('ss', 'ss-word')} and sk-secret-1")
    assert "ss-word" not in said
    assert "sk-secret-1" not in said
    echo = b64encode(b"me-and-you:p/ss-word").decode()
    assert echo not in endpoint.redact(f"Proxy-Authorization: Basic {echo}")


@example(key="00000%00", before="", after="")
@given(KEYS, st.text(max_size=5), st.text(max_size=5))
def test_no_form_of_a_key_is_left(key, before, after):
    assume(key not in "[redacted]")
    for form in (
        key,
        json.dumps(key)[1:-1],
        json.dumps(key)[1:-1].replace("/", "\\/"),
        "".join(f"\\u{ord(character):04X}" for character in key),
        quote(key, safe=""),
        quote(key),
        "".join(f"%{ord(character):02x}" for character in key),
        b64encode(key.encode()).decode(),
        b64encode(f"u:{key}".encode()).decode(),
        b64encode(f":{key}".encode()).decode(),
        urlsafe_b64encode(f"user:{key}:".encode()).decode(),
        quote(b64encode(key.encode()).decode(), safe=""),
    ):
        masked = redact(f"{before} {form} {after}", key)
        assert form not in masked
        assert "[redacted]" in masked


@pytest.mark.parametrize(
    "leak",
    [
        "sk%252Dlive%255FAbC%252E9%252Fx",
        "sk%25252Dlive_AbC.9%25252Fx",
        "".join(f"&#{ord(one)};" for one in "sk-live_AbC.9/x"),
        "".join(f"&#x{ord(one):X};" for one in "sk-live_AbC.9/x"),
        "sk-live&lowbar;AbC&period;9&sol;x",
        "sk&amp;#45;live_AbC.9&amp;#x2f;x",
    ],
)
def test_a_key_in_entities_of_html_or_escaped_twice_is_masked(leak: str) -> None:
    assert redact(f"before {leak} after", "sk-live_AbC.9/x") == "before [redacted] after"


def test_a_text_without_the_key_stays_the_same():
    text = 'plain "text" with % and \\n and \\u0041 and c2stc2VjcmV0'
    assert redact(text, "sk-secret-1") == text
    assert redact(text, None) == text


def test_a_placeholder_is_masked_only_where_it_is_a_key():
    assert redact("none of these; Authorization: Bearer none", "none") == (
        "none of these; Authorization: Bearer [redacted]"
    )


@pytest.mark.parametrize("text", ['50% of it\\n is \\"so\\" and \\\\ \\t', "100%2 \\u2019 \\u00e9 %zz"])
def test_a_reply_without_a_way_to_hide_a_key_is_looked_at_once(text, monkeypatch):
    """Undoing every escape of every reply cost as much as the rest of the call."""
    monkeypatch.setattr("venire.judges.providers.base._views", lambda text: pytest.fail("looked at twice"))
    assert redact(text, "sk-secret-1") == text
