"""Looking for completions that try to instruct their judge, by the rules of `judges.suspicion`."""

from __future__ import annotations

from venire.judges import suspicion
from venire.storage.plans import screening
from venire.storage.plans.screening import Rules, Screened
from venire.storage.store.store import Store

__all__ = ["screen"]


def screen(store: Store) -> Screened:
    """See that every completion of a store was looked at by today's rules; those that were are not looked at again.

    Raises StoreError when the store fails.
    """
    rules = Rules(suspicion.version(), suspicion.CANDIDATES, suspicion.LOWER_CASE_CANDIDATES, suspicion.suspicious)
    return screening.screen(store, rules)
