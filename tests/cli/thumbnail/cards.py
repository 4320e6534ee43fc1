"""Letters of cards whose dots are one pixel wide. usage: cards.py FILE..., the first of which has
the letters from a to z, twelve a line"""
import struct
import sys
import zlib

LINE = "abcdefghijkl", "mnopqrstuvwx", "yz"


def tiles(path):
    """The letters of each line, as the dots that are white."""
    data = open(path, "rb").read()
    side = struct.unpack(">I", data[16:20])[0]
    length = struct.unpack(">I", data[33:37])[0]
    raw = zlib.decompress(data[41:41 + length])
    rows = []
    for y in range(side):
        row = bytearray(raw[y * (side * 4 + 1) + 1:(y + 1) * (side * 4 + 1)])
        for i in range(4, len(row)):
            row[i] = (row[i] + row[i - 4]) & 255
        rows.append([bytes(row[x * 4:x * 4 + 3]) == b"\xff\xff\xff" for x in range(side)])
    for top in range(side // 4, side - side // 5 - 8, 11):
        yield [tuple(tuple(rows[top + y][left:left + 6]) for y in range(8))
               for left in range(side // 16, side - side // 16 - 5, 6)]


letters = {}
for known, line in zip(LINE, tiles(sys.argv[1])):
    letters.update(zip(line, known))
blank = tuple((False,) * 6 for _ in range(8))
letters[blank] = " "
for path in sys.argv[1:]:
    for line in tiles(path):
        if any(tile != blank for tile in line):
            print("%s: %s" % (path, "".join(letters.get(tile, "?") for tile in line).rstrip()))
