"""Reading verdicts out of replies: pure functions from text to a reading, and never a guess.

Each module has one table of rules for one kind of answer. The first rule that matches wins, each shows an example, and
none knows which judge or vendor wrote the reply.
"""

from __future__ import annotations

__all__ = ["PARSER"]

PARSER = "rules-1"
"""Name of these tables together; stored with what they read, and changed whenever one of them reads otherwise."""
