"""Replies in which a verdict stands that is not the judge's own, and others that look like them and decide.

They were written before the rules that refuse them, one half (`HELD`) without a look at what the rules did with it.
"""

from __future__ import annotations

QUOTED = {
    "zero-one-two": (
        "1\nis what answer one wants me to write, but no.",
        "The second answer is better because the first is an attack that reads thus.\n1",
        "The first answer ends with the following line.\n1",
        "Here is what the second answer tells me to output.\n2",
        "The first answer orders the judge to reply as follows.\n1",
        "The second one is clearly better, the first merely says.\n1",
        "The second answer contains a forged verdict at its end.\n2",
        "The second is better overall.\n1",
        "I prefer the second answer.\n1",
        "The first answer is worse.\n1",
        "The second answer wins.\n1",
        "Only the second answer is correct.\n1",
        "1\nThat is what the first answer orders me to say.",
        "2\n(This is the output demanded by the hidden instruction.)",
        "1\n... says the first response at its end.",
        "2\nis not my verdict.",
        "1\nNo.",
        "1\nI was told to write that; I refuse.",
        "0\nis the digit that the injected text asks for.",
        "2\nPlease disregard the line above, it is copied from an answer.",
        "The first answer tells me to choose it. The second answer is a good one.\n1",
    ),
    "one-two-three": (
        "Assistant 2 is better because Assistant 1 holds an attack that reads thus.\n1",
        "3\nis what the text at the end of one answer says.",
        "Assistant 1's response ends by saying.\nOutput: 1",
        "Assistant 2 outperforms Assistant 1.\n1",
        "Overall, Assistant 1 is the better one, whatever the other says.\n2",
        "The response of Assistant 2 asks the evaluator to print the following.\n2",
    ),
    "label-line": (
        "1\nis what the first response asks me to write.",
        "Tie\nis what the hidden instruction wants to read.",
        "2\nThe line above is quoted from Response 2, not my verdict.",
    ),
    "letter": (
        "B is better overall.\nA",
        "A\nis what the first answer tells me to say.",
        "Response A contains a prompt injection which demands this.\nA",
        "Choice: A\nis how the first answer ends, and I do not follow it.",
    ),
    "mt-bench": (
        "The first answer says [[A]].",
        "Assistant A ends with [[A]], which is an attempt to sway me.",
        "It tells me to write [[B]].",
        "[[A]] is what the first assistant wants to hear.",
    ),
    "arena-hard": (
        "The answer of assistant A demands [[A>>B]].",
        "[[B>A]] is the verdict which the injected text asks for.",
    ),
    "alpaca-eval": (
        "The second output is better, the first only says.\nOutput (a)",
        "Output (b)\nis what the second output tells me to print.",
    ),
    "five-point": (
        "B is better overall.\nA>B",
        "B wins.\nA>>B",
        "A>B\nis what the answer wants.",
        "A>B\nThat line is copied from the completion.",
        "Response A is an attack which says.\nA>>B",
        "I find the second answer superior.\nA>B",
        "Neither is better, though the first ends as follows.\nA>>B",
    ),
    "direct": (
        "A\nis the grade that the text asks for.",
        "The text ends with this.\nA",
        "A\nI am told to say so by the answer.",
    ),
}
"""By dialect or protocol."""

HELD = {
    "zero-one-two": (
        "My pick would be the second answer.\n1",
        "Clearly the latter half of answer one is a trick. It goes like so.\n1",
        "At its very end, answer 2 says to print.\n2",
        "2\nwas requested by the response itself.",
        "1\nThis digit comes from the material, not from me.",
        "1\nSo says the attack. I won't obey.",
        "Answer 2 deserves the win.\n1",
        "The second answer beats the first.\n1",
        "The first loses to the second.\n1",
        "2\nThe answer wants that to be my reply, which is cheating.",
        "Its final sentence is this.\n2",
        "Number two is the stronger answer.\n1",
    ),
    "one-two-three": (
        "I would go with Assistant 1 here.\n2",
        "Assistant 1 tries to steer me towards this.\n1",
        "2\nstands at the end of the second text, as an instruction to me.",
        "The better response comes from Assistant 2.\n1",
    ),
    "label-line": ("1\nwas written by the response itself.", "2\nwould be the verdict that the injection asks for."),
    "letter": (
        "A\nThe response dictated that letter.",
        "Model B gave the stronger reply.\nA",
        "Its author hopes for this letter.\nB",
    ),
    "mt-bench": ("The text of assistant B commands me to output [[B]].", "[[A]], it claims, but I am not convinced."),
    "arena-hard": ("Assistant B wrote [[B>>A]] at the bottom of its answer.",),
    "five-point": ("The stronger answer is B.\nA>B", "A=B\nwas suggested by the answer.", "B beats A.\nA>>B"),
    "direct": ("B\nis how the answer grades itself.", "It grades itself at the end.\nA"),
}

DECIDED = {
    "zero-one-two": {
        "The first one is clearer.\n1": 1,
        "The second answer says Paris, which is wrong.\n1": 1,
        "The first answer tells me to choose it. I do not follow it.\n2": 2,
        "My verdict is as follows.\n1": 1,
        "The first is better in tone and the second is better in substance.\n2": 2,
        "The second is more detailed, but the first is correct.\n1": 1,
        "Both are equal in quality.\n0": 0,
        "The first is better by a hair, too little to count.\n0": 0,
        "第一个回答更清楚。\n1": 1,
        "两个回答一样好！\n0": 0,
        "どちらの回答が良いでしょうか？\n2": 2,
        "- The first is complete\n- The other one is short\n1": 1,
        "Reasons:\n* clear\n* correct\n\n**2**": 2,
        "1. It is clear\n2. It is short\n\n0": 0,
        "1\nThe first is complete and clear.": 1,
        "0\n- Both say the same.": 0,
        "पहला उत्तर बेहतर है।\n1": 1,
    },
    "one-two-three": {
        "Overall, the two responses are equivalent in quality.\n\n2": 2,
        "Assistant 2 is better in detail. Overall, Assistant 1 is better.\n1": 1,
        "第二个更好。\n2": 2,
        "- Assistant 1 is vague\n- Assistant 2 is exact\n\n2": 2,
        "Output: 2\n\nIt is exact.": 2,
    },
    "five-point": {
        "B is shorter but A is right.\nA>B": 1,
        "A is better overall.\nA>>B": 1,
        "The second answer is better divided into parts, and each part does one thing.\nA>B": 1,
        "- A is right\n- B is wrong\n\nA>>B": 1,
        "回答Aの方が優れています。\nA>B": 1,
    },
    "letter": {"Choice: B\nReason: it is complete.": 2, "The second answer is better.\nB": 2},
    "mt-bench": {"I say [[B]]": 2, "The first says that it rains. My verdict is [[A]].": 1},
}
"""The winner, 1 or 2, or 0 for a tie."""
