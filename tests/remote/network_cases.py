"""Proxies, and TLS with certificates that are good or not."""
import contextlib
import os

import models
from certificates import Certificates
from hub import TOKEN, Hub
from matrix import all_three, usual
from proxy import Proxy
from server import Site, moved
from world import PASSWORD, case, holds, quick, same

# ── Proxies ──

@quick
def proxy_needed(w):
    """The host is known to the proxy only."""
    usual(w)
    address = w.site.origins["A"].server_address
    w.url = "http://model.test/m.safetensors"
    with Proxy({"model.test": address}) as proxy:
        w.info_works(env={"http_proxy": proxy.url})
        w.info_works(env={"ALL_PROXY": proxy.url})
        w.info_works("--proxy", proxy.url)
        all_three(w, "--proxy", proxy.url)
        holds(all(method == "GET" and url.startswith("http://model.test/")
                  for method, url, _ in proxy.log), "asked by absolute URLs")
        before = len(proxy.log)
        w.info_fails("remote_network", "model.test",
                     env={"http_proxy": proxy.url, "NO_PROXY": "model.test"})
        w.info_fails("remote_network", "model.test", env={"http_proxy": proxy.url},
                     words=["--proxy", ""])
        same(len(proxy.log), before, "requests to the proxy")


@case
def proxy_refuses(w):
    usual(w)
    with Proxy(refusal=403) as proxy:
        host = proxy.url[7:]
        w.info_fails("remote_denied", "403", env={"http_proxy": proxy.url})
        w.url = w.url.replace("http://", "https://")
        w.info_fails("remote_network", "proxy", host, env={"https_proxy": proxy.url})
        w.url = w.url.replace("https://", "http://")
        w.info_works(env={"http_proxy": proxy.url, "no_proxy": "127.0.0.1"})
        w.info_works(env={"http_proxy": proxy.url, "NO_PROXY": "*"})
    same(w.site.count(), 2, "requests that reached the server")


@case
def proxy_wants_a_password(w):
    usual(w)
    with Proxy(refusal=407) as proxy:
        w.url = w.url.replace("http://", "https://")
        w.info_fails("remote_network", "proxy",
                     words=["--proxy", proxy.url.replace("http://", "http://u:%s@" % PASSWORD)])
    with Proxy() as proxy:
        w.url = w.url.replace("https://", "http://")
        w.info_works("--proxy", proxy.url.replace("http://", "http://u:%s@" % PASSWORD))
        holds(any(name.lower() == "proxy-authorization" for _, _, headers in proxy.log
                  for name in headers), "the proxy is told the user")
    same([r.line() for r in w.site.log if r.header("Proxy-Authorization")], [])


@case
def proxy_is_gone(w):
    usual(w)
    w.info_fails("remote_network", "proxy", "127.0.0.1:1", words=["--retries", 1],
                 env={"http_proxy": "http://127.0.0.1:1"})


@case
def proxy_of_nobody(w):
    """http_proxy is not for https, and HTTP_PROXY not for anything (httpoxy)."""
    usual(w)
    with Proxy() as proxy:
        w.info_works(env={"HTTP_PROXY": proxy.url, "https_proxy": proxy.url})
        same(proxy.log, [])


# ── TLS ──

@contextlib.contextmanager
def secure(w, name="good"):
    """A file on origin S by https; the world's own origins have none."""
    made = Certificates(os.path.join(w.folder, "certificates"))
    with Site("ST", tls={"S": made.context(name), "T": made.context("good")}) as site:
        data = models.small(64, 16 << 10)
        w.url = site.put("S", "/m.safetensors", data)
        w.local = models.write(w.folder, "m.safetensors", data)
        yield site, {"CURL_CA_BUNDLE": made.path("ca.pem")}, made


@case
def tls_good(w):
    with secure(w) as (site, env, made):
        all_three(w, env=env)
        w.info_works(env={"SSL_CERT_FILE": made.path("ca.pem")})
        with Proxy() as proxy:
            w.info_works(env={**env, "https_proxy": proxy.url})
            same([(method, url) for method, url, _ in proxy.log],
                 [("CONNECT", w.url[8:].split("/")[0])])


@case
def tls_unknown_authority(w):
    with secure(w, "unknown") as (site, env, _):
        w.info_fails("remote_tls", "certificate|issuer|authority", "CURL_CA_BUNDLE", env=env)
        same(site.count(), 0, "requests")
        same(site.broken, 1, "handshakes: not tried again")


@case
def tls_wrong_host(w):
    with secure(w, "wrong") as (site, env, _):
        w.info_fails("remote_tls", "host|name|127.0.0.1", env=env)
        same(site.count(), 0, "requests")


@case
def tls_expired(w):
    with secure(w, "expired") as (site, env, _):
        w.info_fails("remote_tls", "expired", env=env)
        same(site.count(), 0, "requests")


@case
def tls_none(w):
    """A server that speaks plain HTTP."""
    with secure(w):
        usual(w)
        w.url = w.url.replace("http://", "https://")
        w.info_fails("remote_tls")


@case
def tls_bad_bundle(w):
    with secure(w):
        w.info_fails("remote_tls", "none.pem", env={"CURL_CA_BUNDLE": "/none.pem"})


@case
def https_to_http(w):
    """Nobody is sent from https to http; between origins of https, yes."""
    with secure(w) as (site, env, _):
        w.site.put("A", "/m.safetensors", models.small(64, 16 << 10))
        site.always("S GET /m", moved(w.site.url("A", "/m.safetensors")))
        w.info_fails("remote_redirect", "http", env=env, hint=False)
        same(w.site.count(), 0, "requests by http")
        site.constant.clear()
        site.put("T", "/m.safetensors", models.small(64, 16 << 10))
        site.always("S GET /m", moved(site.url("T", "/m.safetensors")))
        w.info_works(env=env)
        usual(w)
        w.site.always("A GET /m", moved(site.url("T", "/m.safetensors")))
        w.info_works(env=env)


@case
def tls_hub(w):
    """A Hub by https whose files are by https elsewhere."""
    with secure(w) as (site, env, _):
        hub = Hub(site, "S", "T")
        hub.add("ns/m", {"model.safetensors": models.small(64, 16 << 10)})
        w.url = "hf://ns/m/model.safetensors"
        all_three(w, env={**env, "HF_ENDPOINT": hub.endpoint})
        same({r.header("Authorization") for r in site.asked("S")}, {"Bearer " + TOKEN})
        same({r.header("Authorization") for r in site.asked("T")}, {None})
