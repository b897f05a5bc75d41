"""Campaigns whose judges are asked in waves: the real engine, beside a simulated provider on loopback with a ledger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.demo import DATA, demo_key
from tests.stores import rows_of
from venire.arena.campaigns import BATCH_PART, CampaignSettings, TokenPrice
from venire.arena.clock import SystemClock
from venire.configs.loading import in_batches, load_campaign
from venire.orchestrator.recording.ending import CampaignSummary
from venire.orchestrator.recording.events import Event, Events
from venire.orchestrator.run.run_setup import Polling
from venire.session import Session
from venire.simulation.batch_forms import FormReply, OpenAIForm
from venire.simulation.batches import BatchFaults
from venire.simulation.server import JudgeServer, serve_in_thread

PRICE = TokenPrice(1_000_000_000, 4_000_000_000)

_HEAD = f"""
name = "waves"
seed = 7{DATA}"""
_PLAN = '[plan]\npolicy = "all-pairs"\ninstructions = 1\n'
_JUDGE = """
[[judge]]
name = "{name}"
model = "simulated/{model}@1"
base_url = "{address}"
price = {{ input = 1.0, output = 4.0 }}
{more}
"""

_BATCHES_ALONE = re.compile(
    r"^(?:(?:transport|wave_size|max_wait|after_wait|batch_price|max_attempts|money) =.*|\[budget\])?\n", re.MULTILINE
)
"""Lines of a campaign file that change no verdict of one that ends."""
_LIVE: dict[str, list[tuple[Any, ...]]] = {}
"""The verdicts of campaigns that were asked live, by the text of their file."""


@dataclass
class Ran:
    """One start of a campaign: how it ended, what it warned of, and its events."""

    summary: CampaignSummary
    warnings: list[str]
    events: list[Event]

    @property
    def ending(self) -> str:
        return self.summary.ending.value

    def said(self, part: str) -> str:
        """The one warning with these words; all of them where it is not one."""
        found = [one for one in self.warnings if part in one]
        assert len(found) == 1, self.warnings
        return found[0]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Its events of one kind."""
        return [dict(one.fields) for one in self.events if one.name == kind]


@dataclass
class Waves:
    """Writes campaigns, starts them, and reads their books; `server` is the provider of those started last."""

    folder: Path
    stack: ExitStack
    server: JudgeServer = field(init=False)
    answers: Callable[[dict[str, Any]], Any] = lambda line: line
    """Changes each line of a file of answers in OpenAI's form before it is handed out: None leaves it out, bytes are
    handed out as they are."""
    stop: Callable[[], None] = lambda: None
    """Stops the campaign that was started last gently, as Ctrl-C does."""

    def serve(self, *, speed: float = 0.0, seed: int = 3, require_key: str | None = None, **faults: Any) -> JudgeServer:
        """A new simulated provider, without waiting; options are those of `BatchFaults`."""
        server = JudgeServer(
            demo_key(), speed=speed, seed=seed, require_key=require_key, batch_faults=BatchFaults(**faults)
        )
        self.server = self.stack.enter_context(serve_in_thread(server))
        return self.server

    def judge(self, name: str = "judge", more: str = 'transport = "batch"', *, model: str = "gpt-4-0613") -> str:
        """The table of a judge that asks the server; batched unless told otherwise."""
        return _JUDGE.format(name=name, model=model, address=self.server.base_url, more=more)

    def write(self, *judges: str, name: str = "waves", plan: str = _PLAN, more: str = "") -> Path:
        """A campaign file of its own folder: one judge in batches, 30 trials, unless told otherwise."""
        path = self.folder / name / "campaign.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(_HEAD + plan + "".join(judges or (self.judge(),)) + more, encoding="utf-8")
        return path

    def start(
        self,
        path: Path,
        *,
        detach: bool = False,
        amend: bool = False,
        batch: Sequence[str] = (),
        longest: float = 0.01,
        stop_when: Callable[[Any], bool] | None = None,
        change: Callable[[CampaignSettings], CampaignSettings] = lambda one: one,
    ) -> Ran:
        """Start a campaign and wait for its end; `stop_when` is shown the progress, and says when to stop it gently."""
        warnings: list[str] = []
        events: list[Event] = []
        asked = [stop_when]

        def ready(stop: Callable[[], None]) -> None:
            self.stop = stop

        def progress(now: Any) -> None:
            if asked[0] is not None and asked[0](now):
                asked[0] = None
                self.stop()

        clock = SystemClock()
        campaign = change(in_batches(load_campaign(path), batch))
        with Session(campaign, clock=clock, amend=amend) as session:
            summary = session.run(
                environ={"ANTHROPIC_KEY": "sk-ant-very-secret", "OTHER_KEY": "sk-very-secret-1234"},
                warn=warnings.append,
                progress=progress,
                ready=ready,
                polling=Polling(longest, detach=detach),
                events=Events(clock, [events.append], warn=warnings.append),
                group_seconds=0.001,
            )
        return Ran(summary, warnings, events)

    def query(self, path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a campaign's store."""
        return rows_of(path.with_suffix(".duckdb"), sql, *values)

    def verdicts(self, path: Path) -> list[tuple[Any, ...]]:
        """What was judged, and how, without what differs from run to run."""
        return self.query(
            path,
            "select judge, instruction_id, model_a, model_b, swapped, repeat, status, winner, score_difference "
            "from battle order by all",
        )

    def live_verdicts(self, path: Path) -> list[tuple[Any, ...]]:
        """What was judged where the same campaign is asked live at another provider, with money and attempts enough.

        Each such campaign is run once, by the first test that compares with it.
        """
        server, text = self.server, _BATCHES_ALONE.sub("", path.read_text(encoding="utf-8"))
        campaign = text.replace(server.base_url, "")
        if campaign not in _LIVE:
            other = self.folder / "live" / "campaign.toml"
            other.parent.mkdir()
            other.write_text(text.replace(server.base_url, self.serve().base_url), encoding="utf-8")
            assert self.start(other).ending == "complete"
            self.server, _LIVE[campaign] = server, self.verdicts(other)
        return _LIVE[campaign]

    def books(self, path: Path, *, price: TokenPrice | None = None) -> None:
        """What is on record is what the provider's ledger says, and is paid exactly at the batch price."""
        asked = (
            "select lower(hex(t.trial_key)) || '-' || a.step, count(*) from attempt a join trial t on t.id = a.trial "
            "where a.http_status is not null or a.fault = 0 group by all"
        )
        entries = self.server.ledger.entries
        assert dict(self.query(path, asked)) == Counter(one.key for one in entries)
        rate = price or PRICE.times(BATCH_PART)
        owed = sum(rate.cost(*one.billed) for one in entries if one.billed is not None)
        assert self.query(path, "select sum(cost), count(*) filter (where cost is null) from attempt") == [(owed, 0)]
        numbers = "select count(*) from (select trial, step, number from attempt group by all having count(*) > 1)"
        assert self.query(path, numbers) == [(0,)]

    def submissions(self, path: Path) -> list[tuple[int, str]]:
        """Lines and last event of every submission, in the order written."""
        return self.query(
            path,
            "select s.lines, (select arg_max(e.kind, e.rowid) from submission_event e where e.submission = s.id) "
            "from submission s order by s.id",
        )


@pytest.fixture
def waves(demo_is_imported: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Waves]:
    """Campaigns in a folder of the test's own."""
    content = OpenAIForm.content

    def changed(self: OpenAIForm, id: str) -> FormReply:
        reply = content(self, id)
        if made.answers is Waves.answers:
            return reply
        lines = (made.answers(orjson.loads(raw)) for raw in reply.body.splitlines())
        given = (line if isinstance(line, bytes) else orjson.dumps(line) for line in lines if line is not None)
        return replace(reply, body=b"".join(line + b"\n" for line in given))

    monkeypatch.setattr(OpenAIForm, "content", changed)
    with ExitStack() as stack:
        made = Waves(tmp_path, stack)
        made.serve()
        yield made
