"""What the browser tests rely on: each kind of fault of a page is found, and a sound page has none."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit, origin

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
HEAD = "<!doctype html><html lang=en><title>A page</title><meta name=viewport content=width=device-width>"
SOUND = f"{HEAD}<link rel=stylesheet href=/style.css><main><h1>Sound</h1><p>Nothing is wrong.</p></main>"
STYLE = "body { color: #111; background: #fff } @media (prefers-color-scheme: dark) { body { color: #777 } }"
WIDE = f"{HEAD}<link rel=stylesheet href=/style.css><main><h1>Wide</h1><div class=wide>wide</div></main>"


@dataclass
class Site:
    """A site on this machine: a test writes its files."""

    url: str
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    policy: str = POLICY
    ended: threading.Event = field(default_factory=threading.Event)
    """Streams of events last until then, and so does `/silent`, which never answers."""

    def write(self, path: str, text: str) -> str:
        """The address of a file that is there from now on."""
        kinds = {"css": "text/css", "events": "text/event-stream", "js": "text/javascript"}
        self.files[path] = (kinds.get(path.rpartition(".")[2], "text/html; charset=utf-8"), text)
        return self.url + path

    def script(self, text: str) -> str:
        """The address of a sound page that runs a script."""
        self.write("/script.js", text)
        return self.write("/page", SOUND + "<script src=/script.js></script>")


@pytest.fixture
def site() -> Iterator[Site]:
    """A site that has a stylesheet, and answers 404 to what nobody wrote."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/silent":
                here.ended.wait()
                return
            kind, text = here.files.get(self.path, ("text/html; charset=utf-8", ""))
            self.send_response(200 if self.path in here.files else 404)
            self.send_header("Content-Type", kind)
            if here.policy:
                self.send_header("Content-Security-Policy", here.policy)
            self.end_headers()
            self.wfile.write((text or f"{HEAD}<main><h1>Not here</h1></main>").encode())
            if kind == "text/event-stream":
                here.ended.wait()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        here = Site(f"http://127.0.0.1:{server.server_port}")
        here.write("/style.css", STYLE)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield here
        here.ended.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("width", [320, 1280])
def test_a_sound_page_is_quiet(visit: Visit, site: Site, width: int) -> None:
    page = visit.open(site.write("/", SOUND), width)
    visit.assert_quiet()
    visit.no_overflow(page)
    assert visit.axe(page) == []
    visit.assert_quiet()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("console.error('so wrong')", r"console error: so wrong \(http.*/script.js:1\)"),
        ("console.assert(false, 'not so')", "console error: .*not so"),
        ("nothing.at.all", "uncaught: ReferenceError: nothing is not defined"),
        ("Promise.reject(new Error('broken'))", "uncaught: Error: broken"),
        ("fetch('/missing')", "failed request: fetch GET http.*/missing: 404"),
        ("document.body.setAttribute('style', 'color: red')", "console error: .*inline style"),
        ("eval('1')", "uncaught: EvalError"),
    ],
)
def test_a_script_that_errs_is_found(visit: Visit, site: Site, script: str, expected: str) -> None:
    visit.open(site.script(script))
    with pytest.raises(AssertionError, match=expected):
        visit.assert_quiet()


def test_what_only_warns_or_informs_is_quiet(visit: Visit, site: Site) -> None:
    visit.open(site.script("console.warn('careful'); console.log('and on')"))
    visit.assert_quiet()


@pytest.mark.parametrize("policy", [POLICY, ""])
@pytest.mark.parametrize(
    "what",
    [
        "<img alt=Dot src=http://stranger.invalid/dot.png>",
        "<link rel=stylesheet href=http://stranger.invalid/font.css>",
        "<script src=http://127.0.0.1:9/other-port.js></script>",
    ],
)
def test_a_request_to_somebody_else_is_found(visit: Visit, site: Site, what: str, policy: str) -> None:
    site.policy = policy
    visit.open(site.write("/", SOUND + what))
    with pytest.raises(AssertionError, match=r"foreign request: .*(stranger|127.0.0.1:9)"):
        visit.assert_quiet()


def test_a_web_socket_to_somebody_else_is_found(visit: Visit, site: Site) -> None:
    site.policy = ""
    visit.open(site.script("new WebSocket('ws://stranger.invalid/')"))
    with pytest.raises(AssertionError, match=r"foreign request: websocket ws://stranger.invalid/"):
        visit.assert_quiet()


def test_an_icon_that_is_missing_or_somebody_else_s_is_found(visit: Visit, site: Site, browser_path: str) -> None:
    if "headless-shell" in browser_path:
        pytest.skip("Chromium's headless shell asks for no icons")
    site.policy = ""
    page = visit.open(site.write("/", SOUND))
    for icon in ("/missing.png", "http://stranger.invalid/icon.png"):
        with page.expect_console_message():
            page.evaluate(
                "href => document.head.append(Object.assign(document.createElement('link'), {rel: 'icon', href}))", icon
            )
    with pytest.raises(AssertionError) as raised:
        visit.assert_quiet()
    assert "/missing.png: 404" in str(raised.value)
    assert visit.foreign_requests == ["other GET http://stranger.invalid/icon.png"]
    assert visit.console_errors == []


def test_a_page_that_opens_a_second_one_is_watched_there_too(visit: Visit, site: Site) -> None:
    site.write("/erring.js", "console.error('in the second')")
    site.write("/second", SOUND + "<script src=/erring.js></script>")
    page = visit.open(site.write("/", SOUND + "<p><a href=/second target=_blank>The second</a></p>"))
    visit.assert_quiet()
    with page.expect_popup() as second:
        page.click("a")
    second.value.wait_for_load_state()
    with pytest.raises(AssertionError, match="in the second"):
        visit.assert_quiet()


def test_a_page_has_the_status_that_was_expected(visit: Visit, site: Site) -> None:
    visit.open(site.url + "/missing", status=404)
    visit.assert_quiet()
    with pytest.raises(AssertionError, match="answers 404, not 200"):
        visit.open(site.url + "/missing")


def test_a_request_that_is_never_answered_is_found(visit: Visit, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.browser.conftest.ANSWER_SECONDS", 0.2)
    visit.open(site.script("fetch('/silent')"))
    with pytest.raises(AssertionError, match=r"request without an answer: fetch GET .*/silent"):
        visit.assert_quiet()


def test_a_request_that_is_cut_off_is_found(visit: Visit, site: Site) -> None:
    site.ended.set()
    visit.open(site.script("fetch('/silent').catch(() => 0)"))
    with pytest.raises(AssertionError, match=r"failed request: fetch GET .*/silent: net::ERR_EMPTY_RESPONSE"):
        visit.assert_quiet()


def test_a_request_that_the_page_calls_off_is_no_fault(visit: Visit, site: Site) -> None:
    page = visit.open(site.write("/", SOUND))
    page.evaluate("void fetch('/silent', {signal: AbortSignal.timeout(50)}).catch(() => 0)")
    visit.assert_quiet()


def test_a_stream_of_events_is_quiet_while_it_lasts_and_when_the_page_is_left(visit: Visit, site: Site) -> None:
    site.write("/live.events", "retry: 10\ndata: first event\n\n")
    url = site.script("new EventSource('/live.events').onmessage = event => { document.title = event.data }")
    page = visit.open(url)
    expect(page).to_have_title("first event")
    visit.assert_quiet()
    page.goto(site.write("/", SOUND))
    visit.assert_quiet()


def test_a_stream_of_events_that_breaks_off_is_found(visit: Visit, site: Site) -> None:
    site.write("/live.events", "retry: 10\ndata: first event\n\n")
    page = visit.open(
        site.script("new EventSource('/live.events').onmessage = event => { document.title = event.data }")
    )
    expect(page).to_have_title("first event")
    visit.assert_quiet()
    del site.files["/live.events"]
    with page.expect_response("**/live.events"):
        site.ended.set()
    with pytest.raises(AssertionError, match=r"failed request: eventsource GET .*/live.events: 404"):
        visit.assert_quiet()


def test_serious_faults_of_access_are_found_under_the_policy(visit: Visit, site: Site) -> None:
    page = visit.open(site.write("/", SOUND + "<main><img src=/style.css><input></main>"))
    found = visit.axe(page)
    assert [one.split(":")[0] for one in found] == ["critical image-alt", "critical label"]
    assert "<img src=" in found[0]
    assert page.evaluate("typeof axe") == "undefined"


def test_contrast_is_measured_in_the_scheme_asked_for(visit: Visit, site: Site) -> None:
    url = site.write("/", SOUND)
    assert visit.axe(visit.open(url, scheme="light")) == []
    found = visit.axe(visit.open(url, scheme="dark"))
    assert {one.split(":")[0] for one in found} == {"serious color-contrast"}


def test_the_page_s_policy_stays_in_force(visit: Visit, site: Site) -> None:
    page = visit.open(site.write("/", SOUND + "<script>document.title = 'ran'</script>"))
    visit.axe(page)
    assert page.title() == "A page"
    with pytest.raises(AssertionError, match="Content Security Policy"):
        visit.assert_quiet()


def test_a_page_that_scrolls_sideways_is_found(visit: Visit, site: Site) -> None:
    site.write("/style.css", ".wide { width: 600px }")
    url = site.write("/", WIDE)
    visit.no_overflow(visit.open(url, width=700))
    with pytest.raises(AssertionError, match=r"in a window of 375: <div class=.wide.></div> ends at 6\d\d"):
        visit.no_overflow(visit.open(url, width=375))


def test_a_box_may_scroll_sideways_in_itself(visit: Visit, site: Site) -> None:
    site.write("/style.css", "main { overflow-x: auto } .wide { width: 600px }")
    visit.no_overflow(visit.open(site.write("/", WIDE), width=375))
    with pytest.raises(AssertionError, match=r"in a window of 375: <p class=.wide.></p> ends at 6\d\d\n"):
        visit.no_overflow(visit.open(site.write("/", WIDE + "<p class=wide>and another</p>"), width=375))


def test_a_page_without_scripts_is_shown_as_such(visit: Visit, site: Site) -> None:
    page = visit.open(site.script("document.title = 'ran'"), width=375, java_script_enabled=False)
    assert page.title() == "A page"
    visit.no_overflow(page)
    visit.assert_quiet()
    with pytest.raises(AssertionError, match="axe needs a page with scripts"):
        visit.axe(page)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/a?b#c", "http://127.0.0.1:8000"),
        ("ws://127.0.0.1:8000/live", "http://127.0.0.1:8000"),
        ("wss://127.0.0.1/live", "https://127.0.0.1"),
        ("blob:http://127.0.0.1:8000/0-1-2", "http://127.0.0.1:8000"),
        ("data:text/plain,a", ""),
        ("about:blank", ""),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, expected: str) -> None:
    assert origin(url) == expected
