"""Pages as they are made, in threads: from a store and the fits that they need to HTML, or a sentence of why not."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from venire.arena.errors import InputError, StoreHeldError, VenireError
from venire.live.fits import Fit, Fits, FitSource, Work
from venire.live.library import Library, NotYetError, ServedStore
from venire.pages.context import PageContext, ServedCampaign
from venire.pages.registry import MENU, PageEntry
from venire.pages.rendering import render
from venire.pages.views.annotation import voting_page
from venire.reports.documents.boards import audit_document, board_document, read_for_audit, read_for_board
from venire.reports.documents.side_by_side import comparison_document, read_for_comparison
from venire.storage.read import frames
from venire.storage.read.trial_table import TrialFilter

_PATIENCE_SECONDS = 5.0
_PATIENCE_TIMES = 20.0
"""Beside a run a board is shown for so long at least, and for so many times as long as it took, but for its end."""

_WAITED_SECONDS = 2.0
"""The same of a store at rest, while people vote: who waits for a board asks again within so long."""

_AUDITED_BY_ITSELF = 200_000
"""Trials up to which an audit is made before its page is asked for: of a million it takes half a minute."""

_AUDITED_BESIDE_A_RUN = 20_000
"""The same beside a run, which has the first right to the machine: a second or two in twenty times as long."""

_AUDIT = Work("audit", read_for_audit, audit_document)


@dataclass(frozen=True, slots=True)
class Live:
    """The run that is going on in this process: its counters, and a function that stops it gently."""

    document: Callable[[], Mapping[str, Any]]
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """An answer: a page, or where to look instead."""

    body: bytes = b""
    status: int = 200
    location: str | None = None


class WaitingError(Exception):
    """A fit that a page needs is under way; `meanwhile` is the page without it, where it is shown so."""

    def __init__(self, here: PageContext, what: str, fit: Fit, key: str) -> None:
        self.here, self.what, self.fit, self.key = here, what, fit, key
        self.meanwhile: RenderedPage | None = None


@dataclass(frozen=True, slots=True)
class PageMaker:
    """Makes the pages of some stores; `token` goes with every form, `live` is the run of this process, if there is one.

    Its methods read stores and render, so they are called in threads.
    """

    library: Library
    fits: Fits
    token: str
    live: Live | None = None
    people: str | None = None
    """The group of those who may vote here: pages then lead to that, and boards have their votes beside them."""

    def front(self) -> RenderedPage:
        """The list of stores."""
        values = {"title": "Stores", "page": "stores", "stores": self.library.overview(self.document())}
        return RenderedPage(render("stores.html", values).encode("utf-8", "replace"))

    def first(self, served: ServedStore, wanted: str | None, page: str = "overview") -> RenderedPage:
        """The way to a page of a campaign: that of the number, else the one that is going on, else the last."""
        with served.store() as store:
            campaigns = frames.campaigns(store)
        if not campaigns:
            raise NotYetError(f"the store {served.path} has no campaign yet: `venire run FILE` starts one")
        live = self.document()
        running = None if live is None else live["campaign"]
        by_number = [one for one in campaigns if str(one.id) == wanted]
        by_name = [one for one in campaigns if one.name == running]
        return RenderedPage(location=f"/s/{served.slug}/c/{(by_number + by_name or campaigns[-1:])[0].id}/{page}")

    def made(self, make: Callable[[], RenderedPage]) -> RenderedPage:
        """A page, or one that says why there is none. Raises WaitingError for one whose fit is not there."""
        try:
            return make()
        except StoreHeldError as error:
            return self._sentence("The store is in use", f"{error}.", again=2)
        except NotYetError as error:
            return self._sentence("Nothing to show yet", f"{error}. The page comes by itself.", status=404, again=2)
        except InputError as error:
            return self._sentence("That cannot be shown", str(error), status=404)
        except VenireError as error:
            return self._sentence("The store cannot be read", str(error), status=500)

    def _sentence(self, title: str, *sentences: str, status: int = 409, again: int = 0) -> RenderedPage:
        values = {"title": title, "page": "", "sentences": sentences, "command": "", "again": again, "back": "/"}
        return RenderedPage(render("message.html", values).encode("utf-8", "replace"), status)

    def waiting(self, waiting: WaitingError, path: str) -> RenderedPage:
        """The page that says how far a fit is, or the one without it; both ask again by themselves."""
        if waiting.meanwhile is not None:
            return waiting.meanwhile
        values = waiting.here.values(path.rsplit("/", 1)[-1], "Computing") | {
            **MENU,
            "sentences": [
                f"{waiting.what}: {waiting.fit.stage} for {waiting.fit.seconds:.1f} s. The page comes by itself."
            ],
            "command": "",
            "again": 1,
            "cancel": waiting.here.links.to("cancel", key=waiting.key),
            "back": waiting.here.links.to("overview"),
        }
        return RenderedPage(render("message.html", values).encode("utf-8", "replace"), 202)

    def document(self) -> Mapping[str, Any] | None:
        """The counters of the run that is going on in this process, if there is one."""
        return None if self.live is None else self.live.document()

    def voting(self, served: ServedStore, campaign: int) -> RenderedPage:
        """The page on which people vote; it asks for battles by itself."""
        with served.store() as store:
            here = served.context(store, campaign, token=self.token, live=self.document())
        return RenderedPage(voting_page(here.links, self.token).encode())

    def page(
        self, served: ServedStore, campaign: int, page: PageEntry, number: int, query: Mapping[str, str]
    ) -> RenderedPage:
        """A page of a campaign; `number` is that of its trial, instruction or model where it is of one."""
        with served.store() as store:
            here = served.context(
                store,
                campaign,
                token=self.token,
                live=self.document(),
                votable=self.people is not None,
            )
            here = replace(
                here,
                number=number,
                query=query,
                board=partial(self._board, here),
                board_at_hand=lambda: self._known(here, self._work()),
                compared=partial(self._compared, here),
                served=self._served,
                audit=partial(self._fit, here, "The audit", _AUDIT),
                audit_at_hand=partial(self._audit_at_hand, here),
                audit_under_way=lambda: self.fits.is_under_way(_key(here, _AUDIT)),
            )
            if page.begin is not None:
                with contextlib.suppress(WaitingError, InputError):  # the page itself says so
                    page.begin(here)  # goes on while the table of trials is made
            if page.table:
                here.table.refresh(at_once=here.live is not None and bool(here.live.get("ending")))
            try:
                return RenderedPage(page.html(here).encode("utf-8", "replace"))
            except WaitingError as waiting:
                if page.meanwhile:
                    meanwhile = replace(here, board=lambda *choice: here.board_at_hand() or {})
                    waiting.meanwhile = RenderedPage(page.html(meanwhile).encode("utf-8", "replace"))
                raise

    def _work(self, method: str = "", judge: str = "", category: str = "") -> Work:
        """The board by a method, else by that of the campaign; of some judges, a line each, or of one category."""
        return Work("board", read_for_board, board_document, (method or None, judge, category, self.people))

    def _board(self, here: PageContext, *choice: str) -> Mapping[str, Any]:
        return self._fit(here, "The board", self._work(*choice))

    def _compared(self, here: PageContext, judge: str, address: str, other_judge: str) -> Mapping[str, Any]:
        """The comparison with another campaign. Raises InputError for one that is not served."""
        slug, _, number = address.partition("/")
        served = self.library.find(slug)
        with served.store() as store:
            campaign = next((one for one in frames.campaigns(store) if str(one.id) == number), None)
            if campaign is None:
                raise InputError(f"the store {served.path} has no campaign number {number[:9]}")
            beside = FitSource(store, campaign, served.store)
            work = Work("comparison", read_for_comparison, comparison_document, (judge, address, other_judge))
            return self._fit(here, "The comparison", work, beside)

    def _served(self) -> tuple[ServedCampaign, ...]:
        """The campaigns of all stores that can be opened."""
        found: list[ServedCampaign] = []
        for served in self.library.stores.values():
            with contextlib.suppress(VenireError), served.store() as store:
                for one in frames.campaigns(store):
                    judges = tuple(judge.name for judge in frames.judges(store, one.id))
                    found.append(ServedCampaign(f"{served.slug}/{one.id}", one.name, served.path.name, judges))
        return tuple(found)

    def _fit(self, here: PageContext, what: str, work: Work, beside: FitSource | None = None) -> Mapping[str, Any]:
        """The document of a fit; raises WaitingError where it is not there yet."""
        if here.live is None:
            patience, times = _WAITED_SECONDS, 0.0
        elif here.live.get("ending"):
            patience, times = 0.0, 0.0
        else:
            patience, times = _PATIENCE_SECONDS, _PATIENCE_TIMES
        source = FitSource(here.store, here.campaign, here.holding, beside)
        fit = self.fits.get(_key(here, work), source, work, patience=patience, times=times)
        if not fit.done.is_set():
            raise WaitingError(here, what, fit, json.dumps(_key(here, work)[2:]))
        if fit.document is None:
            raise InputError(fit.error or "it cannot be computed")
        return fit.document

    def _audit_at_hand(self, here: PageContext) -> Mapping[str, Any] | None:
        """The audit where it is there; else it is begun for who comes back, unless it is large."""
        most = _AUDITED_BY_ITSELF if here.live is None else _AUDITED_BESIDE_A_RUN
        if here.table.count(TrialFilter()) <= most:
            with contextlib.suppress(WaitingError, InputError):
                return self._fit(here, "The audit", _AUDIT)
        return self._known(here, _AUDIT)

    def _known(self, here: PageContext, work: Work) -> Mapping[str, Any] | None:
        return self.fits.known(_key(here, work))


def _key(here: PageContext, work: Work) -> tuple[Any, ...]:
    """All that a fit depends on, which store is at the path among it; the page that waits for it has what follows the
    campaign, to stop it by.
    """
    return str(here.store.path), here.campaign.id, here.store.constant.hex(), work.name, *work.choice


def refuse_without_packages() -> None:
    """Raises InputError that says what to install where a package that pages need is missing."""
    from importlib.util import find_spec

    needed = {"jinja2": "jinja2", "markdown_it": "markdown-it-py", "nh3": "nh3"}
    if missing := [package for module, package in needed.items() if find_spec(module) is None]:
        raise InputError(f"pages need {', '.join(missing)}: install them with `pip install 'venire[report]'`")
