"""The contract of a batch interface: a server on loopback plays what its vendor documents.

A replay is a mapping, such as the JSON files of `tests/judges/providers/batches/vendors`; a request is written as
`GET /v1/batches`, without its query.

- `form`, `base_url` and `since`: the form's name, the vendor's address, and the day on which its batches were made.
- `limits`: lines and bytes of a batch, at most. `body` and `line`: a request's body, and its line with id `line-1`.
- `submitted`: the steps that submit a wave `wave-1` of one line (`large`: of 101). Each has the `request`, its `answer`
  (with `status` and `answer_headers`), and what is sent: a `body`, a `form` (fields beside the file) or `wave` (the
  file alone), and `headers`; `keyless` where the key is not sent.
- `states`: batches as they are `shown`, with their `state`, `problem`, `may_pass`, `cancelling` and counts. `status`
  and `cancel`: the requests about such a batch; `cancelled`: the answer to the second, where it is another.
- `list`, `query` and `page`: the request for batches, its query and its answer, in which `list` names the member that
  holds them; `others`: answers to the further requests.
- `answered` and `files`: a batch that has ended, and the lines of each file of its answers, by request. `answers`: what
  is read from these, as an id with a text, with the name of a fault, or with null where the line was not asked.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email import message_from_bytes
from email.policy import HTTP
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from venire.arena.errors import CallError, Fault
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.batches.base import BatchProvider, BatchState
from venire.testing.loopback import KEY, Answer, ScriptedServer, serving

_KEYS = (
    "base_url",
    "since",
    "limits",
    "body",
    "line",
    "submitted",
    "states",
    "status",
    "cancel",
    "list",
    "page",
    "query",
    "answered",
    "files",
    "answers",
)
_ENDS = {BatchState.RUNNING, BatchState.ENDED}
_LARGE = 101
_SECONDS = 20.0


async def check_form(name: str, form: str, replay: Mapping[str, Any]) -> None:
    """Check one form of a provider's batch interfaces against what its vendor documents.

    Its limits and its requests are the documented ones; every state is understood; a batch is found in the list by its
    name and time; answers are read line by line; a batch is cancelled; a refusal is the fault that it is of any call,
    and the key is in no error or answer. Raises AssertionError with the broken rule.
    """
    where = f"{name}: batch interface {form!r}"
    lacking = [key for key in _KEYS if key not in replay]
    assert not lacking, f"{where}: its replay has no {lacking[0]!r}"
    known = {BatchState(one["state"]) for one in replay["states"]}
    assert known >= _ENDS, f"{where}: its replay shows no batch that is {(_ENDS - known).pop().value}"
    for check in _CHECKS:
        async with serving() as server:
            address = f"{server.origin}{urlsplit(replay['base_url']).path}"
            batches = PROVIDERS[name].batches[form](Endpoint(address, KEY, _SECONDS, 4))
            try:
                with tempfile.TemporaryDirectory() as folder:
                    await check(_PlayedForm(where, replay, batches, server, Path(folder) / "wave.jsonl"))
            except (AttributeError, CallError, LookupError, NotImplementedError, TypeError, ValueError) as error:
                raise AssertionError(f"{where}: {check.__name__.removeprefix('_check_')}: {error!r}") from error
            finally:
                await batches.close()


@dataclass(frozen=True, slots=True)
class _PlayedForm:
    """A batch interface, its vendor's replay and the server that plays it, and a file for a wave."""

    where: str
    replay: Mapping[str, Any]
    batches: BatchProvider
    server: ScriptedServer
    wave: Path

    def answer(self, known: Mapping[str, Any]) -> None:
        """Answer requests with these JSON values, and others with status 404."""
        self.server.answer = lambda asked: _json(known[asked]) if asked in known else _json({"asked": asked}, 404)

    def write(self) -> bytes:
        line = self.batches.line("line-1", json.dumps(self.replay["body"], separators=(",", ":")).encode())
        content = (line + b"\n") * (_LARGE if self.replay.get("large") else 1)
        self.wave.write_bytes(content)
        return content


def _json(shown: object, status: int = 200, headers: Mapping[str, str] = {}) -> Answer:
    return status, dict(headers), json.dumps(shown).encode()


async def _check_facts(form: _PlayedForm) -> None:
    limits = [form.batches.limits.lines, form.batches.limits.bytes]
    assert limits == form.replay["limits"], f"{form.where}: its limits are {limits}, not {form.replay['limits']}"
    line = json.loads(form.write().splitlines()[0])
    assert line == form.replay["line"], f"{form.where}: its line is {line}, not {form.replay['line']}"
    assert KEY not in repr(form.batches), f"{form.where}: the key is in its repr"


async def _check_submitted(form: _PlayedForm) -> None:
    steps, content = form.replay["submitted"], form.write()

    def answer(asked: str) -> Answer:
        step = steps[len(form.server.received) - 1]
        if asked != step["request"]:
            return _json({"error": {"message": f"{asked} in place of {step['request']}"}}, 404)
        headers = {
            key: value.format(origin=form.server.origin) for key, value in step.get("answer_headers", {}).items()
        }
        return _json(step["answer"], step.get("status", 200), headers)

    form.server.answer = answer
    status = await form.batches.submit("wave-1", "judge", form.wave)
    assert status.state is BatchState.RUNNING, f"{form.where}: what was submitted is {status.state.value}"
    assert status.name == _name(form), f"{form.where}: what was submitted has the name {status.name!r}"
    assert len(form.server.received) == len(steps), f"{form.where}: {len(form.server.received)} requests submit a wave"
    for step, (head, body) in zip(steps, form.server.received, strict=True):
        keyless = step.get("keyless", False)
        assert (KEY in head) is not keyless, f"{form.where}: {step['request']}: the key is in a header: {keyless}"
        sent = message_from_bytes(head.partition("\r\n")[2].encode() + b"\r\n" + body, policy=HTTP)
        wrong = [key for key, value in step.get("headers", {}).items() if sent[key] != value]
        assert not wrong, f"{form.where}: {step['request']}: the header {wrong[0]!r} is {sent[wrong[0]]!r}"
        if "form" in step:
            parts = {str(one.get_param("name", header="content-disposition")): one for one in sent.iter_parts()}
            given: object = {key: _payload(part) for key, part in parts.items()}
            expected: object = {key: value.encode() for key, value in step["form"].items()} | {"file": content}
        else:
            given, expected = (body, content) if "wave" in step else (json.loads(body), step["body"])
        assert given == expected, f"{form.where}: {step['request']} sends {given!r}"


def _payload(part: Any) -> Any:
    return part.get_payload(decode=True)


async def _check_states(form: _PlayedForm) -> None:
    for one in form.replay["states"]:
        form.answer({form.replay["status"]: one["shown"]})
        status = await form.batches.status(_id(one["shown"]))
        wanted = {"problem": "", "may_pass": False, "cancelling": False, **one, "id": _id(one["shown"])}
        wanted["state"] = BatchState(one["state"])
        wanted.pop("shown")
        for key, value in wanted.items():
            read = getattr(status, key)
            assert read == value, (
                f"{form.where}: a batch that is {one['state']} is read with {key} {read!r}, not {value!r}"
            )
        assert _is_recent(form, status.created_at), f"{form.where}: a batch was made at {status.created_at}"


async def _check_list(form: _PlayedForm) -> None:
    page = dict(form.replay["page"])
    member, batch, since = page.pop("list"), form.replay["states"][0]["shown"], _since(form)
    known = {form.replay["list"]: [batch] if member is None else {**page, member: [batch]}}
    known |= form.replay.get("others", {})
    for name in ("wave-1", "wave-2"):
        form.answer(json.loads(json.dumps(known).replace("wave-1", name)))
        listed = await form.batches.batches(since)
        names = [one.name for one in listed]
        assert names == [_name(form, name)], f"{form.where}: a list with a batch {name!r} is read as {names}"
        assert _is_recent(form, listed[0].created_at), f"{form.where}: a batch was made at {listed[0].created_at}"
    query = dict(parse_qsl(urlsplit(form.server.received[0][0].split()[1]).query))
    assert query == form.replay["query"], f"{form.where}: its list is asked for with {query}"
    later = await form.batches.batches(since + timedelta(days=1))
    assert not later, f"{form.where}: batches are listed that were made before the time asked for"


async def _check_answers(form: _PlayedForm) -> None:
    batch, expected = form.replay["answered"], form.replay["answers"]
    reply = next(text for _, text in expected if text is not None and text not in Fault.__members__)

    def answer(asked: str) -> Answer:
        if asked not in form.replay["files"]:
            return _json(batch if asked == form.replay["status"] else {"asked": asked}, 200)
        lines = "".join(f"{json.dumps(line)}\n" for line in form.replay["files"][asked])
        return 200, {}, lines.replace(reply, f"{reply}{KEY}").encode()

    form.server.answer = answer
    found: list[list[str | None]] = []
    async for one in form.batches.answers(_id(batch)):
        assert KEY not in one.text, f"{form.where}: the key is in an answer"
        try:
            text = None if one.status is None else form.batches.read(one, b"{}").text.replace("[redacted]", "")
        except CallError as error:
            text = error.fault.name
        found.append([one.custom_id, text])
    assert found == expected, f"{form.where}: its answers are read as {found}, not {expected}"
    assert all(KEY in head for head, _ in form.server.received), f"{form.where}: asks for answers without the key"


async def _check_cancel(form: _PlayedForm) -> None:
    shown = next((one["shown"] for one in form.replay["states"] if one.get("cancelling")), None)
    assert shown is not None, f"{form.where}: its replay shows no batch that is being cancelled"
    cancel = form.replay["cancel"]
    form.answer({form.replay["status"]: shown, cancel: form.replay.get("cancelled", shown)})
    status = await form.batches.cancel(_id(shown))
    assert status.cancelling, f"{form.where}: a batch that is being cancelled is {status}"
    asked = form.server.received[0][0].partition(" HTTP/")[0]
    assert asked == cancel, f"{form.where}: a batch is cancelled by {asked}, not {cancel}"


async def _check_faults(form: _PlayedForm) -> None:
    form.write()
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: form.batches.submit("wave-1", "judge", form.wave),
        lambda: form.batches.batches(_since(form)),
        lambda: form.batches.status("b"),
        lambda: form.batches.cancel("b"),
    )
    for status, fault in ((401, Fault.AUTHENTICATION), (500, Fault.TRANSIENT)):
        form.server.answer = _json({"error": {"message": f"{KEY} is wrong"}}, status)
        for call in calls:
            raised: CallError | None = None
            try:
                await call()
            except CallError as error:
                raised = error
            assert raised is not None, f"{form.where}: status {status} is taken for an answer"
            assert raised.fault is fault, f"{form.where}: status {status} is {raised.fault.name}, not {fault.name}"
            assert KEY not in str(raised), f"{form.where}: the key is in an error"


_CHECKS = (
    _check_facts,
    _check_submitted,
    _check_states,
    _check_list,
    _check_answers,
    _check_cancel,
    _check_faults,
)


def _since(form: _PlayedForm) -> datetime:
    return datetime.fromisoformat(form.replay["since"])


def _is_recent(form: _PlayedForm, made: datetime | None) -> bool:
    return made is not None and timedelta(0) <= made - _since(form) < timedelta(days=1)


def _id(shown: Mapping[str, Any]) -> str:
    return str(shown.get("id", shown.get("name")))


def _name(form: _PlayedForm, name: str = "wave-1") -> str:
    """What the vendor keeps of a batch's name."""
    return name if form.batches.keeps_names else ""
