"""What a run that ended without notice left beside its store, brought into it at the next opening."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from venire.arena.errors import Fault
from venire.storage.journal import Announcement, journal_path, left_behind

if TYPE_CHECKING:
    from venire.storage.store import Store

__all__ = ["Recovered", "recover"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """Calls that were announced and have no answer on record, and what was reserved for them in nano-dollars."""

    calls: int = 0
    reserved: int = 0


def recover(store: Store) -> Recovered:
    """Turn announcements without an attempt into attempts without an answer, at their reserved price.

    The journal goes once they are on disk. Raises StoreError when they cannot be written.
    """
    announced = list(left_behind(store.path, store.constant))
    known = {tuple(row) for row in store.rows("attempts_of", trials=sorted({one.trial for one in announced}))}
    lost = [one for one in announced if (one.trial, one.step, one.number) not in known]
    if lost:
        found = Recovered(len(lost), sum(one.reserved for one in lost))
        with store.commit() as commit:
            commit.append(store.connection.appender("attempt"), [_attempt(one, commit.batch) for one in lost])
            detail = json.dumps({"calls": found.calls, "reserved": found.reserved})
            commit.run(
                "insert_event",
                now=store.clock.wall(),
                campaign=lost[0].campaign,
                kind="recovered",
                detail=detail,
                batch=commit.batch,
            )
    journal_path(store.path).unlink(missing_ok=True)
    return found if lost else Recovered()


def _attempt(one: Announcement, batch: int) -> tuple[Any, ...]:
    nothing = (None,) * 7
    told = "announced, and the process ended before an answer was on disk"
    head = (one.campaign, one.trial, one.step, one.number, one.lane, one.announced_after, None, int(Fault.UNANSWERED))
    return (*head, None, told, *nothing[:6], one.reserved, None, None, None, b"", None, None, None, batch)
