"""--public-only where there are public addresses: in a network of our own, whose loopback device
has them."""
import contextlib
import fcntl
import os
import socket
import struct
import subprocess

import models
from faults import moved
from hub import Hub
from matrix import SLICE
from server import Site
from world import Wrong, alone, same

SIOCSIFADDR, SIOCGIFFLAGS, SIOCSIFFLAGS, UP = 0x8916, 0x8913, 0x8914, 1
PUBLIC, PRIVATE = "93.184.215.14", "10.1.2.3"


def give_addresses():
    """The loopback device of this network is switched on, and gets two more addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for name, address in (("lo", "127.0.0.1"), ("lo:1", PUBLIC), ("lo:2", PRIVATE)):
            request = struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0,
                                  socket.inet_aton(address))
            fcntl.ioctl(one, SIOCSIFADDR, request)
        flags = struct.unpack("16xH", fcntl.ioctl(one, SIOCGIFFLAGS, struct.pack("16s16x", b"lo"))
                              [:18])[0]
        fcntl.ioctl(one, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | UP))


@contextlib.contextmanager
def world_of_two(w):
    """Origin P at a public address, Q at a private one; the names of the hosts file."""
    give_addresses()
    hosts = models.write(w.folder, "hosts", ("%s model.test\n%s inner.test\n127.0.0.1 loop.test\n"
                                             % (PUBLIC, PRIVATE)).encode())
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    with Site("PQ", addresses={"P": PUBLIC, "Q": PRIVATE}) as site:
        for origin in "PQ":
            w.url = site.put(origin, "/m.safetensors", models.small(64, 16 << 10))
        w.local = models.write(os.path.join(w.folder, "local"), "m.safetensors",
                               models.small(64, 16 << 10))
        yield site


@alone
def public_addresses(w):
    """What is public is read, by address and by name; what resolves to others is not."""
    with world_of_two(w) as site:
        ports = {name: origin.server_address[1] for name, origin in site.origins.items()}
        for w.url in (site.url("P", "/m.safetensors"),
                      "http://model.test:%d/m.safetensors" % ports["P"]):
            w.info_works("--public-only")
            w.cat_works(SLICE, "--public-only")
        for host in (PRIVATE, "inner.test", "loop.test"):
            w.url = "http://%s:%d/m.safetensors" % (host, ports["Q"])
            w.info_fails("remote_private", words=["--public-only"])
        same(site.count("Q"), 0, "requests to what is private")


@alone
def public_redirects(w):
    """Checked again for each hop: a public server cannot send us to a private one."""
    with world_of_two(w) as site:
        port = site.origins["Q"].server_address[1]
        w.url = site.url("P", "/r.safetensors")
        for host in (PRIVATE, "inner.test", "loop.test", "127.0.0.1", "localhost", "[::1]",
                     "169.254.169.254", "2130706433", "[::ffff:10.1.2.3]", "0x0a010203"):
            site.constant.clear()
            site.put("P", "/r.safetensors", b"")
            site.always("P GET /r", moved("http://%s:%d/m.safetensors" % (host, port)))
            try:
                w.info_fails("remote_private", words=["--public-only"])
            except Wrong as error:
                raise Wrong("%s: %s" % (host, error)) from error
        same(site.count("Q"), 0, "requests to what is private")
        site.constant.clear()
        site.always("P GET /r", moved(site.url("P", "/m.safetensors")))
        w.info_works("--public-only")


@alone
def public_hub(w):
    """A Hub at a public address whose storage is at a private one."""
    with world_of_two(w) as site:
        hub = Hub(site, "P", "Q")
        hub.add("ns/m", {"model.safetensors": models.small(64, 16 << 10)})
        w.url = "hf://ns/m/model.safetensors"
        w.info_fails("remote_private", words=["--public-only"],
                     env={"HF_ENDPOINT": hub.endpoint})
        same(site.count("Q"), 0, "requests to what is private")
        w.info_works(env={"HF_ENDPOINT": hub.endpoint})
