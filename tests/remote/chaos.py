"""Faults drawn by chance: whatever a server does, what is written is right or nothing is."""
import os
import random

import models
from faults import (aligned, at_most_bytes, became, chunked, claim, content_range, cut, gzipped,
                    hang_up, header, http_1_0, informed, multipart, page, shifted, short,
                    silent_close, status, until_close, whole, with_200)
from server import Memory
from world import Wrong, case, holds

OTHER = Memory(models.small(64, 16 << 10, seed=77))
# Of each: how often it is drawn.
FAULTS = [
    (8, lambda draw: None), (3, lambda draw: cut(draw.randrange(300000), draw.random() < 0.5)),
    (1, lambda draw: hang_up), (2, lambda draw: status(draw.choice((500, 502, 503, 504, 429)))),
    (2, lambda draw: at_most_bytes(draw.randrange(1, 200000))),
    (2, lambda draw: aligned(draw.choice((4096, 65536, 1 << 20)))),
    (2, lambda draw: shifted(-draw.randrange(1, 9999))), (1, lambda draw: silent_close),
    (1, lambda draw: chunked), (1, lambda draw: until_close), (1, lambda draw: http_1_0),
    (1, lambda draw: informed), (1, lambda draw: with_200)]
HARMFUL = [
    (1, lambda draw: claim(draw.randrange(-9, 9), draw.randrange(-9, 9), draw.randrange(-9, 9))),
    (1, lambda draw: short(draw.randrange(1, 999))), (1, lambda draw: gzipped),
    (1, lambda draw: multipart), (1, lambda draw: page()), (1, lambda draw: whole),
    (1, lambda draw: became(OTHER)), (1, lambda draw: header(("ETag", '"x"'))),
    (1, lambda draw: shifted(draw.randrange(1, 99))), (1, lambda draw: status(403)),
    (1, lambda draw: content_range("bytes 0-%d/%d" % (draw.randrange(9999), 1 << 20)))]


def draw_fault(draw, harm):
    table = FAULTS + (HARMFUL if harm else [])
    return draw.choices(table, [weight for weight, _ in table])[0][1](draw)


def seeds(w, numbers, at_once=12):
    data = models.small(64, 16 << 10)
    w.put(data)
    wanted = {}
    for keep in ("layer.5*", "layer.*[13579].weight", "layer.[2-6]*"):
        w.run("select", w.local, "--keep", keep, "-o", "wanted.safetensors", "--force")
        wanted[keep] = w.read("wanted.safetensors")
    os.unlink(os.path.join(w.here, "wanted.safetensors"))
    for first in range(0, len(numbers), at_once):
        running = []
        for number in numbers[first:first + at_once]:
            draw = random.Random(number)
            path, keep = "/c%d.safetensors" % number, draw.choice(sorted(wanted))
            url = w.site.put("A", path, data)
            harm = number % 3 == 0
            w.site.fault("A GET " + path, *[draw_fault(draw, harm) for _ in range(30)])
            out = "c%d.safetensors" % number
            words = ["select", url, "--keep", keep, "-o", out, "--connections",
                     draw.choice((1, 2, 8)), "--retries", draw.choice((2, 8))]
            running.append((number, keep, out, words, w.start(*words)))
        for number, keep, out, words, child in running:
            made = w.end(child, words, None)
            path = os.path.join(w.here, out)
            if made.status == 0:
                holds(w.read(out) == wanted[keep], "seed %d: other bytes were written" % number)
                os.unlink(path)
            else:
                holds(made.status == 2 and not os.path.exists(path),
                      "seed %d: exit %d, and something is left" % (number, made.status))
        if os.listdir(w.here):
            raise Wrong("left: %s" % os.listdir(w.here))
    return w


@case
def faults_by_chance(w):
    seeds(w, list(range(72)), 36)
    good = sum(made.status == 0 for made in w.runs)
    holds(20 < good < 75, "%d of 75 runs succeeded" % good)
