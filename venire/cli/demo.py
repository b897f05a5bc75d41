"""`venire demo`: a complete campaign without any key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from venire.arena.campaigns import CampaignSettings


def demo(
    folder: Path = typer.Option(Path("venire-demo"), "--folder", help="Where to write the campaign and its store."),
    speed: float = typer.Option(150.0, "--speed", min=0.0, help="Divide the simulated judges' latency by this."),
) -> None:
    """Run a complete campaign without any key.

    Two simulated judges over HTTP, six contestants of planted strength, rate limits and retries.

    Examples:
      venire demo
      venire demo --folder /tmp/demo --speed 1000
    """
    from importlib.resources import files

    from venire.arena.errors import InputError
    from venire.configs.loading import load_campaign
    from venire.embedded import Embedded, even_faults
    from venire.render.outcome import show_next_steps, show_outcome
    from venire.render.plan import show_plan
    from venire.render.screen import console
    from venire.session import Session

    screen = console()
    folder.mkdir(parents=True, exist_ok=True)
    room = files("venire.configs.demo")
    texts = {
        name: room.joinpath(name).read_text(encoding="utf-8")
        for name in ("campaign.toml", "instructions.jsonl", "completions.jsonl", "elo.csv")
    }
    for name, text in texts.items():
        path = folder / name
        if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
            raise InputError(f"{path} is there and is not the demo's: name another folder with --folder")
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    campaign = load_campaign(folder / "campaign.toml")
    _start_anew(campaign)
    with Session(campaign) as session:
        screen.print(f"venire demo  in {folder}/\n")
        show_plan(screen, session, session.forecast())
        code = show_outcome(session, screen, Embedded(speed, even_faults(0.05)))
        show_next_steps(screen, folder, campaign)
    raise typer.Exit(code)


def _start_anew(campaign: CampaignSettings) -> None:
    """Drop the store of a finished demo; an interrupted one goes on, and a store that holds anything else stays."""
    from venire.storage.read import frames
    from venire.storage.store.opening import open_store

    if not campaign.store.exists():
        return
    with open_store(campaign.store) as store:
        there = frames.campaigns(store)
        own = [one.name for one in there] == [campaign.name]
        finished = own and frames.progress(store, there[0].id).missing == 0
    if finished:
        campaign.store.unlink()
