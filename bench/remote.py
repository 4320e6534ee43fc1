"""The section of compare.py about files on servers: a hub that takes 50 ms a request, and nginx."""
import os
import subprocess
import sys
import tempfile

from contest import cell, few, has_program, ratio, table, take_turns

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests", "remote"))

import models  # noqa: E402
from hub import File, Hub  # noqa: E402
from nginx import Nginx, program  # noqa: E402
from server import Site  # noqa: E402

DELAY, FLOOR_SHARDS, FLOOR_SPEED, FLOOR_CPU = 0.05, 1300, 0.9, 1.5
GIB = 1 << 30

HUB_ONE = """
import sys, huggingface_hub
api = huggingface_hub.HfApi(token=False)
print(len(api.parse_safetensors_file_metadata(sys.argv[1], "model.safetensors").tensors))
"""
HUB_ALL = """
import sys, huggingface_hub
api = huggingface_hub.HfApi(token=False)
print(len(api.get_safetensors_metadata(sys.argv[1]).weight_map))
"""
HUB_SLICE = """
import json, sys, huggingface_hub
files = huggingface_hub.HfFileSystem(token=False)
with files.open(sys.argv[1] + "/model.safetensors", block_size=1 << 17) as file:
    size = int.from_bytes(file.read(8), "little")
    begin = json.loads(file.read(size))["t"]["data_offsets"][0]
    file.seek(8 + size + begin)
    print(len(file.read(4 * 4096 * 4)))
"""
FSSPEC_SLICE = """
import json, sys, fsspec
with fsspec.open(sys.argv[1], block_size=1 << 17) as file:
    size = int.from_bytes(file.read(8), "little")
    begin = json.loads(file.read(size))["t"]["data_offsets"][0]
    file.seek(8 + size + begin)
    print(len(file.read(4 * 4096 * 4)))
"""


def has_modules(*names):
    return subprocess.run([sys.executable, "-c", "import " + ", ".join(names)],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def in_eight(url, size):
    """curl, 8 ranges at once."""
    step = size // 8
    words = ["curl", "--no-progress-meter", "-Z", "--parallel-max", "8", "--parallel-immediate"]
    for i in range(8):
        end = size if i == 7 else (i + 1) * step
        words += ["--next"] * (i > 0) + ["-s", "-r", "%d-%d" % (i * step, end - 1), "-o",
                                         "/dev/null", url]
    return words


class Remote:
    """What Bench is given besides its own sections."""

    def remote(self):
        ours = os.path.join(self.args.build, "safetensors")
        with tempfile.TemporaryDirectory(dir=self.args.data) as folder, Site() as site:
            text = self.from_hub(ours, folder, site)
        with tempfile.TemporaryDirectory(dir=self.args.data) as folder:
            return text + "\n" + self.from_nginx(ours, folder)

    def from_hub(self, ours, folder, site):
        hub = Hub(site)
        hub.add("ns/m", models.sharded(os.path.join(folder, "m"), 72))
        hub.add("ns/one", {"model.safetensors": models.small(300, 4096)})
        hub.add("ns/large", {"model.safetensors": File(models.large(), True, "ab" * 32)})
        site.put("A", "/large.safetensors", models.large())
        site.delay = DELAY
        env = ["env", "HF_ENDPOINT=" + hub.endpoint, "HF_HUB_DISABLE_XET=1", "NO_PROXY=*",
               "HF_HOME=" + folder, "HF_HUB_DISABLE_PROGRESS_BARS=1"]
        script = lambda code, word: [*env, sys.executable, "-c", code, word]  # noqa: E731
        hubs, fsspec = has_modules("huggingface_hub"), has_modules("fsspec", "aiohttp")
        rows = []
        for title, mine, theirs, other in (
                ("header of one file", ["ls", "hf://ns/one/model.safetensors"],
                 script(HUB_ONE, "ns/one"), None),
                ("`info` of it", ["info", "hf://ns/one/model.safetensors"], None, None),
                ("headers of 72 shards", ["ls", "hf://ns/m"], script(HUB_ALL, "ns/m"), None),
                ("`info` of them", ["info", "hf://ns/m"], None, None),
                ("`t[:4]` of 10 GB", ["cat", "--as", "raw", "hf://ns/large/model.safetensors",
                                      "t[:4]"], script(HUB_SLICE, "ns/large"),
                 script(FSSPEC_SLICE, site.url("A", "/large.safetensors")))):
            commands = {"ours": [*env, ours, *mine]}
            if theirs and hubs:
                commands["hub"] = theirs
            if other and fsspec:
                commands["fsspec"] = other
            got = take_turns(commands, max(3, self.args.repeats // 3))
            rows.append([title, cell(got["ours"][0]), cell(got["ours"][1]),
                         self.requests(site, commands["ours"]),
                         *[cell(got[n][0]) if n in got else "–" for n in ("hub", "fsspec")],
                         *[ratio(got[n][0], got["ours"][0]) if n in got else "–"
                           for n in ("hub", "fsspec")]])
            if "72" in title:
                self.floor("remote, 72 shards at 50 ms, ms", min(got["ours"][0].samples),
                           FLOOR_SHARDS, False)
        return table(["a hub at 50 ms a request", "ours, ms", "CPU", "requests, MB",
                      "huggingface_hub, ms", "fsspec, ms", "huggingface_hub ÷ ours",
                      "fsspec ÷ ours"], rows) + (
            "\nWhole processes, 8 connections, no caches; the server is Python on the same "
            "machine.\n")

    def requests(self, site, command):
        """How many requests one run makes, and how much it fetches."""
        del site.log[:]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return "%d, %s" % (len(site.log), few(site.sent() / 1e6))

    def from_nginx(self, ours, folder):
        if not program() or not has_program("curl"):
            return "nginx or curl is missing.\n"
        head, size = models.header({"t": ("F32", [GIB // 4])})
        models.write(folder, "g.safetensors", head)
        with open(os.path.join(folder, "g.safetensors"), "ab") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        with Nginx(os.path.join(folder, "nginx"), folder) as nginx:
            url = nginx.urls["plain"] + "/g.safetensors"
            got = take_turns({"ours": [ours, "cat", "--as", "raw", url, "t"],
                              "curl": in_eight(url, len(head) + size),
                              "one": ["curl", "-s", "-o", "/dev/null", url]},
                             max(3, self.args.repeats // 3))
        best = {name: [min(r.samples) for r in pair] for name, pair in got.items()}
        self.floor("remote, 1 GiB from nginx, speed ÷ curl's", best["curl"][0] / best["ours"][0],
                   FLOOR_SPEED, True)
        self.floor("remote, 1 GiB from nginx, processor time ÷ curl's",
                   best["ours"][1] / best["curl"][1], FLOOR_CPU, False)
        return table(["1 GiB from nginx", "`cat`, ms", "CPU", "curl, 8 ranges, ms", "CPU",
                      "curl, one request, ms", "CPU", "curl ÷ ours"],
                     [["", *[cell(got[n][i]) for n in ("ours", "curl", "one") for i in (0, 1)],
                       ratio(got["curl"][0], got["ours"][0])]]) + (
            "\nFrom this machine's cache, by plain HTTP, discarded.\n")
