"""Tokens counted without a tokenizer: near enough to plan by, and an upper bound to reserve by."""

from __future__ import annotations

__all__ = ["estimate", "worst_case"]


def estimate(text: str) -> int:
    """About how many tokens a text has: one to four bytes of UTF-8, at least 1.

    Four bytes a token is what byte-pair vocabularies make of English prose. Code and scripts other than Latin have
    fewer bytes to a token, so there this is too low: it is for plans and for replies without a count, not for limits.
    """
    return max(1, -(-len(text.encode(errors="surrogatepass")) // 4))


def worst_case(body: bytes) -> int:
    """As many input tokens as an encoded request can be charged for: one a byte of its body, at least 1.

    A byte-level vocabulary never makes more than one token of a byte, and the few tokens that a vendor adds to each
    message are fewer than the bytes of that message's field names and quotes. Tighter bounds do not hold: English
    has about 5 bytes a token, but dense code 1.8, emoji 1.5 and Amharic 1.1 (cl100k_base). The price of the bound is
    small, since it is settled at the real count with the reply: only what is in flight is reserved too high.
    """
    return max(1, len(body))
