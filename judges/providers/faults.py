"""What a failed call means: classified by HTTP status and machine code, never by words that a prompt may hold.

A message may quote the prompt, and a prompt may mention rate limits, so its words are not used. The one exception is a
prompt beyond the context, for which many servers have no code: there a message counts that is, from its first letter to
its last, a sentence of the server's own with nothing but numbers put in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from venire.arena.errors import CallError, Fault, PromptSize, TransientError
from venire.judges.providers.error_bodies import parse_json, read_error_body, what_is_said
from venire.judges.providers.rate_limit_headers import retry_after

_STATUSES: Mapping[int, Fault] = {
    401: Fault.AUTHENTICATION,
    402: Fault.QUOTA,
    403: Fault.AUTHENTICATION,
    407: Fault.AUTHENTICATION,
    408: Fault.TRANSIENT,
    409: Fault.TRANSIENT,
    413: Fault.TOO_LONG,
    425: Fault.TRANSIENT,
    429: Fault.RATE_LIMITED,
}

# Machine codes more specific than the status that they come with. docs/providers.md lists where each is documented;
# codes for a missing permission are not among them: vendors give them to a text that a filter refuses as well.
_CODES: Mapping[str, Fault] = {
    **dict.fromkeys(
        (
            "ACCESS_TOKEN_EXPIRED",
            "API_KEY_INVALID",
            "API_KEY_SERVICE_BLOCKED",
            "CONSUMER_INVALID",
            "CONSUMER_SUSPENDED",
            "CREDENTIALS_MISSING",
            "ExpiredTokenException",
            "InvalidClientTokenId",
            "SERVICE_DISABLED",
            "UnrecognizedClientException",
            "account_deactivated",
            "auth_error",
            "authentication",
            "authentication_error",
            "expired_key",
            "invalid_api_key",
            "key_model_access_denied",
            "org_model_access_denied",
            "project_model_access_denied",
            "team_model_access_denied",
            "token_not_found_in_db",
            "user_model_access_denied",
        ),
        Fault.AUTHENTICATION,
    ),
    **dict.fromkeys(
        (
            "BILLING_DISABLED",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "budget_exceeded",
            "credit_balance_exhausted",
            "exceeded_current_quota_error",
            "insufficient_quota",
            "openrouter_guardrail_budget",
            "openrouter_key_limit",
            "openrouter_workspace_budget",
        ),
        Fault.QUOTA,
    ),
    "ResponsibleAIPolicyViolation": Fault.FILTERED,
    "content_filter": Fault.FILTERED,
    "content_policy_violation": Fault.FILTERED,
    "context_length_exceeded": Fault.TOO_LONG,
    "exceed_context_size_error": Fault.TOO_LONG,
    "in_flight_budget_exhausted": Fault.RATE_LIMITED,
}

# Machine codes that replace a status where there is none: an error inside an answer of status 200.
_CODES_ALONE: Mapping[str, Fault] = {
    "invalid_request_error": Fault.BAD_REQUEST,
    "model_not_found": Fault.BAD_REQUEST,
    "permission_error": Fault.AUTHENTICATION,
    "rate_limit_error": Fault.RATE_LIMITED,
    "rate_limit_exceeded": Fault.RATE_LIMITED,
}

# Time ran out somewhere behind the gateway: the model may have answered all the same.
MAYBE_BILLED = frozenset({408, 504, 524})

# Statuses of a refusal that may be of the key, of the account or, without a reason, of one call alone.
_UNEXPLAINED = frozenset({401, 402, 403})

# Faults that keep a call from the model; nothing was made that could be billed, unless the answer shows some of it.
REFUSALS = frozenset({Fault.AUTHENTICATION, Fault.QUOTA, Fault.RATE_LIMITED})
_ANSWERED = ("candidates", "choices", "content", "message", "usage", "usageMetadata")

_STATUS = re.compile(r"[45]\d\d")
_MAX_MESSAGE = 300
_BEARER = re.compile(r"\bbearer\s+[^\s\"',;]+", re.IGNORECASE)


def classify(status: int | None, code: str | None = None) -> Fault:
    """The class of a failed call, from its HTTP status (None or below 300: an answer that was no answer) and code."""
    if code is not None and code in _CODES:
        return _CODES[code]
    if status is None or status < 300:
        if code is not None and _STATUS.fullmatch(code):
            return classify(int(code))
        return _CODES_ALONE.get(code or "", Fault.TRANSIENT)
    if status in _STATUSES:
        return _STATUSES[status]
    return Fault.TRANSIENT if status >= 500 else Fault.BAD_REQUEST


def unexplained(status: int | None, code: str | None = None) -> int | None:
    """The status of a refusal for which no machine code gives a reason: 401, 402 or 403; None for any other failure.

    An error inside an answer of status 200 has no status; the code then determines it.
    """
    if code is not None and code in _CODES:
        return None
    if status is None or status < 300:
        status = {"401": 401, "402": 402, "403": 403, "permission_error": 403}.get(code or "")
    return status if status in _UNEXPLAINED else None


def failure(
    message: str,
    fault: Fault,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    may_be_billed: bool = False,
    by_status: int | None = None,
    size: PromptSize | None = None,
) -> CallError:
    """The error for a class of fault: a `TransientError` exactly when the same call may succeed later."""
    kind = TransientError if fault in (Fault.TRANSIENT, Fault.RATE_LIMITED) else CallError
    return kind(
        short(message),
        fault,
        status=status,
        retry_after=retry_after,
        may_be_billed=may_be_billed,
        by_status=by_status,
        size=size,
    )


def fault_of(status: int, text: str) -> Fault:
    """The class of an HTTP answer other than 2xx, from its status and the machine code in its body."""
    return classify(status, _code(read_error_body(parse_json(text)).codes))


def refusal(
    status: int, headers: Mapping[str, str], text: str, now: datetime, statuses: Mapping[int, Fault] | None = None
) -> CallError:
    """The error for an HTTP answer other than 2xx; `text` is its body, already without the key.

    `statuses` maps statuses to their meaning at this vendor alone, where no machine code is more specific.
    """
    if 300 <= status < 400:
        return failure(
            f"HTTP {status}: the server sends elsewhere, and a key must not follow; correct base_url",
            Fault.BAD_REQUEST,
            status=status,
        )
    payload = parse_json(text)
    body = read_error_body(payload, headers.get("x-amzn-errortype"))
    code = _code(body.codes)
    fault, by_status = classify(status, code), unexplained(status, code)
    if statuses is not None and status in statuses and code not in _CODES:
        fault, by_status = statuses[status], None
    return failure(
        f"HTTP {status}: {what_is_said(body, text)}",
        fault,
        status=status,
        size=body.size,
        retry_after=retry_after(headers, now, payload),
        may_be_billed=status in MAYBE_BILLED,
        by_status=by_status,
    )


def error_inside(payload: Mapping[str, Any], status: int = 200) -> CallError | None:
    """The error that an answer of status 200 carries in its `error` object, classified by its code; None if none.

    It may be billed, but for a refusal of rate, credit or key with nothing of an answer beside it: a gateway passes
    those on in this way, again and again, and each would count at the most that a call can cost.
    """
    if not payload.get("error"):
        return None
    body = read_error_body(payload["error"]) if isinstance(payload["error"], dict | list) else read_error_body(payload)
    code = _code(body.codes)
    fault = classify(None, code)
    return failure(
        f"HTTP {status} with an error inside: {body.message or 'no message'}",
        fault,
        size=body.size,
        status=status,
        may_be_billed=fault not in REFUSALS or any(payload.get(name) for name in _ANSWERED),
        by_status=unexplained(None, code),
    )


def short(message: str) -> str:
    """A message fit for a table: one line, no bearer token, at most 300 characters."""
    line = _BEARER.sub("Bearer [redacted]", " ".join(message.split()))
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE - 1]}…"


def _code(codes: Sequence[str]) -> str | None:
    """The most specific of an error's codes, else the one that is a status, else the first."""
    for known in (_CODES, _CODES_ALONE):
        for code in codes:
            if code in known:
                return code
    return next((code for code in codes if _STATUS.fullmatch(code)), codes[0] if codes else None)
