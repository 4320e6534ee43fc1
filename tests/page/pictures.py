"""Small PNG pictures: a few motifs, each in any colours, since only the palette differs."""

import colorsys
import functools
import math
import struct
import zlib

SIZES = [(256, 374), (256, 374), (256, 374), (320, 200), (256, 256)]


def chunk(name, content):
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


@functools.lru_cache(None)
def plane(motif):
    """Width, height and compressed rows of palette indices."""
    width, height = SIZES[motif]
    rows = bytearray()
    radius = min(width, height) * 0.28
    for y in range(height):
        rows.append(0)
        hill = height * (0.72 + 0.06 * motif)
        for x in range(width):
            away = math.hypot(x - width * (0.35 + 0.1 * motif), y - height * 0.4)
            if y > hill + 14 * math.sin(x / (19 + 6 * motif)):
                rows.append(200 + (y * 40 // height))
            elif away < radius:
                rows.append(140 + int(50 * away / radius))
            else:
                rows.append(y * 130 // height)
    return width, height, zlib.compress(bytes(rows), 9)


@functools.lru_cache(None)
def picture(number):
    """(PNG file, width, height): the same for the same number."""
    width, height, rows = plane(number % len(SIZES))
    hue = (number * 0.61803) % 1

    def colour(shift, light, strength):
        return [int(255 * part) for part in colorsys.hls_to_rgb((hue + shift) % 1, light, strength)]

    palette = bytearray()
    for i in range(256):
        if i < 140:
            palette += bytes(colour(i / 900, 0.25 + i / 400, 0.5))
        elif i < 200:
            palette += bytes(colour(0.45, 0.85 - (i - 140) / 180, 0.75))
        else:
            palette += bytes(colour(0.1, 0.32 - (i - 200) / 300, 0.35))
    return (
        (
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
            + chunk(b"PLTE", bytes(palette))
            + chunk(b"IDAT", rows)
            + chunk(b"IEND", b"")
        ),
        width,
        height,
    )
