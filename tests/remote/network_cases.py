"""Proxies, and TLS with certificates that are good or not."""
import contextlib
import os
import time

import models
from certificates import Certificates
from hub import TOKEN, Hub
from matrix import all_three, usual
from proxy import Proxy
from faults import moved
from server import Site
from world import PASSWORD, QUERY, SECRETS, case, holds, quick, same

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
        w.info_fails("remote_network", "model.test", words=["--retries", 0],
                     env={"http_proxy": proxy.url, "NO_PROXY": "model.test"})
        w.info_fails("remote_network", "model.test", env={"http_proxy": proxy.url},
                     words=["--proxy", "", "--retries", 0])
        same(len(proxy.log), before, "requests to the proxy")


@case
def proxy_refuses(w):
    usual(w)
    with Proxy(refusal=403) as proxy:
        host = proxy.url[7:]
        w.info_fails("remote_denied", "403", env={"http_proxy": proxy.url})
        w.url = w.url.replace("http://", "https://")
        w.info_fails("remote_status", "proxy", host, "403", env={"https_proxy": proxy.url},
                     hint=False)
        same(len(proxy.log), 2, "not tried again")
        w.url = w.url.replace("https://", "http://")
        w.info_works(env={"http_proxy": proxy.url, "no_proxy": "127.0.0.1"})
        w.info_works(env={"http_proxy": proxy.url, "NO_PROXY": "*"})
    same(w.site.count(), 2, "requests that reached the server")


@case
def proxy_wants_a_password(w):
    usual(w)
    with Proxy(refusal=407) as proxy:
        w.url = w.url.replace("http://", "https://")
        w.info_fails("remote_status", "proxy", "407|password", hint=False,
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
        for _ in range(50):  # the server's thread counts when it has seen the end
            if not site.broken:
                time.sleep(0.1)
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
        w.info_fails("remote_tls", "TLS", "https", hint=False)
        same(w.site.count(), 0, "requests")


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


# ── The real names, by a proxy that has them all on this machine ──

@contextlib.contextmanager
def world_wide(w):
    """Origins S and T by TLS, and what sends every named host to S, those of storage to T."""
    with secure(w) as (site, env, _):
        first, second = (site.origins[name].server_address for name in "ST")
        hosts = {"model.test": first}
        hosts.update({name: second if name.startswith(("cas-", "b2.")) else first for name in (
            "huggingface.co", "hf.co", "cas-bridge.xethub.hf.co", "huggingface.co.evil.test",
            "evilhuggingface.co", "civitai.com", "b2.civitai.com", "civitai.com.evil.test")})
        with Proxy(hosts) as proxy:
            yield site, {**env, "https_proxy": proxy.url}


@case
def hub_by_its_name(w):
    """huggingface.co, its storage and those who are called nearly so."""
    with world_wide(w) as (site, env):
        site.origins["S"].url = "https://huggingface.co"
        site.origins["T"].url = "https://cas-bridge.xethub.hf.co"
        Hub(site, "S", "T").add("ns/m", {"model.safetensors": models.small(64, 16 << 10)})
        for w.url in ("hf://ns/m/model.safetensors",
                      "https://huggingface.co/ns/m/blob/main/model.safetensors",
                      "https://hf.co/ns/m/resolve/main/model.safetensors"):
            before = len(site.log)
            w.info_works(env=env)
            told = {(r.origin, r.header("Authorization")) for r in site.log[before:]}
            same(told, {("S", "Bearer " + TOKEN), ("T", None)}, w.url)
        for host in ("huggingface.co.evil.test", "evilhuggingface.co",
                     "model.test/huggingface.co", "huggingface.co@model.test"):
            w.url = "https://%s/ns/m/resolve/main/model.safetensors" % host
            before = len(site.log)
            w.run("info", w.url, wanted=None, env=env)
            for request in site.log[before:]:
                holds(TOKEN not in (request.header("Authorization") or ""), w.url)


@case
def civitai_by_its_name(w):
    """A download: its token for civitai.com alone, the name of the file by its header."""
    token = SECRETS["CIVITAI_API_TOKEN"]
    with world_wide(w) as (site, env):
        data = models.small(64, 16 << 10)
        site.put("S", "/api/download/models/7", b"")
        site.always("S GET /api/download/models/7", moved(
            "https://b2.civitai.com/file/neon.safetensors?X-Amz-Signature=" + QUERY, 307))
        site.put("T", "/file/neon.safetensors", data, headers=[
            ("Content-Disposition", 'attachment; filename="neon.safetensors"')])
        w.url = "https://civitai.com/api/download/models/7?type=Model"
        w.info_works(env=env)
        w.cat_works("layer.55.weight", env=env)
        same({r.header("Authorization") for r in site.asked("S")}, {"Bearer " + token})
        same({r.header("Authorization") for r in site.asked("T")}, {None})
        w.url = w.url.replace("civitai.com/", "civitai.com.evil.test/")
        before = len(site.log)
        w.info_works(env=env)
        same({r.header("Authorization") for r in site.log[before:]}, {None})
