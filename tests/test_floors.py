"""The house holds: every room imports its own floor and below, and each foreign library has one home."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("arena", "configs", "judges", "storage", "ratings", "orchestrator", "reports", "simulation", "pages", "venire")
BELOW = {
    "arena": set(),
    "configs": {"arena"},
    "judges": {"arena"},
    "storage": {"arena"},
    "ratings": {"arena"},
    "orchestrator": {"arena", "configs", "judges", "storage"},
    "reports": {"arena", "configs", "storage", "ratings"},
    "simulation": {"arena", "judges"},
    "pages": {"arena", "storage", "reports"},
    "venire": set(ROOMS),
}
HOMES = {
    "duckdb": ("storage/",),
    "pyarrow": ("storage/",),
    "pandas": ("storage/",),
    "polars": ("storage/",),
    "litellm": ("judges/providers/",),
    "tiktoken": ("judges/providers/",),
    "aiohttp": (
        "judges/providers/litellm.py",
        "simulation/server.py",
        "simulation/requests.py",
        "venire/live/server.py",
        "venire/live/pages.py",
        "venire/live/downloads.py",
        "venire/live/following.py",
    ),
    "altair": ("reports/charts.py",),
    "vl_convert": ("pages/chart_files.py",),
    "jinja2": ("pages/",),
    "markupsafe": ("pages/",),
    "markdown_it": ("pages/texts.py",),
    "nh3": ("pages/texts.py",),
    "ry": ("judges/providers/connections.py", "judges/providers/http_provider.py"),
    "tenacity": ("orchestrator/",),
    "asyncio_throttle": ("orchestrator/",),
    "scipy": ("ratings/",),
    "ray": ("orchestrator/engines/ray_",),
    "pydantic": ("configs/",),
    "dotenv": ("configs/",),
    "typer": ("venire/cli/",),
    "rich": ("venire/render/",),
    "uvloop": ("venire/",),
    "orjson": ("judges/providers/", "simulation/", "venire/telemetry/"),
    "opentelemetry": ("venire/telemetry/",),
    "prometheus_client": ("venire/telemetry/",),
}
ASYNC_HOMES = (
    "orchestrator/",
    "judges/providers/",
    "simulation/server.py",
    "simulation/requests.py",
    "simulation/direct.py",
    "venire/live/server.py",
    "venire/",
)
STANDARD_ONLY = "arena/"
PACKAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "arena": (
        ("errors", "choices", "clock", "records", "battles", "scale", "wording", "hints"),
        ("keywords",),
        ("keys", "registry", "shapes", "budgets"),
        ("campaigns",),
        ("planning",),
    ),
    "configs": (
        ("values", "demo", "env_file"),
        ("problems",),
        ("fields", "short_names"),
        ("schema",),
        ("settings", "checks"),
        ("loading",),
        ("publishing",),
    ),
    "judges": (
        ("providers", "safety", "parsing", "orientation"),
        ("conversation",),
        ("context_window",),
        ("prompts",),
        ("entry",),
        ("protocols",),
    ),
    "simulation": (
        ("judge", "prefix_cache", "chat_requests", "requests"),
        ("answer_key", "injections"),
        ("chat_replies",),
        ("comparisons", "grades", "contestants", "faults"),
        ("rehearsal", "ledger", "batches"),
        ("wire_forms",),
        ("batch_forms",),
        ("direct", "server"),
    ),
    "pages": (
        ("texts", "bars", "chart_files"),
        ("addresses", "charts"),
        ("context", "rendering"),
        ("views", "report_page"),
        ("registry",),
    ),
    "storage": (("store",), ("plans",), ("read",), ("care",), ("transfer",)),
    "orchestrator": (
        ("designs", "policies"),
        ("costs",),
        ("recording", "planning"),
        ("lanes",),
        ("engines",),
        ("run",),
    ),
    "ratings": (
        ("data",),
        ("pairwise",),
        ("inference",),
        ("voting", "agreement", "soft_elo", "am_elo", "diagnostics"),
        ("judges", "design", "peers"),
        ("methods",),
    ),
    "venire": (
        ("wording", "status", "loops", "endpoints", "prices", "feedback", "conversations"),
        ("annotation", "embedded"),
        ("live", "reading"),
        ("running",),
        ("session",),
        (
            "telemetry",
            "batches",
            "doctor",
            "placement",
            "experiments",
            "forecasts",
            "prompts",
            "pairs",
            "judging",
        ),
        ("render",),
        ("api", "testing"),
        ("cli",),
        ("__main__",),
    ),
}
"""Packages and modules of a room, the lowest first; each imports those of lower rows alone, for types as well."""
SLOW = ("litellm", "ray", "scipy.optimize", "scipy.stats")
"""Imported in the function that needs it: each takes the better part of a second or more of every command's start.

Ray is an extra as well: a module that imports it at its start could not be imported without it.
"""


@pytest.fixture(scope="module", autouse=True)
def no_garbage_is_collected() -> Iterator[None]:
    """The trees stay for all rules, and to look for garbage among them takes as long as to read them."""
    gc.disable()
    yield
    gc.enable()


@cache
def parse(source: str) -> ast.Module:
    """The tree of a file, read once for all rules."""
    return ast.parse(source)


def name_of(node: ast.AST) -> str:
    """The last name of a plain or dotted one; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Every node of a tree, for all rules."""
    return tuple(ast.walk(tree))


@cache
def imports(tree: ast.AST) -> tuple[tuple[int, str, bool], ...]:
    """Line, full name and whether it is for types alone, of every import, those inside functions too."""
    return tuple(each_import(tree))


def each_import(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    typed = {
        id(inner)
        for node in walk(tree)
        if isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, id(node) in typed
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                base = "." * node.level + (node.module or "")
                yield node.lineno, f"{base}.{alias.name}", id(node) in typed
        elif isinstance(node, ast.Call) and name_of(node.func) == "import_module":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value, False


def at_start(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that importing a file carries out: none inside functions, none for types alone."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Import | ast.ImportFrom):
            yield inner
        elif isinstance(inner, ast.If) and name_of(inner.test) == "TYPE_CHECKING":
            for other in inner.orelse:
                yield from at_start(other)
        elif not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from at_start(inner)


def violations(path: str, source: str) -> list[str]:
    """What a file of the house does that its room may not."""
    tree = parse(source)
    room = path.split("/")[0]
    found = []
    for line, name, typed in imports(tree):
        top, *rest = name.split(".")
        where = f"{path}:{line}"
        if name.startswith("."):
            found.append(f"{where}: relative import {name}")
        elif top in ROOMS and top != "venire":
            found.append(f"{where}: room under its bare name: {name}")
        elif top == "venire" and rest and rest[0] in ROOMS and rest[0] not in {room, *BELOW[room]}:
            found.append(f"{where}: {room} imports {rest[0]}, which is not below it")
        elif top == "venire" and room != "venire" and (not rest or rest[0] not in ROOMS):
            found.append(f"{where}: {room} imports the public interface: {name}")
        if top in HOMES and not path.startswith(HOMES[top]):
            found.append(f"{where}: {top} has its home in {', '.join(HOMES[top])}")
        if top == "aiohttp" and "web" in rest and path.startswith("judges/"):
            found.append(f"{where}: a server among the providers")
        if path.startswith(STANDARD_ONLY) and not standard(top) and not (top == "numpy" and typed):
            found.append(f"{where}: arena is standard library only, numpy for types alone: {name}")
    for node in at_start(tree):
        slow = [name for _, name, _ in imports(node) if name.startswith(SLOW)]
        found += [f"{path}:{node.lineno}: {name} slows every start" for name in slow]
    for node in walk(tree):
        concurrent = isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncWith | ast.AsyncFor)
        if concurrent and not path.startswith(ASYNC_HOMES):
            found.append(f"{path}:{node.lineno}: async outside its homes")
    return found


def standard(top: str) -> bool:
    import sys

    return top in sys.stdlib_module_names or top == "venire"


@cache
def house() -> tuple[tuple[str, str], ...]:
    """Path and text of every file of the product."""
    return tuple(each_file())


def each_file() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            path = file.relative_to(ROOT)
            if room == "venire" and len(path.parts) > 2 and path.parts[1] in ROOMS:
                continue  # a link to a room, read under the room's own name
            yield str(path), file.read_text(encoding="utf-8")


def test_every_file_keeps_to_its_floor() -> None:
    files = dict(house())
    assert len(files) > 50
    assert [fault for path, source in files.items() for fault in violations(path, source)] == []


def test_the_page_says_who_may_import_whom() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^ (\w+) +may import +(\w+(?:, \w+)*)", page)
    said = {room: set(below.split(", ")) for room, below in rows}
    assert said == {room: BELOW[room] for room in said} != {}
    homes = page.partition("Each large library")[2].partition("enforces all of this")[0]
    assert [
        home
        for library, places in HOMES.items()
        if re.search(rf"\b{library}\b", homes)
        for home in places
        if home.rstrip("/").removesuffix("ray_") not in homes
    ] == []


def climbs(room: str, files: dict[str, str]) -> list[str]:
    """Imports within a room that go sideways or upwards, and modules outside of its packages."""
    row = {package: number for number, packages in enumerate(PACKAGES[room]) for package in packages}
    found = []
    for path, source in files.items():
        top, *inner = path.removesuffix(".py").split("/")
        if top != room or inner == ["__init__"]:
            continue
        if inner[0] not in row:
            found.append(f"{path}: in none of the packages")
            continue
        for line, name, _ in imports(parse(source)):
            parts = name.split(".")
            if room == "venire" and parts[0] == "venire" and parts[1:] and parts[1] not in ROOMS:
                parts = ["venire", *parts]  # the room that needs no name of its own
            if parts[:2] == ["venire", room] and parts[2] != inner[0] and row.get(parts[2], 99) >= row[inner[0]]:
                found.append(f"{path}:{line}: {inner[0]} imports {name}, which is not below it")
    return found


@pytest.mark.parametrize("room", PACKAGES)
def test_packages_of_a_room_have_an_order(room: str) -> None:
    assert climbs(room, dict(house())) == []


def test_an_import_against_the_order_of_packages_is_seen() -> None:
    below = "from venire.ratings.data.result import Ratings"
    assert climbs("ratings", {"ratings/voting/kemeny.py": below}) == []
    for line in (
        "from venire.ratings.agreement.chance_corrected import kappa",
        "from venire.ratings import bradley_terry",
    ):
        assert len(climbs("ratings", {"ratings/voting/kemeny.py": line})) == 1
    assert climbs("ratings", {"ratings/kemeny.py": below}) == ["ratings/kemeny.py: in none of the packages"]
    assert climbs("venire", {"venire/session.py": "from venire.status import status_document"}) == []
    for line in ("from venire.render.plan import show_plan", "from venire import rate", "from venire.cli import run"):
        assert len(climbs("venire", {"venire/session.py": line})) == 1


def circle(files: dict[str, str]) -> list[str]:
    """Modules that import one another in a circle, types included; empty where there is none."""
    modules = {
        ("venire/" if not path.startswith("venire/") else "") + path.removesuffix(".py").removesuffix("/__init__"): path
        for path in files
    }
    edges = {}
    for name, path in modules.items():
        named = {one.replace(".", "/") for _, one, _ in imports(parse(files[path]))}
        edges[name] = {one if one in modules else one.rpartition("/")[0] for one in named} & modules.keys() - {name}
    try:
        tuple(TopologicalSorter(edges).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_one_another_in_a_circle() -> None:
    files = dict(house())
    assert circle(files) == []
    files["arena/errors.py"] += "\nfrom venire.arena.keys import trial_key\n"
    files["arena/keys.py"] += "\nfrom venire.arena.errors import InputError\n"
    assert set(circle(files)) == {"venire/arena/errors", "venire/arena/keys"}


def test_a_row_of_an_attempt_is_made_in_one_place() -> None:
    """The danger: live calls, actors and batches each fill such a row by hand, and the copies drift apart."""
    made = [
        path
        for path, source in house()
        if "AttemptRecord(" in source
        for node in walk(parse(source))
        if isinstance(node, ast.Call) and name_of(node.func) == "AttemptRecord"
    ]
    assert made == ["orchestrator/lanes/ledger.py"]


def test_only_a_face_lists_what_it_exports() -> None:
    """In a module the underscore says what is its own; a second list beside the names goes stale."""
    lists = [path for path, source in house() if not path.endswith("__init__.py") and "__all__" in source]
    assert lists == []


def test_a_class_name_is_unique_in_the_product() -> None:
    homes: dict[str, list[str]] = {}
    for path, source in house():
        for node in walk(parse(source)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_function_has_twelve_parameters() -> None:
    """What belongs together is a record, which is handed on as one."""
    wide = [
        f"{path}: {node.name}"
        for path, source in house()
        for node in walk(parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) >= 12
    ]
    assert wide == []


RETIRED = {
    "LEAST": "MIN",
    "MOST": "MAX",
    "ahead": "remaining battles",
    "apart": "components",
    "beliefs": "priors",
    "claim": "reservation",
    "deaf": "ignored options",
    "dearest": "max observed cost",
    "dressing": "prompt assembly",
    "hardening": "sanitize",
    "heard": "selected",
    "heaviest": "max observed tokens",
    "informing": "information gain",
    "looking": "interim",
    "persist": "retry call",
    "perturbing": "perturbation",
    "purse": "budget view",
    "seldom": "paused",
    "shed": "release memory",
    "spared": "uncounted",
    "spoken": "reply text",
    "standing": "state, progress, status",
    "steadiness": "robustness",
    "steerer": "feedback",
    "stir": "notify waiters",
    "suspicion": "injection detection",
    "telling": "events, report",
    "tell": "report, show",
    "told": "reported, given",
    "unread": "unparsed",
}
"""Words that were this project's alone, and the field's; none is part of a name in the product.

Upper-case words are those of constants. Keys of JSON documents and columns, which stay, are texts, not names.
"""


def retired(path: str, source: str) -> list[str]:
    """Names of modules, classes, functions, parameters, fields and constants that hold a retired word."""
    tree = parse(source)
    names = {path.removesuffix(".py").split("/")[-1]}
    for node in walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    names |= {one.id for node in tree.body if isinstance(node, ast.Assign) for one in node.targets if name_of(one)}
    return sorted(f"{path}: {name}" for name in names if not set(words(name)).isdisjoint(RETIRED))


def words(name: str) -> list[str]:
    """The words of a name: `_MIN_ROWS`, `min_rows` and `MinRows` have two; those of constants in upper case."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return parts if name.isupper() else [part.lower() for part in parts]


def test_names_are_the_field_s() -> None:
    assert [found for path, source in house() for found in retired(path, source)] == []
    assert retired("a.py", "_MOST_ROWS = 1") == ["a.py: _MOST_ROWS"]
    assert retired("a.py", "def f(told: int) -> None: ...") == ["a.py: told"]
    assert retired("a.py", "class Purse: ...\nMAX = 3\nat_most = 4") == ["a.py: Purse"]


PLANTED = [
    ("arena/keys.py", "import numpy"),
    ("arena/keys.py", "import orjson"),
    ("arena/keys.py", "from venire.storage.store.store import Store"),
    ("configs/schema.py", "from venire.judges import PROTOCOLS"),
    ("judges/protocols/two_stage/__init__.py", "from venire.storage.store.store import Store"),
    ("judges/protocols/two_stage/__init__.py", "async def parse() -> None: ..."),
    ("judges/protocols/two_stage/__init__.py", "import aiohttp"),
    ("judges/providers/openai.py", "from aiohttp import web"),
    ("judges/providers/openai.py", "from ry import Client"),
    ("judges/providers/connections.py", "import aiohttp"),
    ("storage/store/store.py", "from venire.ratings import scale"),
    ("storage/store/store.py", "async def write() -> None: ..."),
    ("storage/store/store.py", "import tenacity"),
    ("ratings/data/result.py", "from venire.storage.store.store import Store"),
    ("ratings/data/result.py", "def f() -> None:\n    import duckdb"),
    ("ratings/data/result.py", "from scipy.stats import norm"),
    ("ratings/data/result.py", "from scipy import optimize"),
    ("judges/providers/litellm.py", "import litellm"),
    ("orchestrator/planning/plan.py", "from venire.ratings import bradley_terry"),
    ("orchestrator/planning/plan.py", "from venire.reports import board"),
    ("orchestrator/planning/plan.py", "import litellm"),
    ("orchestrator/planning/plan.py", "import scipy.stats"),
    ("reports/board/build.py", "from venire.orchestrator.planning.first_round import first_round"),
    ("reports/board/build.py", "from venire.judges import PROTOCOLS"),
    ("reports/board/build.py", "import rich"),
    ("reports/board/build.py", "from aiohttp import web"),
    ("reports/board/build.py", "async def f() -> None: ..."),
    ("venire/live/server.py", "import duckdb"),
    ("venire/live/client.py", "import aiohttp"),
    ("simulation/judge.py", "from venire.storage.store.store import Store"),
    ("simulation/judge.py", "from venire.orchestrator.planning.first_round import first_round"),
    ("simulation/judge.py", "async def f() -> None: ..."),
    ("judges/protocols/two_stage/__init__.py", "from venire.simulation.judge import simulate"),
    ("judges/protocols/two_stage/__init__.py", "import pydantic"),
    ("judges/protocols/two_stage/__init__.py", "import asyncio_throttle"),
    ("storage/store/store.py", "import typer"),
    ("storage/store/store.py", "from storage.sql import query"),
    ("venire/session.py", "import judges"),
    ("venire/session.py", "import duckdb"),
    ("venire/session.py", "import rich"),
    ("venire/placement/run.py", "def f() -> None:\n    from rich.console import Console"),
    ("venire/render/plan.py", "import typer"),
    ("storage/store/store.py", "import venire"),
    ("storage/store/store.py", "from . import sql"),
    ("storage/store/store.py", "from importlib import import_module\nimport_module('venire.ratings')"),
    ("orchestrator/planning/plan.py", "import uvloop"),
    ("orchestrator/run/campaign.py", "def f() -> None:\n    import ray"),
    ("venire/experiments/experiment.py", "def f() -> None:\n    from ray.util import ActorPool"),
    ("orchestrator/engines/ray_cluster.py", "import ray"),
    ("orchestrator/engines/ray_cluster.py", "try:\n    from ray import ObjectRef\nexcept ImportError:\n    pass"),
]


@pytest.mark.parametrize(("path", "line"), PLANTED)
def test_a_forbidden_import_is_seen(path: str, line: str) -> None:
    source = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""
    assert violations(path, source) == []
    assert violations(path, f"{source}\n{line}\n") != []


def test_ray_is_imported_where_it_is_needed() -> None:
    inside = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ray\ndef f() -> None:\n    import ray\n"
    assert violations("orchestrator/engines/ray_cluster.py", inside) == []
    assert len(violations("orchestrator/engines/work.py", inside)) == 2
