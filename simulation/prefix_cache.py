"""A provider's prompt cache: the common prefix with an earlier prompt is read from it, in whole blocks. Pure.

As vendors document it: only the prefix counts, from the first character on; it is stored in blocks of 128 tokens, and
nothing is read for prompts under 1,024 tokens; entries expire after five minutes without use, or are evicted; each
account has a separate cache (OpenAI, developers.openai.com/api/docs/guides/prompt-caching, for models before GPT-5.6;
read 2026-11-21). A prompt can be read once its judge has begun to answer it, so calls sent at the same time do not help
each other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The blocks that an account's prompt cache holds, and the prompt length below which nothing is read from it."""

    blocks: int
    min_tokens: int = 1024


class PrefixCache:
    """Blocks of prompts by account, as many as `size` says; times are in seconds of any one clock.

    `characters` is the length of one token.
    """

    def __init__(self, size: CacheSize, *, characters: float, block_tokens: int = 128, seconds: float = 300.0) -> None:
        self._size = size
        self._block = block_tokens
        self._length = round(block_tokens * characters)
        self._seconds = seconds
        self._accounts: dict[str, OrderedDict[bytes, tuple[float, float]]] = {}
        """By account, in LRU order: the time from which a block can be read, and its last use."""

    def ask(self, account: str, model: str, messages: Sequence[tuple[str, str]], *, now: float, delay: float) -> int:
        """The number of tokens of a prompt (role and text of each message) that are read from the cache.

        The prompt itself can be read `delay` seconds from now.
        """
        kept = self._accounts.setdefault(account, OrderedDict())
        blocks = list(self._blocks(model, messages))
        read = sum(1 for _ in takewhile(lambda block: self._can_be_read(kept.get(block), now), blocks))
        for block in reversed(blocks):  # the beginning last, so that the end of a prompt is evicted first
            known = kept.get(block)
            expired = known is None or now - known[1] > self._seconds
            kept[block] = (now + delay if known is None or expired else known[0], now)
            kept.move_to_end(block)
        while len(kept) > self._size.blocks:
            kept.popitem(last=False)
        tokens = read * self._block
        return tokens if tokens >= self._size.min_tokens else 0

    def _can_be_read(self, known: tuple[float, float] | None, now: float) -> bool:
        return known is not None and known[0] <= now and now - known[1] <= self._seconds

    def _blocks(self, model: str, messages: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """A digest for each whole block, over the prompt up to its end."""
        text = "".join(f"\x1e{role}\x1f{said}" for role, said in messages).encode()
        running = blake2b(model.encode(), digest_size=16)
        for end in range(self._length, len(text) + 1, self._length):
            running.update(text[end - self._length : end])
            yield running.digest()
