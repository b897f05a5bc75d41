"""Tables as a user's project writes them; each line of the second part is marked with the error that a checker gives.

Read by `test_typing.py`, and never run.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import venire as vn

vn.Judge("openai:gpt-4.1-mini")
vn.Judge(model="openai/gpt-4o", temperature=0.7, timeout=60, price=vn.Price(input=0.15, output=Decimal("0.6")))
vn.Judge("m", base_url="http://127.0.0.1:8000/v1", free=True, temperature="default", prompts={"verdict": Path("v.txt")})
vn.Judge(
    "m", protocol=cast(Any, "of-a-package"), fallback=[vn.Fallback(model="groq:m", base_url="https://x.example/v1")]
)
vn.Budget(money=5, calls=100, judge={"m": vn.BudgetLimits(money=2.5)})
plan = vn.Plan(policy="balanced", instructions=10, band=(60, 200), phases=[vn.Phase(name="first", policy="near-tie")])
campaign = vn.Campaign(
    store=Path("x.duckdb"),
    data=vn.Data(instructions=Path("i.csv"), completions="c.csv", models=["a", "b"], families={"a": "x"}),
    judges=[vn.Judge("openai:gpt-4.1-mini")],
    contestants=(vn.Contestant("groq:m", samples=2),),
    editors=[vn.Editor("groq:m", name="echo")],
    plan=plan,
    budget=vn.Budget(money=0.5),
    quality=vn.Quality(readable=0.9),
)
vn.run(campaign)

vn.Judge()  # call-arg
vn.Judge(modle="m")  # call-arg
vn.Judge("m", "n")  # call-arg
vn.Judge("m", temperature="hot")  # arg-type
vn.Judge("m", provider="opnai")  # arg-type
vn.Judge("m", price=0.5)  # arg-type
vn.Budget(money="5")  # arg-type
vn.Budget(5)  # call-arg
vn.Budget(mony=5)  # call-arg
vn.Plan(policy="balancd")  # arg-type
vn.Phase(policy="balanced")  # call-arg
vn.Campaign(judge=[])  # call-arg
vn.Campaign(judges=["openai:gpt-4.1-mini"])  # list-item
vn.Price(input=1)  # call-arg
