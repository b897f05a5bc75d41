"""What a failed call means: classified by HTTP status and machine code, never by words that a prompt may hold.

A message may quote the prompt, and a prompt may mention rate limits, so its words are not used. The one exception is a
prompt beyond the context, for which many servers have no code: there a message counts that is, from its first letter to
its last, a sentence of the server's own with nothing but numbers put in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import orjson

from venire.arena.errors import CallError, Fault, TransientError
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
            "insufficient_quota",
            "openrouter_guardrail_budget",
            "openrouter_key_limit",
            "openrouter_workspace_budget",
        ),
        Fault.QUOTA,
    ),
    "content_filter": Fault.FILTERED,
    "content_policy_violation": Fault.FILTERED,
    "context_length_exceeded": Fault.TOO_LONG,
    "exceed_context_size_error": Fault.TOO_LONG,
    "in_flight_budget_exhausted": Fault.RATE_LIMITED,
}

_TOO_LONG_CODE = "context_length_exceeded"
_TOO_LONG = re.compile(
    r"This model's maximum context length is \d+ tokens\. However, [a-z\d ,()]+\."
    r"( Please reduce [a-z_ ]+\.)?( \(parameter=[a-z_]+, value=\d+\))?"  # OpenAI's, vLLM's and DeepSeek's
    r"|The input \(\d+ tokens\) is longer than the model's context length \(\d+ tokens\)\."  # SGLang's
    r"|prompt is too long: \d+ tokens > \d+ maximum"  # Anthropic's
    r"|input length and `max_tokens` exceed context limit: \d+ \+ \d+ > \d+, decrease input length or `max_tokens` "
    r"and try again"
    r"|The input token count( \(\d+\))? exceeds the maximum number of tokens allowed \(\d+\)\."  # Gemini's
)
"""Whole messages; none of their variable parts has room for words of a prompt."""
_TOO_LONG_CLASS = re.compile(r"(litellm\.BadRequestError: )?litellm\.ContextWindowExceededError: ")
"""How a message of LiteLLM's proxy begins, whose codes are those of any bad request: the class of the exception."""

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

# Cloudflare's codes for a prompt and an answer that its guardrails block.
_BLOCKED = frozenset({2016, 2017})

# Faults that keep a call from the model; nothing was made that could be billed, unless the answer shows some of it.
REFUSALS = frozenset({Fault.AUTHENTICATION, Fault.QUOTA, Fault.RATE_LIMITED})
_ANSWERED = ("candidates", "choices", "content", "message", "usage", "usageMetadata")

_MAX_MESSAGE = 300
_BEARER = re.compile(r"\bbearer\s+[^\s\"',;]+", re.IGNORECASE)


def classify(status: int | None, code: str | None = None) -> Fault:
    """The class of a failed call, from its HTTP status (None or below 300: an answer that was no answer) and code."""
    if code is not None and code in _CODES:
        return _CODES[code]
    if status is None or status < 300:
        if code is not None and re.fullmatch(r"[45]\d\d", code):
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
    )


def fault_of(status: int, text: str) -> Fault:
    """The class of an HTTP answer other than 2xx, from its status and the machine code in its body."""
    return classify(status, _code(_parse(text)))


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
    payload = _parse(text)
    code = _code(payload, headers.get("x-amzn-errortype"))
    fault, by_status = classify(status, code), unexplained(status, code)
    if statuses is not None and status in statuses and code not in _CODES:
        fault, by_status = statuses[status], None
    return failure(
        f"HTTP {status}: {_message(payload) or ('a web page' if _HTML.match(text) else 'no message')}",
        fault,
        status=status,
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
    code = _code(payload)
    fault = classify(None, code)
    return failure(
        f"HTTP {status} with an error inside: {_message(payload) or 'no message'}",
        fault,
        status=status,
        may_be_billed=fault not in REFUSALS or any(payload.get(name) for name in _ANSWERED),
        by_status=unexplained(None, code),
    )


def short(message: str) -> str:
    """A message fit for a table: one line, no bearer token, at most 300 characters."""
    line = _BEARER.sub("Bearer [redacted]", " ".join(message.split()))
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE - 1]}…"


_HTML = re.compile(r"\s*<(!doctype|html|head|body)\b", re.IGNORECASE)


def _parse(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _errors(payload: object) -> Iterator[Mapping[str, Any]]:
    """The objects in which vendors put what went wrong, inmost first."""
    if isinstance(payload, list) and len(payload) == 1:
        payload = payload[0]
    if isinstance(payload, dict):
        inner = payload.get("error")
        if isinstance(inner, list) and len(inner) == 1:
            inner = inner[0]  # Cloudflare's
        if isinstance(inner, dict):
            yield inner
        yield payload


def _code(payload: object, header: str | None = None) -> str | None:
    """The machine code of an error: the most specific of all its codes, else the first.

    `header` is what AWS names the error, where the body does not.
    """
    given: list[str] = []
    for error in _errors(payload):
        reason = _gateway_reason(error, payload) or _reason(error) or _too_long(error)
        if reason is not None:
            return reason
        metadata = error.get("metadata")
        typed = metadata.get("error_type") if isinstance(metadata, dict) else None
        values = (typed, error.get("code"), error.get("type"), _aws_name(error.get("__type")))
        given += [str(value) for value in values if isinstance(value, str | int)]
    if (named := _aws_name(header)) is not None:
        given.append(named)
    for known in (_CODES, _CODES_ALONE):
        for code in given:
            if code in known:
                return code
    return given[0] if given else None


def _aws_name(name: object) -> str | None:
    """The error's name without the namespace before and the address behind it that AWS may write."""
    return name.rpartition("#")[2].partition(":")[0] if isinstance(name, str) else None


def _gateway_reason(error: Mapping[str, Any], payload: object) -> str | None:
    """What gateways say in other places than a code: filters that would otherwise blame the key, and budgets."""
    if isinstance(payload, dict) and payload.get("success") is False and error.get("code") in _BLOCKED:
        return "content_filter"  # Cloudflare
    metadata = error.get("metadata")
    if not isinstance(metadata, dict):
        return None
    if "flagged_input" in metadata or "patterns" in metadata:
        return "content_filter"  # OpenRouter's moderation, and its guard against injected prompts
    for name in ("reason", "limit_source"):
        if isinstance(metadata.get(name), str) and metadata[name] in _CODES:
            return str(metadata[name])  # OpenRouter's 402 until the calls in flight are settled, and used-up budgets
    return None


def _reason(error: Mapping[str, Any]) -> str | None:
    """What the details of Google's errors say beyond the status: a refused key comes with 400.

    An exhausted daily limit is a quota: a wait of seconds does not help, whatever RetryInfo contains.
    """
    for detail in _objects(error.get("details")):
        for violation in _objects(detail.get("violations")):
            if "PerDay" in str(violation.get("quotaId")):
                return "insufficient_quota"
        if isinstance(detail.get("reason"), str) and detail["reason"] in _CODES:
            return str(detail["reason"])
    return None


def _too_long(error: Mapping[str, Any]) -> str | None:
    """The code of a prompt beyond the context, where a server says so in another place than a code."""
    message = error.get("message")
    if error.get("param") == "input_tokens":  # vLLM's
        return _TOO_LONG_CODE
    if isinstance(message, str) and (_TOO_LONG.fullmatch(message) or _TOO_LONG_CLASS.match(message)):
        return _TOO_LONG_CODE
    return None


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _message(payload: object) -> str:
    for error in _errors(payload):
        for name in ("message", "error", "detail"):
            value = error.get(name)
            if isinstance(value, str) and value.strip():
                return value
    return ""
