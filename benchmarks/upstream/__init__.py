"""The endpoint of the benchmarks, in a separate process: `upstream.c`, compiled at its first use."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

__all__ = ["Missing", "certificate", "counts", "running"]

_SOURCE = Path(__file__).with_name("upstream.c")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "venire-bench"


class Missing(Exception):
    """A requirement of a benchmark is missing on this machine; the message names what to install."""


def _made(tls: bool) -> Path:
    """The program, compiled if the cache has none for this source. Raises Missing without a compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    name = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16] + ("-tls" if tls else "")
    program = _CACHE / f"upstream-{name}"
    if program.exists():
        return program
    if compiler is None:
        raise Missing("the benchmarks' endpoint is a C program and there is no C compiler: install cc, gcc or clang")
    _CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as scratch:
        made = Path(scratch) / "upstream"
        libraries = ["-DWITH_TLS", "-lssl", "-lcrypto"] if tls else []
        done = subprocess.run(
            [compiler, "-O2", "-o", str(made), str(_SOURCE), *libraries, "-lm"], capture_output=True, text=True
        )
        if done.returncode:
            wanted = "OpenSSL's headers (libssl-dev)" if tls else "a C library for Linux"
            raise Missing(f"the benchmarks' endpoint could not be compiled; it needs {wanted}:\n{done.stderr[-500:]}")
        made.rename(program)
    return program


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key, created in a folder. Raises Missing without `openssl`."""
    if shutil.which("openssl") is None:
        raise Missing("the row over TLS needs the command openssl for a certificate")
    paths = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
    # Not a CA certificate, openssl's default: rustls does not accept one from a server.
    extension = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    names = ["-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run([*command.split(), *extension, *names], check=True, capture_output=True)
    return paths


@contextlib.contextmanager
def running(
    latency: float,
    *,
    spread: float = 0.5,
    core: int | None = None,
    tls: tuple[Path, Path] | None = None,
    refused: float = 0.0,
    retry_after: int | None = None,
) -> Iterator[str]:
    """The base URL of an endpoint that answers after `latency` seconds, give or take a share `spread` of it.

    It runs on the given core, or on any. With `tls`, a certificate and its key, it uses TLS. A random share `refused`
    of the calls gets a 429 at once, with a Retry-After in seconds or none. Raises Missing where it cannot be compiled.
    """
    command = [str(_made(tls is not None)), "-l", str(1000 * latency), "-s", str(spread), "-r", str(refused)]
    if retry_after is not None:
        command += ["-a", str(retry_after)]
    if tls is not None:
        command += ["-c", str(tls[0]), "-k", str(tls[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            port = int(process.stdout.readline())
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def counts(base_url: str, trust: Path | None = None) -> dict[str, Any]:
    """The counts of an endpoint so far.

    `calls`, those `answered` and `refused`, `bytes` of their bodies, `in_flight` now, the `most` at one time, `first`
    and `last`, the time of day of those calls, `cpu`, its own CPU seconds, and `lanes`: for each that was asked its
    number, calls, answered calls and time of its last call. `trust` is the certificate if it uses TLS.
    """
    context = None if trust is None else ssl.create_default_context(cafile=str(trust))
    with urlopen(f"{base_url}/count", timeout=30, context=context) as answer:
        found: dict[str, Any] = json.load(answer)
    return found
