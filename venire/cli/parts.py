"""`venire methods` and `venire formats`: what there is of a kind, and what each is for."""

from __future__ import annotations

from venire.cli.options import JSON


def methods(as_json: bool = JSON) -> None:
    """List the rating methods, with what each does.

    Those of installed packages are among them.

    Examples:
      venire methods
      venire methods --json
    """
    from venire.arena.registry import METHODS
    from venire.cli.options import write_json
    from venire.render.parts import show_methods
    from venire.render.screen import console

    if as_json:
        found = {name: METHODS[name] for name in METHODS}
        write_json(
            [{"name": name, "purpose": one.purpose, "options": sorted(one.options)} for name, one in found.items()]
        )
    else:
        show_methods(console(), METHODS)


def formats(as_json: bool = JSON) -> None:
    """List the file formats of other tools.

    With what of each is read and written. Those of installed packages are among them.

    Examples:
      venire formats
      venire formats --json
    """
    from venire.arena.registry import FORMATS
    from venire.cli.options import write_json
    from venire.render.parts import format_uses, show_formats
    from venire.render.screen import console

    if as_json:
        found = {name: FORMATS[name] for name in FORMATS}
        write_json(
            [
                {"name": name, "purpose": one.purpose}
                | format_uses(one)
                | {"writes": one.writes, "endings": list(one.endings)}
                for name, one in found.items()
            ]
        )
    else:
        show_formats(console(), FORMATS)
