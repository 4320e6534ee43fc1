"""Texts, each of which is the value of a key: why scrub removes them, or that it leaves them."""
import json
import os
import struct
import subprocess

TEXTS = [r"xC:\a", r"1C:\a", "C:/a", r"C:\a", r"\\nas\share", r"\nas\share", r"\\\nas\share",
         r"\\n-a.s$\x", r"\\nas", "\\\\nas\\", r"\\\\nas\\share", "/a1/b", "/12/b", "/a.b/c", "/a/",
         "/a /b", "x/a/b", "a@b.cd", "_@b.cd", "1@b.cd", ".@b.cd", "@b.cd", "a@b", "a@b.c", "a@b.c1",
         "a@b-c.de", "a@.cd", "a@b.cd.", "a@b.c.", "a@b.", "a@b.12", "http://[::1]/x", "http://",
         "http:///x", "http://1.2.3.4/", "http://x/", "http://x.y/", "http://.local/",
         "http://a.local", "http://a.b?token=x", "http://a.b#key=1", "http://a.b;sig=1",
         "http://a.b_auth=1", "http://a.b-key=1", "http://a.b&x=1", "http://a.b x?token=1",
         "http://u@a.b", "10.0.0.1", "10.0.0.1.", "10.0.0.1, and", "x10.0.0.1", ".10.0.0.1",
         "10.0.0.1x", "10.0.0", "10.0.0.", "10.0.0.1.2", "10.0.0.1...", "10.0.0.1... then",
         "10.0.0...", "10.2.89.0.whl", "10.1.2.3.post1", "10.0.0.1..2", "172.31.0.1",
         "172.32.0.1", "19.0.0.1",
         "hf_" + "a" * 24, "hf_" + "a" * 23, "hf_" + "a" * 23 + "\u00e9", "xhf_" + "a" * 24,
         "\u00e9hf_" + "a" * 24, "\u5740 10.0.0.1\u3002", "\u574010.0.0.1\uff0c", "\uff1a/data/a",
         "\u5728/home/a", "\u56fe/data/a", "caf\u00e9/a/b", "\u300cC:\\a", "\u5728\\\\nas\\a", '"NODES" "LINKS"', '"nodes" "edges"', '"nodes"', '"links"']

header = json.dumps({"__metadata__": {"x%d" % i: text for i, text in enumerate(TEXTS)}})
with open("texts.safetensors", "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header.encode())
lines = subprocess.run([os.environ["SFT"], "meta", "scrub", "--dry-run", "texts.safetensors"],
                       stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.splitlines()
why = dict(line[len("would remove "):].split(": ", 1) for line in lines
           if line.startswith("would remove "))
for i, text in enumerate(TEXTS):
    print("%-36s%s" % (text, why.get("x%d" % i, "-")))
