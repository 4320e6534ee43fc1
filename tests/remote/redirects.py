"""Redirects, secrets in URLs, addresses that are not public, other schemes, --offline, --cache."""
import base64
import ipaddress
import os
import socket

import models
from hub import TOKEN
from matrix import KEEP, SLICE, all_three, usual
from faults import moved, status
from world import PASSWORD, QUERY, SECRETS, Wrong, at_most, case, holds, quick, same


def chain(w, length, path="/hop"):
    """The URL of the first of so many redirects to the file."""
    for i in range(length):
        w.site.put("A", "%s%d" % (path, i), b"")
        w.site.always("A GET %s%d" % (path, i), moved(
            "%s%d" % (path, i + 1) if i + 1 < length else "/m.safetensors", (301, 302, 303, 307,
                                                                            308)[i % 5]))
    return w.site.url("A", path + "0")


@quick
def five_redirects(w):
    usual(w)
    w.url = chain(w, 5)
    all_three(w)


@case
def six_redirects(w):
    usual(w)
    w.url = chain(w, 6)
    w.info_fails("remote_redirect", hint=False)
    at_most(w.site.count(), 6, "requests")


@case
def circle(w):
    w.url = w.site.put("A", "/a.safetensors", b"")
    w.site.always("A GET /a", moved("/a.safetensors"))
    w.info_fails("remote_redirect", hint=False)
    at_most(w.site.count(), 6, "requests")


@case
def relative_redirects(w):
    usual(w, path="/x/y/m.safetensors")
    for to in ("y/m.safetensors", "./y/m.safetensors", "/x/y/m.safetensors", "?a=b",
               "../x/y/m.safetensors", w.site.url("A", "/x/y/m.safetensors")[5:]):
        w.url = w.site.put("A", "/x/from", b"")
        if to == "?a=b":
            w.site.fault("A GET /x/from?a=b", moved("/x/y/m.safetensors"))
        w.site.fault("A GET /x/from", moved(to))
        try:
            w.info_works()
        except Wrong as error:
            raise Wrong("%s: %s" % (to, error)) from error
        w.site.faults.clear()


@quick
def redirects_that_are_refused(w):
    usual(w)
    for to in ("file:///etc/passwd", "gopher://127.0.0.1/x", "ftp://127.0.0.1/m", "javascript:0",
               "data:,x", "http://", "hf://ns/m/x.safetensors", "s3://b/k", "http://a b/",
               "http://127.0.0.1:99999/", "\\\\host\\share"):
        w.site.constant.clear()
        w.site.always("A GET /m", moved(to))
        before = w.site.count()
        try:
            w.info_fails("remote_redirect", hint=False)
            at_most(w.site.count() - before, 6, "requests")
        except Wrong as error:
            raise Wrong("%s: %s" % (to, error)) from error
    for to in ("", None):
        w.site.constant.clear()
        w.site.always("A GET /m", no_location(302, to))
        w.info_fails("remote_status", "302", hint=False)


def no_location(code, to):
    return status(code, b"", *([("Location", to)] if to is not None else []))


@quick
def to_another_origin(w):
    """Followed, without what was for the first: user and password stay."""
    w.authorized["A"] = set()
    usual(w)
    w.site.put("B", "/m.safetensors", models.small(64, 16 << 10))
    w.site.always("A GET /m", moved(w.site.url("B", "/m.safetensors")))
    plain = w.url
    w.url = plain.replace("http://", "http://user:%s@" % PASSWORD)
    all_three(w)
    holds(w.site.count("B"), "the other origin was asked")
    same([r.line() for r in w.site.asked("B") if r.header("Authorization")], [],
         "requests with Authorization")
    holds(all((r.header("Authorization") or "").startswith("Basic ")
              for r in w.site.asked("A")), "the first origin is told the user")


@case
def user_and_password(w):
    """Escapes of a URL's user are undone; a name alone has an empty password."""
    usual(w)
    plain = w.url
    for user, sent in (("us%%40er:%s%%3A1" % PASSWORD, "us@er:%s:1" % PASSWORD), ("me", "me:")):
        w.url = plain.replace("http://", "http://%s@" % user)
        w.info_works()
        same(base64.b64decode(w.site.log[-1].header("Authorization").split()[1]).decode(), sent)


@quick
def tokens_stay(w):
    """Tokens in the environment, and a URL of somebody else: nothing is sent to it."""
    usual(w)
    netrc = models.write(w.folder, "home/.netrc",
                         ("machine 127.0.0.1 login x password %s\n" % PASSWORD).encode())
    os.chmod(netrc, 0o600)
    w.url += "?huggingface.co"
    w.info_works()
    for name in ("huggingface.co", "civitai.com", "s3.amazonaws.com", "storage.googleapis.com"):
        w.url = w.site.put("A", "/%s/resolve/main/m.safetensors" % name,
                           models.small(64, 16 << 10))
        w.info_works()
        w.url = w.url.replace("http://", "http://%s@" % name)
        w.info_works()
    for request in w.site.log:
        given = request.header("Authorization") or ""
        holds(not any(secret in given for secret in SECRETS.values()), "Authorization: " + given)
    w.url = w.url.replace("storage.googleapis.com@", "")
    w.info_works()
    same(w.site.log[-1].header("Authorization"), None, "~/.netrc")


@quick
def query_is_hidden(w):
    """Sent as it is spelt, shown nowhere: not in JSON, errors, nor the name of a file."""
    usual(w)
    w.url += "?token=%s&x=%%2f+%%C3%%A4" % QUERY
    all_three(w)
    for request in w.site.log:
        same(request.query, w.url.partition("?")[2], "the query")
    w.site.always("A GET /m", moved("gopher://x/?" + QUERY))
    w.info_fails("remote_redirect", hint=False)
    w.site.constant.clear()
    w.url = w.url.replace("/m.", "/none.")
    w.info_fails("not_found")
    w.run("cat", w.url, "t", wanted=2)
    w.run("ls", w.url, "-v", wanted=2)


@case
def query_hidden_in_every_output(w):
    usual(w)
    w.url += "?token=" + QUERY
    for words in (["info", "--json"], ["info"], ["ls", "--json"], ["ls"], ["ls", "--tsv"],
                  ["check", "--json"], ["check"], ["meta", "list"], ["meta", "list", "--json"],
                  ["hash", "--algo", "autov3"], ["hash", "--json"], ["find", "layer"]):
        w.run(*words, w.url, wanted=None)
    w.run("diff", w.url, w.url + "2", wanted=None)
    w.run("select", "--json", w.url, "--keep", KEEP, "-o", "a.safetensors")
    w.run("convert", "--json", w.url, "-o", "b.safetensors", wanted=None)
    w.run("select", w.url, "--keep", KEEP, "-o", w.here, wanted=None)


@case
def query_not_in_output_files(w):
    """A selection tells nothing of where it came from."""
    usual(w)
    w.url += "?token=" + QUERY
    w.run("select", w.url, "--keep", KEEP, "-o", "a.safetensors")
    holds(QUERY.encode() not in w.read("a.safetensors"), "the query is in the file")


@case
def paths_as_spelt(w):
    """Escapes, dots and double slashes reach the server as they were typed."""
    for path in ("/a%20b.safetensors", "/a%2Fb.safetensors", "/x/./y/../m.safetensors",
                 "//m.safetensors", "/m+n.safetensors", "/%C3%A4.safetensors",
                 "/a;b=c,d.safetensors"):
        w.site.functions.clear()
        w.site.beneath("A", "/", answer_small)
        w.url = w.site.url("A", path)
        w.info()
        same(w.site.log[-1].target, path, "what was asked for")
    w.url = w.site.url("A", "/m.safetensors#part")
    w.info()
    same(w.site.log[-1].target, "/m.safetensors", "without the fragment")


def answer_small(request):
    import server
    return server.found(request, server.Resource(server.Memory(models.small())))


@case
def no_urls(w):
    """Refused before anything is sent."""
    for url in ("ftp://127.0.0.1/m.safetensors", "gopher://x/y", "http://", "http:///m",
                "http://a b/m.safetensors", "http://127.0.0.1:0/m", "http://127.0.0.1:70000/m",
                "https://exa\tmple/m", "http://[::1/m", "hf://onlyone", "hf://", "s3://", "gs://",
                "hf://a/b/../../c/d/x.safetensors", "http://h/\r\nX: y", "blob://x/y",
                "http://ex\u00e4mple.com/m", "http://a\\b/m"):
        w.url = url
        try:
            w.says(w.run("info", "--json", url, wanted=2).errors(), ["expected https://HOST"])
        except Wrong as error:
            raise Wrong("%r: %s" % (url, error)) from error


@quick
def offline(w):
    usual(w)
    w.info_fails("remote_offline", "--offline", words=["--offline"])
    w.cat_fails(SLICE, "offline", words=["--offline"])
    w.select_fails(KEEP, "offline", words=["--offline"])
    w.url = "hf://ns/m/x.safetensors"
    w.info_fails("remote_offline", words=["--offline"])
    w.info_fails("remote_offline", env={"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": w.site.url("A")})
    same(w.site.count(), 0, "requests")


@quick
def public_only(w):
    usual(w)
    port = w.url.split(":")[2]
    for host in ("127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0x7f000001", "0177.1",
                 "0.0.0.0", "[::ffff:127.0.0.1]", "10.0.0.1", "192.168.1.1", "172.16.0.1",
                 "169.254.169.254", "100.64.0.1", "[fe80::1]", "[fc00::1]", "224.0.0.1",
                 "host.local", "localhost.", "127.0.0.1."):
        w.url = "http://%s:%s" % (host, port)
        try:
            w.info_fails("remote_private", words=["--public-only"])
        except Wrong as error:
            raise Wrong("%s: %s" % (host, error)) from error
    w.url = "hf://ns/m/x.safetensors"
    w.info_fails("remote_private", words=["--public-only"],
                 env={"HF_ENDPOINT": w.site.url("A")})
    same(w.site.count(), 0, "requests")


@case
def public_only_of_a_name(w):
    """This machine's own name, as it resolves."""
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        return
    if not ipaddress.ip_address(address).is_global:
        w.url = "http://%s:1/m.safetensors" % socket.gethostname()
        w.info_fails("remote_private", words=["--public-only"])


@case
def public_only_and_a_proxy(w):
    usual(w)
    made = w.run("info", "--public-only", "--proxy", w.site.url("B"), w.url, wanted=2)
    w.says(made.errors(), ["proxy"])
    same(w.site.count(), 0, "requests")


@case
def cache_of_headers(w):
    """--cache: the same answers; a changed file is noticed; nothing secret is kept."""
    usual(w)
    w.url += "?token=" + QUERY
    words = ["--header-cache", os.path.join(w.folder, "cache")]
    for _ in range(3):
        w.info_works(*words)
    holds(os.listdir(words[1]), "something was kept")
    first = w.site.count()
    at_most(first, 3, "requests of three runs")
    w.put(models.small(64, 16 << 10, seed=5))
    w.url += "?token=" + QUERY
    w.info_works(*words)
    w.cat_works(SLICE, *words)
    for here, _, names in os.walk(words[1]):
        for name in names:
            with open(os.path.join(here, name), "r+b") as file:
                file.write(b"\0" * 100)
    w.info_works(*words)


@case
def cache_that_cannot_be_written(w):
    usual(w)
    made = w.run("info", "--header-cache", "/proc/none", w.url, wanted=2)
    w.says(made.errors(), ["cached headers"])


@case
def token_of_the_hub_elsewhere(w):
    """HF_ENDPOINT has the token, and a redirect to it from elsewhere has not."""
    usual(w)
    w.site.put("B", "/x", b"")
    w.site.always("B GET /x", moved(w.url))
    w.url = w.site.url("B", "/x")
    w.info_works(env={"HF_ENDPOINT": w.site.url("A")})
    same([r.line() for r in w.site.log if TOKEN in (r.header("Authorization") or "")
          and r.origin == "B"], [], "requests with the token")
    w.authorized["A"] = {TOKEN}
