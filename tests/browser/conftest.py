"""A real browser, and what a page does in it that it should not."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    WebError,
    sync_playwright,
)

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""As in the Makefile; the first is the browser without its window, whose pages open three times as quickly."""
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    # pytest-socket does not see the sockets of a browser.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE [::1], EXCLUDE localhost",
    "--no-proxy-server",
)
TEST_SECONDS = 60
WAIT_SECONDS = 10
"""How long a page has for what it is asked to do or to show."""
ANSWER_SECONDS = 5
"""How long a page's requests may stay without an answer."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs the browser, and has less time than others.

    They come last: as long as the browser is there an event loop runs in this thread, and `asyncio.run` refuses.
    """
    folder = Path(__file__).parent
    ours = [item for item in items if item.path.is_relative_to(folder)]
    for item in ours:
        item.add_marker(pytest.mark.browser)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))
    items.sort(key=lambda item: item.path.is_relative_to(folder))


@pytest.fixture(scope="session")
def browser_path() -> str:
    """Where the machine's Chromium is."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(BROWSERS)} is on PATH; `make test-browser` installs one")
    return found


@pytest.fixture(scope="session")
def browser(browser_path: str) -> Iterator[Browser]:
    """The machine's Chromium; a server for its pages runs in another thread or process."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path,
            args=list(FLAGS),
            chromium_sandbox=os.geteuid() != 0,  # root has none
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe_source() -> str:
    """The text of axe-core."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def visit(browser: Browser, axe_source: str) -> Iterator[Visit]:
    """Opens pages, and writes down what they do that they should not."""
    visit = Visit(browser, axe_source)
    yield visit
    visit.close()


def origin(url: str) -> str:
    """Scheme, host and port of an address, those of HTTP for a web socket; empty for data in the address itself."""
    parts = urlsplit(url.removeprefix("blob:"))
    return f"{parts.scheme.replace('ws', 'http')}://{parts.netloc}" if parts.netloc else ""


class Visit:
    """The pages that a test has opened, each in a profile of its own."""

    def __init__(self, browser: Browser, axe_source: str) -> None:
        self.console_errors: list[str] = []
        """What the browser or a script has written as an error, violations of the page's policy among them."""
        self.page_errors: list[str] = []
        """Exceptions that nothing in the page has caught."""
        self.failed_requests: list[str] = []
        """Requests without an answer, or with a status of 400 and above that nobody had expected."""
        self.foreign_requests: list[str] = []
        """Requests for anything that is not of the page's own origin; none of them leaves this machine."""
        self._browser = browser
        self._axe_source = axe_source
        self._contexts: list[BrowserContext] = []
        self._scriptless: list[BrowserContext] = []
        self._asked: set[str] = set()
        self._unanswered: dict[Request, BrowserContext] = {}

    def open(
        self,
        url: str,
        width: int = 1280,
        scheme: Literal["light", "dark"] = "light",
        *,
        status: int = 200,
        **options: Any,
    ) -> Page:
        """The page at an address, loaded, in a window of a width; options are those of `Browser.new_context`.

        A policy without `unsafe-eval` stops `page.wait_for_function`; `expect(locator)` and `page.evaluate` work.
        """
        context = self._browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        self._contexts.append(context)
        if not options.get("java_script_enabled", True):
            self._scriptless.append(context)
        context.set_default_timeout(WAIT_SECONDS * 1000)
        context.on("console", self._on_console)
        context.on("weberror", self._on_page_error)
        context.on("request", partial(self._on_request, context, origin(url)))
        context.on("response", partial(self._on_response, url, status))
        context.on("requestfailed", self._on_failure)
        context.on("page", partial(self._on_page, origin(url)))
        context.on("close", self._on_close)
        page = context.new_page()
        response = page.goto(url)
        assert response is not None, f"{url} has no answer"
        assert response.status == status, f"{url} answers {response.status}, not {status}"
        return page

    def close(self) -> None:
        """Closes all pages."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()

    def assert_quiet(self) -> None:
        """No page has erred, asked in vain, or asked anybody else, once every request has an answer."""
        self._settle()
        kinds = {
            "console error": self.console_errors,
            "uncaught": self.page_errors,
            "failed request": self.failed_requests,
            "foreign request": self.foreign_requests,
            "request without an answer": [_named(request) for request in self._unanswered],
        }
        found = [f"{kind}: {text}" for kind, texts in kinds.items() for text in texts]
        assert not found, "\n".join(found)

    def axe(self, page: Page) -> list[str]:
        """The serious and critical faults that axe-core finds in a page as it now is, one for each element.

        axe runs in a world of its own: it does not need the page's policy to let it in, and the page does not see it.
        It is a script itself: a page that was opened without scripts cannot be examined.
        """
        assert page.context not in self._scriptless, "axe needs a page with scripts"
        session = page.context.new_cdp_session(page)
        frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"})["executionContextId"]
        script = (
            f"{self._axe_source};"
            "axe.run(document, {resultTypes: ['violations'], preload: false}).then(found => found.violations)"
        )
        answer = session.send(
            "Runtime.evaluate",
            {"expression": script, "contextId": world, "awaitPromise": True, "returnByValue": True},
            timeout=WAIT_SECONDS * 1000,
        )
        session.detach()
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return [
            f"{rule['impact']} {rule['id']}: {rule['help']}: {' '.join(map(str, node['target']))} is {node['html']}: "
            + " ".join(node["failureSummary"].split())
            for rule in answer["result"]["value"]
            for node in rule["nodes"]
            if rule["impact"] in ("serious", "critical")
        ]

    def no_overflow(self, page: Page) -> None:
        """The document does not scroll sideways; what scrolls in a box of its own may."""
        size, found = page.evaluate(_OVERFLOW)
        assert page.viewport_size is not None
        assert size["inner"] == page.viewport_size["width"], f"{page.url} widens its window to {size['inner']}"
        assert size["scroll"] <= size["inner"], (
            f"{page.url} is {size['scroll']} wide in a window of {size['inner']}: {'; '.join(found) or 'no element is'}"
        )

    def _settle(self) -> None:
        """Waits for what was asked and not yet answered; streams that have begun count as answered."""
        pages = [page for context in self._contexts for page in context.pages]
        end = time.monotonic() + ANSWER_SECONDS
        for page in pages:
            page.evaluate("0")  # what the page did before has then been reported
            while self._unanswered and time.monotonic() < end:
                page.wait_for_timeout(10)
            page.evaluate("0")

    def _on_console(self, message: ConsoleMessage) -> None:
        url = message.location["url"]
        # Requests are written down themselves, but for the icon that browsers ask of every site, when they like.
        known = url in self._asked or urlsplit(url).path == "/favicon.ico"
        if message.type in ("error", "assert") and not (message.text.startswith("Failed to load resource:") and known):
            self.console_errors.append(f"{message.text} ({url}:{message.location['lineNumber'] + 1})")

    def _on_page_error(self, error: WebError) -> None:
        self.page_errors.append(error.error.stack or str(error.error))

    def _on_page(self, own: str, page: Page) -> None:
        page.on("websocket", lambda socket: self._on_address(own, socket.url, f"websocket {socket.url}"))

    def _on_request(self, context: BrowserContext, own: str, request: Request) -> None:
        self._asked.add(request.url)
        self._unanswered[request] = context
        self._on_address(own, request.url, _named(request))

    def _on_address(self, own: str, url: str, name: str) -> None:
        if origin(url) not in ("", own):
            self.foreign_requests.append(name)

    def _on_response(self, url: str, status: int, response: Response) -> None:
        self._answered(response.request)
        if response.status >= 400 and (response.url, response.status) != (url, status):
            self.failed_requests.append(f"{_named(response.request)}: {response.status}")

    def _on_failure(self, request: Request) -> None:
        self._answered(request)
        if request.failure != "net::ERR_ABORTED":  # the page itself has ended it, or was left
            self.failed_requests.append(f"{_named(request)}: {request.failure}")

    def _answered(self, request: Request) -> None:
        self._unanswered.pop(request, None)

    def _on_close(self, closed: BrowserContext) -> None:
        """What a closed page had asked, its icon for one, is answered to nobody, and no failure is reported."""
        self._unanswered = {request: context for request, context in self._unanswered.items() if context != closed}


def _named(request: Request) -> str:
    return f"{request.resource_type} {request.method} {request.url}"


_OVERFLOW = """() => {
  const inner = window.innerWidth, found = [];
  const clipped = element => {
    for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== 'visible') return true;
    return false;
  };
  for (const element of document.body.querySelectorAll('*')) {
    const right = Math.round(element.getBoundingClientRect().right);
    if (right > inner && !clipped(element) && found.length < 5)
      found.push(`${element.cloneNode(false).outerHTML} ends at ${right}`);
  }
  return [{inner, scroll: document.documentElement.scrollWidth}, found];
}"""
