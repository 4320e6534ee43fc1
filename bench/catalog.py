#!/usr/bin/env python3
"""Measure the pages of `safetensors catalog`: generation beside `info -r`, and in headless Chromium
how soon they are ready, how fast a search is painted and how evenly they scroll.

    catalog.py [--only generation,page] [--models 10000,50000] [--repeats 5] [--data DIR]
               [--write [FILE]]

Run it by build/browser/bin/python (make bench-catalog). generation: the real command over a folder
of tiny LoRAs with sidecars and previews. page: the command's own page of that folder, and pages of
synthetic models by tests/page/pages.py for larger counts; an empty page is the yardstick of
scrolling. --write as in compare.py. Floors (exit status 1 when missed): 10,000 models ready within
1 s, search within 50 ms, frames of scrolling within 16.7 ms (median) and 33 ms (p95); 50,000 within
2.5 s and 100 ms; 2 KB a model; generation 1.3 times the
processor time of `info -r --jsonl`; 64 MB and 2 KB a model of
memory. Frames count as their ratio to the empty page's where that is slower than 60 a second.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "page")]

import browser  # noqa: E402
import folder as folders  # noqa: E402
import pages  # noqa: E402
import pictures  # noqa: E402
from sections import load_since, options, publish, status_of  # noqa: E402
import synthetic  # noqa: E402
from contest import table  # noqa: E402

COMMAND = os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "safetensors")
QUERIES = [
    "n",
    "ne",
    "neo",
    "neon",
    "neon s",
    "style -anime",
    "base:pony",
    '"film noir"',
    "tag:slider",
    "zzz",
    "",
]
READY = """() => new Promise((done) => { const look = () => document.querySelector('.grid > .card:not(.probe)')
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))) : requestAnimationFrame(look); look(); })"""
PAINT = """async (query) => { const field = document.querySelector('#search'), begin = performance.now();
    field.value = query; field.dispatchEvent(new Event('input', { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
        const after = new MessageChannel(); after.port1.onmessage = done; after.port2.postMessage(0); })));
    return performance.now() - begin; }"""
FRAMES = """(step) => new Promise((done) => { const times = []; let last = 0, top = 0;
    const frame = (now) => { if (last) times.push(now - last); last = now; top += step; scrollTo({ top, behavior: 'instant' });
        if (times.length < 240) requestAnimationFrame(frame); else done(times); };
    requestAnimationFrame(frame); })"""


def run(*words):
    """Seconds, seconds of processor time, and peak memory in bytes of a process."""
    begin = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)}: exit {child.returncode}")
    return time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Bench:
    def __init__(self, args):
        self.args = args
        self.missed = []
        self.counts = [int(count) for count in args.models.split(",")]

    def floor(self, what, found, limit):
        """The number as a cell; one over its limit is noted."""
        if found > limit:
            self.missed.append(f"{what}: expected at most {limit:g}, found {found:.3g}")
        return found

    def models(self):
        """The folder of real files, made once."""
        count = self.counts[0]
        made = os.path.join(self.args.data, f"models-{count}")
        if not os.path.exists(made):
            shutil.rmtree(made + ".new", ignore_errors=True)
            folders.make(made + ".new", count)
            os.rename(made + ".new", made)
        return made

    def real(self):
        page = os.path.join(self.args.data, "catalogue.html")
        run(COMMAND, "catalog", self.models(), "-o", page, "--force")
        return page

    def generation(self):
        models, count = self.models(), self.counts[0]
        page = os.path.join(self.args.data, "generated.html")
        commands = {
            "info": (COMMAND, "info", "-r", "--jsonl", models),
            "catalog": (COMMAND, "catalog", models, "-o", page, "--force"),
        }
        taken = {name: [] for name in commands}
        for _ in range(self.args.repeats):
            for name, words in commands.items():
                taken[name].append(run(*words))
        cells = {
            name: [
                f"{statistics.median(column):.2f} ({min(column):.2f})"
                for column in list(zip(*all_))[:2]
            ]
            for name, all_ in taken.items()
        }
        memory = max(one[2] for one in taken["catalog"])
        size = os.path.getsize(page)
        code = sum(len(pages.join(part).encode()) for part in ("shared", "catalog", "style", "style-catalog"))
        each = (size - code) / count
        ratios = [
            pick(one[1] for one in taken["catalog"]) / pick(one[1] for one in taken["info"])
            for pick in (statistics.median, min)
        ]
        self.floor("processor time of generation ÷ info -r", ratios[1], 1.3)
        self.floor("bytes a model", each, 2048)
        self.floor("memory of generation", memory, 64e6 + 2048 * count)
        return table(
            [
                "models",
                "`info -r --jsonl`, s",
                "CPU",
                "`catalog`, s",
                "CPU",
                "catalog ÷ info, CPU",
                "memory of catalog, MB",
                "page, MB",
                "bytes a model",
            ],
            [
                [
                    f"{count:,}",
                    *cells["info"],
                    *cells["catalog"],
                    f"{ratios[0]:.2f}× ({ratios[1]:.2f}×)",
                    f"{memory / 1e6:.0f}",
                    f"{size / 1e6:.1f}",
                    f"{each:.0f}",
                ]
            ],
        ) + (
            f"\nTiny LoRAs, each with a `.civitai.info` and most with a preview; warm cache. Bytes a model: without the {code // 1024} KiB "
            "of scripts and styles.\n"
        )

    def synthetic(self, count):
        """A page of synthetic models, whose pictures are 400 files."""
        rows, more, _ = synthetic.catalogue(count)
        place = os.path.join(self.args.data, f"synthetic-{count}")
        for i in range(400):
            pages.keep(place, f"{i}.png", pictures.picture(i)[0])
        for i, preview in enumerate(rows["preview"]):
            if preview and preview["href"]:
                rows["preview"][i] = dict(preview, href=f"{i % 400}.png", video=False)
        return pages.keep(place, "catalogue.html", pages.catalogue_page(rows, more))

    def measure(self, chromium, path):
        """(ready, worst paint of a search, frames, heap), milliseconds and bytes; ready is a median."""
        ready = []
        for _ in range(self.args.repeats):
            view = chromium.view(path, width=1600, height=1000, wait=False)
            ready.append(view.js(READY))
            if len(ready) < self.args.repeats:
                view.context.close()
        view.page.set_default_timeout(120000)
        view.until("() => document.documentElement.dataset.details === 'searched'")
        paints = [statistics.median(view.js(PAINT, query) for _ in range(3)) for query in QUERIES]
        view.js("() => scrollTo({ top: 0, behavior: 'instant' })")
        view.page.wait_for_timeout(500)
        frames = view.js(FRAMES, 60)
        heap = view.js("() => performance.memory?.usedJSHeapSize ?? 0")
        view.context.close()
        return ready, paints, frames, heap

    def page(self):
        chromium = browser.Browser()
        empty = pages.keep(
            self.args.data,
            "empty.html",
            "<!DOCTYPE html><title>empty</title><body style='height: 1000000px'>",
        )
        lines = []
        try:
            view = chromium.view(empty, width=1600, height=1000)
            still = view.js(FRAMES, 60)
            view.context.close()
            slack = {part: max(1, percentile(still, part) / (1000 / 60)) for part in (0.5, 0.95)}
            for count in self.counts:
                path = self.real() if count == self.counts[0] else self.synthetic(count)
                ready, paints, frames, heap = self.measure(chromium, path)
                large = count > 10000
                self.floor(f"{count:,} models, ready", min(ready), 2500 if large else 1000)
                self.floor(f"{count:,} models, search", max(paints), 100 if large else 50)
                if not large:
                    self.floor(f"{count:,} models, frame", percentile(frames, 0.5) / slack[0.5], 17)
                    self.floor(
                        f"{count:,} models, p95 frame", percentile(frames, 0.95) / slack[0.95], 33.4
                    )
                lines.append(
                    [
                        f"{count:,}, {'written by the command' if count == self.counts[0] else 'synthetic'}",
                        f"{os.path.getsize(path) / 1e6:.0f}",
                        f"{statistics.median(ready):.0f} ({min(ready):.0f})",
                        f"{statistics.median(paints):.0f}",
                        f"{max(paints):.0f}",
                        f"{percentile(frames, 0.5):.1f}, {percentile(frames, 0.95):.1f}",
                        f"{heap / 1e6:.0f}",
                    ]
                )
            lines.append(
                [
                    "an empty page",
                    "–",
                    "–",
                    "–",
                    "–",
                    f"{percentile(still, 0.5):.1f}, {percentile(still, 0.95):.1f}",
                    "–",
                ]
            )
        finally:
            chromium.close()
        return table(
            [
                "models",
                "page, MB",
                "ready, ms",
                "search painted, ms",
                "slowest search, ms",
                "frame while scrolling, median, p95, ms",
                "heap, MB",
            ],
            lines,
        ) + (
            "\nHeadless Chromium, drawn by the processor, 1600 × 1000, pictures beside the page. Ready: two frames after the first cards. A "
            "search is timed to the second frame after the key, so that two frames of 16.7 ms are the least. Scrolling: 60 px a frame.\n"
        )


SECTIONS = ("generation", "page")


def main():
    args = options(__doc__, SECTIONS, "catalog", 5, more=[("--models", "10000,50000")])
    bench = Bench(args)
    for name in args.chosen:
        before = os.getloadavg()[0]
        publish(args, "catalog", name, getattr(bench, name)() + load_since(before))
    return status_of(bench.missed)


if __name__ == "__main__":
    sys.exit(main())
