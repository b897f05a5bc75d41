"""`venire demo`: a complete campaign without any key."""

from __future__ import annotations

from pathlib import Path

import typer

__all__ = ["demo"]


def demo(
    folder: Path = typer.Option(Path("venire-demo"), "--folder", help="Where to write the campaign and its store."),
    speed: float = typer.Option(150.0, "--speed", help="Divide the simulated judges' latency by this."),
) -> None:
    """Run a complete campaign without any key.

    Two simulated judges over HTTP, six contestants of planted strength, rate limits and retries."""
    from importlib.resources import files

    from venire.configs.loading import load_campaign
    from venire.screen import console
    from venire.session import Embedded, Session, even_faults
    from venire.show import show_next_steps, show_outcome, show_plan

    screen = console()
    folder.mkdir(parents=True, exist_ok=True)
    room = files("venire.configs.demo")
    for name in ("campaign.toml", "instructions.jsonl", "completions.jsonl", "elo.csv"):
        (folder / name).write_text(room.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
    campaign = load_campaign(folder / "campaign.toml")
    with Session(campaign) as session:
        finished = session.accounts.calls > 0 and session.progress.missing == 0
    if finished:  # an interrupted demo goes on; a finished one is shown from the start
        campaign.store.unlink()
    with Session(campaign) as session:
        screen.print(f"venire demo  in {folder}/\n")
        show_plan(screen, session)
        code = show_outcome(session, screen, Embedded(speed, even_faults(0.05)))
        show_next_steps(screen, folder, campaign)
    raise typer.Exit(code)
