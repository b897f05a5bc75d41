"""`venire mock-provider`: the embedded judge server by itself, for trying a campaign without a key."""

from __future__ import annotations

from pathlib import Path

import typer


def mock_provider(
    file: Path = typer.Argument(..., help="A campaign file: its completions and Elo are what the judges know."),
    port: int = typer.Option(0, "--port", min=0, max=65_535, help="Port on 127.0.0.1; 0 takes a free one."),
    speed: float = typer.Option(1.0, "--speed", min=0.0, help="Divide the judges' latency by this; 0 is no waiting."),
    fault_rate: float = typer.Option(0.0, "--faults", min=0.0, max=1.0, help="Share of requests that fail at first."),
    seed: int = typer.Option(0, "--seed", help="Seed of the faults."),
    cache_prompts: int = typer.Option(
        0, "--cache-prompts", min=0, help="Cache prompts: so many blocks of 128 tokens for each key; 0 is no cache."
    ),
    batch_seconds: float = typer.Option(
        0.0, "--batch-seconds", min=0.0, help="Time that a batch takes, at speed 1; 0 ends it at the first question."
    ),
    batch_faults: float = typer.Option(
        0.0,
        "--batch-faults",
        min=0.0,
        max=1.0,
        help="Share of a batch's lines that fail, expire or get lost at first, and of downloads that are damaged.",
    ),
    ledger: Path | None = typer.Option(None, "--ledger", help="Append every request to this file as JSON lines."),
) -> None:
    """Serve simulated judges until Ctrl-C.

    An OpenAI-compatible API and Anthropic's Messages, with their batches; its models are called
    simulated/<profile>@<seed>.

    Examples:
      venire mock-provider first/campaign.toml --port 8080
      venire mock-provider first/campaign.toml --faults 0.1 --speed 0 --ledger requests.jsonl
      venire mock-provider first/campaign.toml --batch-seconds 30 --batch-faults 0.1
    """
    import asyncio
    import contextlib
    import signal

    from venire.configs.loading import load_campaign
    from venire.embedded import answer_key, even_faults
    from venire.simulation.batches import BatchFaults
    from venire.simulation.prefix_cache import CacheSize
    from venire.simulation.server import JudgeServer

    key = answer_key(load_campaign(file))
    server = JudgeServer(
        key,
        port=port,
        speed=speed,
        seed=seed,
        faults=even_faults(fault_rate),
        ledger_path=ledger,
        cache=CacheSize(cache_prompts) if cache_prompts else None,
        batch_faults=BatchFaults.even(batch_faults, batch_seconds),
    )

    async def serve() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        async with server:
            typer.echo(f"base_url = {server.base_url!r}   {len(key)} completions known; Ctrl-C ends it")
            with contextlib.suppress(asyncio.CancelledError):
                await stopped.wait()

    asyncio.run(serve())
