"""PNGs of few colours: a screenshot with a palette is a third as large, and looks the same."""

from __future__ import annotations

import base64
import zlib

import numpy as np
from playwright.sync_api import Browser

_EXACT = 96
"""So many colours are kept as they are, such as those of paper and ink."""

_PIXELS = """async png => {
  const answer = await fetch('data:image/png;base64,' + png);
  const image = await createImageBitmap(await answer.blob());
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
  context.drawImage(image, 0, 0);
  const found = new Blob([context.getImageData(0, 0, image.width, image.height).data]);
  const reader = new FileReader();
  await new Promise(done => { reader.onload = done; reader.readAsDataURL(found); });
  return reader.result.slice(reader.result.indexOf(',') + 1);
}"""


def with_palette(browser: Browser, png: bytes) -> bytes:
    """A picture in 256 colours at most: the most frequent ones, then one of each kind of the others.

    The browser reads the pixels: it is there anyway, and Venire depends on no library of images.
    """
    width, height = int.from_bytes(png[16:20]), int.from_bytes(png[20:24])
    page = browser.new_page()
    raw = base64.b64decode(page.evaluate(_PIXELS, base64.b64encode(png).decode()))
    page.close()
    pixels = np.frombuffer(raw, np.uint8).reshape(-1, 4)[:, :3].astype(np.int64)
    codes = pixels @ np.array([65536, 256, 1])
    colours, index, counts = np.unique(codes, return_inverse=True, return_counts=True)
    frequent = colours[np.argsort(-counts)]
    _, first = np.unique(_channels(frequent) >> 4, axis=0, return_index=True)  # shades of grey alone are 256
    palette = np.concatenate([frequent[:_EXACT], frequent[np.sort(first[first >= _EXACT])]])[:256]
    apart = _channels(palette)
    nearest = np.array([((_channels(one) - apart) ** 2).sum(axis=-1).argmin() for one in colours], np.uint8)
    rows = np.zeros((height, 1 + width), np.uint8)  # each begins with its filter, which is none
    rows[:, 1:] = nearest[index].reshape(height, width)
    parts = {
        b"IHDR": png[16:24] + bytes((8, 3, 0, 0, 0)),
        b"PLTE": _channels(palette).astype(np.uint8).tobytes(),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    return png[:8] + b"".join(
        len(body).to_bytes(4) + name + body + zlib.crc32(name + body).to_bytes(4) for name, body in parts.items()
    )


def _channels(colours: np.ndarray) -> np.ndarray:
    return (np.asarray(colours)[..., None] >> np.array([16, 8, 0])) & 255
