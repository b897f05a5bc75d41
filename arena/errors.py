"""Every error that Venire raises on purpose, grouped by what a caller can do about it.

VenireError
├── InputError           mend the input and try again; a command ends with exit code 2
│   ├── KeyRefusedError  a provider refuses the key, the list of models too; set another
│   └── StoreHeldError   another process holds the store; wait for it or stop it
├── StoreError           the store failed under the run; what was committed is safe
├── BudgetReachedError   the campaign's budget does not allow the next call
└── CallError            one call to a provider failed; carries the class of the fault
    └── TransientError   the same call may succeed later: the only error that is retried
        └── OutOfFilesError  this machine has no file for a connection; the call was not sent
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Fault(IntEnum):
    """Why an attempt brought no usable reply; 0 is an answered call."""

    NONE = 0
    TRANSIENT = 1
    RATE_LIMITED = 2
    QUOTA = 3
    AUTHENTICATION = 4
    BAD_REQUEST = 5
    FILTERED = 6
    TOO_LONG = 7
    UNANSWERED = 8


def fault_name(number: int) -> str:
    """The name of a fault by its number in a store, which another version may have written.

    >>> fault_name(2), fault_name(99)
    ('rate_limited', 'fault 99')
    """
    return Fault(number).name.lower() if number in set(Fault) else f"fault {number}"


class PromptSize(NamedTuple):
    """How long a provider says that a prompt is that it refused; a count is 0 where it does not say it."""

    tokens: int
    """Of the input."""
    context: int
    """That input and reply may have together."""
    at_least: bool = False
    """Whether it stopped counting there."""


class VenireError(Exception):
    """Root of every error raised on purpose."""


class InputError(VenireError):
    """Input from the user cannot be used; the message names it and the remedy."""


class KeyRefusedError(InputError):
    """A provider refuses the key, or asks for one where none is set."""


class StoreHeldError(InputError):
    """Another process owns the store."""


class StoreError(VenireError):
    """The store could not be written or read while a campaign was running."""


class BudgetReachedError(VenireError):
    """The next call could exceed the campaign's budget."""


class CallError(VenireError):
    """A call to a provider failed.

    `fault` is its class, `status` the HTTP status (None when no answer came), `retry_after` the wait that the
    provider asked for in seconds, `may_be_billed` whether the provider may have done the work all the same.
    `by_status` is 401, 402 or 403 where that status alone gave the class, without a machine-readable reason: such a
    refusal may be of the key or the account, or of this one call. `size` is what the provider counted of a prompt that
    it refused as too long.
    """

    def __init__(
        self,
        message: str,
        fault: Fault,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        may_be_billed: bool = False,
        by_status: int | None = None,
        size: PromptSize | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.status = status
        self.retry_after = retry_after
        self.may_be_billed = may_be_billed
        self.by_status = by_status
        self.size = size


class TransientError(CallError):
    """A call failed in a way that may pass: the network, a rate limit, an overloaded server."""


class OutOfFilesError(TransientError):
    """This process may open no more files: the call was not sent, and fewer at a time will work."""
