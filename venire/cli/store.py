"""`venire store`: look a store over, copy it, rewrite it, put several together."""

from __future__ import annotations

from pathlib import Path

import typer

from venire.arena.wording import suggest
from venire.cli.help import Verb, VerbGroup
from venire.cli.options import JSON, STORE, named_stores
from venire.cli.status import status

app = typer.Typer(cls=VerbGroup, help="Look after stores: check, back up, compact, merge.", no_args_is_help=True)

_FORCE = typer.Option(False, "--force", help="Replace what is there already.")


@app.callback()
def _group() -> None:
    """Look after stores: check, back up, compact, merge."""


app.command("status", cls=Verb, hidden=True)(status)


@app.command(cls=Verb)
def check(
    store: Path = STORE,
    full: bool = typer.Option(False, "--full", help="Recompute every key, not those of some 2,000 rows of a kind."),
    as_json: bool = JSON,
) -> None:
    """Look a store over and change nothing in it.

    Exit codes: 0 all is well, 1 something is wrong and named.

    Examples:
      venire store check first
      venire store check first/campaign.duckdb --full
    """
    from dataclasses import asdict

    from venire.cli.options import write_json
    from venire.render.screen import console
    from venire.storage.care.checking import check as look

    found = look(store, full=full)
    if as_json:
        write_json({"store": str(store), "sound": found.sound, **asdict(found)})
    else:
        from venire.render.store import show_checked

        show_checked(console(), store, found)
    if not found.sound:
        raise typer.Exit(1)


@app.command(cls=Verb)
def backup(
    store: Path = STORE,
    out: Path = typer.Option(..., "-o", "--out", help="The copy."),
    force: bool = _FORCE,
    as_json: bool = JSON,
) -> None:
    """Copy a store whole.

    The copy is verified, and only then gets its name. Works while a campaign runs: it writes nothing for the seconds
    that the copy takes, and goes on asking.

    Examples:
      venire store backup first -o copy.duckdb
      venire store backup first copy.duckdb --force
    """
    from dataclasses import asdict

    from venire.arena.errors import StoreHeldError
    from venire.cli.options import write_json
    from venire.live.client import Owner
    from venire.storage.care import maintenance

    try:
        made = maintenance.backup(store, out, force=force)
    except StoreHeldError:
        with Owner(store).hold() as held:
            made = maintenance.backup_held(store, out, held=held, force=force)
    if as_json:
        write_json({"store": str(store), **asdict(made)})
    else:
        typer.echo(f"{out}: {made.bytes / 1e6:,.1f} MB, whole up to batch {made.batch:,} of {store}")


@app.command("accept-loss", cls=Verb)
def accept_loss(store: Path = STORE) -> None:
    """Go on with a store whose log was cut or removed.

    Without the commits that were in it. Try to put the right files back first. Calls whose replies are gone count as
    paid, and are asked again.

    Examples:
      venire store check first                    # says what is missing
      venire store accept-loss first
    """
    from venire.arena.wording import money
    from venire.storage.store.opening import open_store

    with open_store(store, create=False, accept_loss=True) as opened:
        found = opened.recovered
    if not found.lost_commits:
        typer.echo(f"{store}: no commits are missing; nothing was done")
        return
    typer.echo(
        f"{store}: goes on without {found.lost_commits:,} commits; {found.calls:,} calls have no answer on record, and "
        f"{money(found.reserved)} for them count as spent"
    )


@app.command("release-unanswered", cls=Verb)
def release_unanswered(
    store: Path = STORE,
    campaign: str | None = typer.Option(None, "--campaign", help="Only this campaign; default: all of the store."),
) -> None:
    """Count calls without an answer as not paid.

    The provider did not charge for them. Such calls count as spent at their highest price, since a provider may have
    worked on a call that was cut. Look at its own account first: what it did charge, the campaign can spend once more.
    Calls stay on record.

    Examples:
      venire status first                          # says how much is set aside
      venire store release-unanswered first
    """
    from venire.arena.errors import InputError
    from venire.arena.wording import money, plain
    from venire.storage.plans.plans import release_unanswered as release
    from venire.storage.read import frames
    from venire.storage.store.opening import open_store
    from venire.wording import set_aside

    with open_store(store, create=False) as opened:
        there = {one.name: one.id for one in frames.campaigns(opened)}
        if campaign is not None and campaign not in there:
            raise InputError(f"the store {store} has no campaign {campaign!r}; {suggest(campaign, there)}")
        chosen = {name: number for name, number in there.items() if campaign in (None, name)}
        held = {name: frames.campaign_spending(opened, number).unanswered_tokens for name, number in chosen.items()}
        freed = {name: release(opened, number) for name, number in chosen.items()}
    for name, (calls, nano) in freed.items():
        if calls:
            amount = set_aside(nano, held[name]) or money(nano)
            what = f"{amount} set aside for {calls:,} calls without an answer no longer counts as spent"
            typer.echo(f"{plain(name)}: {what}")
    if not any(calls for calls, _ in freed.values()):
        typer.echo(f"{store}: nothing is set aside for calls without an answer; nothing was done")


@app.command(cls=Verb)
def compact(store: Path = STORE, as_json: bool = JSON) -> None:
    """Rewrite a store into a fresh file, which takes its place.

    Once it is whole and checked. Until then the disk needs room for both.

    Examples:
      venire store compact first
      venire store compact first/campaign.duckdb --json
    """
    from dataclasses import asdict

    from venire.cli.options import write_json
    from venire.storage.care import maintenance

    if not as_json and store.is_file():
        typer.echo(f"{store}: {store.stat().st_size / 1e6:,.1f} MB; as much room is needed until it is done", err=True)
    done = maintenance.compact(store)
    if as_json:
        write_json({"store": str(store), **asdict(done)})
    else:
        typer.echo(f"{store}: {done.before / 1e6:,.1f} MB before, {done.after / 1e6:,.1f} MB now, {done.rows:,} rows")


@app.command(cls=Verb)
def merge(
    stores: list[Path] = typer.Argument(
        ..., callback=named_stores, help="The stores to put together, or their campaign files; they are not changed."
    ),
    out: Path = typer.Option(..., "-o", "--out", help="The new store."),
    as_json: bool = JSON,
) -> None:
    """Put stores together into a new one.

    What is the same counts once, and nothing that was paid is lost.

    Examples:
      venire store merge one.duckdb two.duckdb -o both.duckdb
      venire store merge one two -o both.duckdb --json
    """
    from dataclasses import asdict

    from venire.cli.options import write_json
    from venire.render.screen import console
    from venire.storage.transfer.merging import merge as union

    made = union(stores, out)
    if as_json:
        write_json(asdict(made))
    else:
        from venire.render.store import show_merged

        show_merged(console(), made)
