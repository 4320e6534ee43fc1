#!/usr/bin/env python3
"""Write src/formats/gguf/gguf_grids.c from the tables of the Python package gguf (MIT; version 0.19.0).

usage: python3 tools/gguf_grids.py > src/formats/gguf/gguf_grids.c     (with gguf and numpy installed)
"""
import numpy as np
from gguf import quants

HEAD = """\
/* Made by tools/gguf_grids.py from the Python package gguf 0.19.0; do not edit.
 *
 * The figures are ggml's, under this licence:
 *
 *   MIT License. Copyright (c) 2023 Georgi Gerganov
 *
 *   Permission is hereby granted, free of charge, to any person obtaining a copy of this software
 *   and associated documentation files (the "Software"), to deal in the Software without
 *   restriction, including without limitation the rights to use, copy, modify, merge, publish,
 *   distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
 *   Software is furnished to do so, subject to the following conditions:
 *
 *   The above copyright notice and this permission notice shall be included in all copies or
 *   substantial portions of the Software.
 *
 *   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
 *   BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
 *   NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
 *   DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING
 *   FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
 *   SOFTWARE. */
#include "formats/gguf/gguf.h"
"""
GRIDS = [("iq2_xxs", quants.IQ2_XXS), ("iq2_xs", quants.IQ2_XS), ("iq2_s", quants.IQ2_S),
         ("iq3_xxs", quants.IQ3_XXS), ("iq3_s", quants.IQ3_S), ("iq1", quants.IQ1_S)]


def rows(kind):
    """One number of 16 bits a row: entry i of the map in bits 16 / columns * i and up."""
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape)
    width = 16 // kind.grid_shape[1]
    codes = np.searchsorted(np.array(kind.grid_map, np.float32), grid)
    assert (np.array(kind.grid_map, np.float32)[codes] == grid).all()
    return (codes << (width * np.arange(kind.grid_shape[1]))).sum(axis=1)


print(HEAD, end="")
for name, kind in GRIDS:
    packed = rows(kind)
    print(f"\nconst uint16_t sfti_gguf_{name}_grid[{len(packed)}] = {{")
    for at in range(0, len(packed), 12):
        print("    " + " ".join(f"0x{row:04x}," for row in packed[at:at + 12]))
    print("};")
