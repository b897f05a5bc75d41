"""Which batch interface an endpoint of OpenAI's chat completions has, by its vendor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from venire.arena.errors import InputError
from venire.judges.providers.base import Endpoint
from venire.judges.providers.batches.mistral import MistralBatches
from venire.judges.providers.batches.openai import OpenAIBatches
from venire.judges.providers.batches.together import TogetherBatches
from venire.judges.providers.vendors import vendor_of

FORMS: Mapping[str, Callable[[Endpoint], OpenAIBatches]] = {
    "openai": OpenAIBatches,
    "mistral": MistralBatches,
    "together": TogetherBatches,
}
"""Batch interfaces by the name that `Vendor.batches` gives."""


def open_chat_batches(endpoint: Endpoint) -> OpenAIBatches:
    """The batch interface of an endpoint: its vendor's, or OpenAI's where the vendor is not known.

    Raises `InputError` for a vendor that has none, or one in a form that is not spoken here.
    """
    form = vendor_of(endpoint.base_url).batches
    if form is None:
        raise InputError(
            f"{endpoint.base_url}: this vendor's batch interface, if it has one, is not among those that can be "
            "spoken; ask its judges one call at a time"
        )
    return FORMS[form](endpoint)
