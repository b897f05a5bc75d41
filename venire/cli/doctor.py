"""`venire doctor`: keys, endpoints, prices and the machine, looked over before a campaign needs them."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from venire.cli.options import JSON, EnvFile, Yes


def doctor(
    file: Path | None = typer.Argument(None, help="A campaign file; without it, the machine alone is looked over."),
    yes: Yes = False,
    env_file: EnvFile = None,
    as_json: bool = JSON,
) -> None:
    """Check keys, endpoints, prices and this machine beforehand.

    Of the machine: clock, disk, limits, and what is said of proxies. Every endpoint is sent one call of a few tokens if
    you agree. It counts to no budget, and no store keeps it.

    Exit codes: 0 all is well or only warned of, 1 a problem, 2 input.

    Examples:
      venire doctor                              # the machine alone
      venire doctor first/campaign.toml          # asks before it calls the endpoints
      venire doctor first/campaign.toml --yes --json
    """
    from dataclasses import asdict

    from venire.arena.wording import money
    from venire.cli.options import environment, write_json
    from venire.configs.loading import load_campaign
    from venire.doctor import (
        HealthFinding,
        ask_endpoints,
        endpoints_to_ask,
        examine_campaign,
        examine_machine,
        highest_price,
    )
    from venire.render.doctor import show_health
    from venire.render.screen import console

    environ = environment(env_file)
    found: list[HealthFinding] = []
    left = 0
    if file is None:
        found += examine_machine(Path.cwd())
    else:
        campaign = load_campaign(file)
        found += examine_machine(campaign.store.parent, campaign)
        found += examine_campaign(campaign, environ)
        if asked := endpoints_to_ask(campaign, environ):
            calls = "1 call" if len(asked) == 1 else f"{len(asked)} calls"
            cost = money(highest_price(asked))
            if yes or (
                sys.stdin.isatty() and typer.confirm(f"Send {calls} of a few tokens, {cost} at most?", err=True)
            ):
                found += ask_endpoints(campaign, asked, environ)
            else:
                left = len(asked)
    if as_json:
        write_json({"findings": [asdict(one) for one in found], "endpoints_not_asked": left})
    else:
        show_health(console(), found, left)
    raise typer.Exit(int(any(one.state == "problem" for one in found)))
