"""Looking for completions that try to instruct their judge, by the rules of `judges.safety.injection_detection`."""

from __future__ import annotations

from venire.judges.safety import injection_detection
from venire.storage.plans import screening
from venire.storage.plans.screening import Rules, Screened
from venire.storage.store.store import Store

__all__ = ["screen"]


def screen(store: Store) -> Screened:
    """See that every completion of a store was looked at by today's rules; those that were are not looked at again.

    Raises StoreError when the store fails.
    """
    rules = Rules(
        injection_detection.version(),
        injection_detection.CANDIDATES,
        injection_detection.LOWER_CASE_CANDIDATES,
        injection_detection.detect_injection,
    )
    return screening.screen(store, rules)
