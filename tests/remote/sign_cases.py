#!/usr/bin/env python3
"""Signatures of the library beside those of botocore, over keys, ports, sessions and queries.

  tests/remote/sign_cases.py      with a Python that has botocore; closes with "N passed, M failed"
"""
import datetime
import itertools
import os
import random
import subprocess
import sys
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
SAFE = "-_.~"

KEYS = ["model.safetensors", "a b", "a=b", "a+b", "ä.bin", "100%", "%41", "(x)", "~t", "a:b@c",
        "x//y", "./a", "../a", "a/./b", "a/../b", ",", ";", "a&b", "a?b", "a#b", "'q'", '"q"',
        "a\\b", "[1]", "{2}", "^", "`", "|", "<x>",
        "\u6a21\u578b/\u6743", "\U0001f642", "a*b", "$HOME", "!", "\u0301",
        "e\u0301", "trailing ", " leading", "a/b/c/d", "/", "//", "a%2Fb", "a%20b"]
PLACES = ["https://b.s3.eu-west-1.amazonaws.com/", "https://s3.amazonaws.com/b.with.dots/",
          "http://127.0.0.1:9000/bucket/", "https://minio.example:8443/bucket/",
          "http://Minio.Example/bucket/", "http://h:80/b/", "https://h:443/b/",
          "http://[::1]:9000/b/"]
QUERIES = ["list-type=2&delimiter=%2F&prefix=", "prefix=a%20b&list-type=2&encoding-type=url",
           "prefix=%C3%A4%2F&continuation-token=1ueGcxLPRx1Tr%2FXYExHnhbYLgveDs2J%2FwmOwM%3D",
           "a", "b=2&a=1&a=0", "A=1&a=2&B=3", "x-y=1&x=2", "a=&b", "versionId=abc", "é=%E2%82%AC"]


class Unsigned(botocore.auth.S3SigV4Auth):
    """What is signed of a body: nothing."""

    def payload(self, request):
        return "UNSIGNED-PAYLOAD"


def cases():
    random.seed(18)
    secrets = [("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""),
               ("ASIAEXAMPLE", "k" * 80, "FwoGZXIvYXdzEXAMPLE//token+with=signs==")]
    times = [1795263601, 0, 951782400, 4102444799, 1709164800]
    for number, (key, place) in enumerate(itertools.product(KEYS, PLACES)):
        yield (*secrets[number % 2], ["us-east-1", "eu-west-1", "auto"][number % 3], "s3",
               place + urllib.parse.quote(key, safe="/" + SAFE), times[number % 5])
    for number, (query, place) in enumerate(itertools.product(QUERIES, PLACES)):
        yield (*secrets[number % 2], "eu-central-1", "s3",
               place + "?" + urllib.parse.quote(query, safe="%&=" + SAFE), times[number % 5])
    for number in range(60):
        key = "".join(chr(random.choice([random.randrange(1, 128), random.randrange(128, 0xd800),
                                         random.randrange(0x10000, 0x20000)])) for _ in range(20))
        yield (*secrets[number % 2], "us-west-2", "s3",
               PLACES[number % len(PLACES)] + urllib.parse.quote(key, safe="/" + SAFE),
               random.randrange(1 << 32))


def oracle(key, secret, session, region, service, url, seconds):
    now = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    credentials = botocore.credentials.Credentials(key, secret, session or None)
    request = botocore.awsrequest.AWSRequest(method="GET", url=url)
    request.context["timestamp"] = stamp
    signer = Unsigned(credentials, service, region)
    real = botocore.auth.get_current_datetime
    botocore.auth.get_current_datetime = lambda *ignored, **more: now.replace(tzinfo=None)
    try:
        signer.add_auth(request)
    finally:
        botocore.auth.get_current_datetime = real
    return stamp, request.headers["Authorization"]


def main():
    wanted = list(cases())
    text = "".join("\t".join(map(str, case)) + "\n" for case in wanted)
    made = subprocess.run([os.path.join(BUILD, "tests", "sign")], input=text.encode(),
                          stdout=subprocess.PIPE, check=False)
    lines = made.stdout.decode().splitlines()
    failed = 0 if made.returncode == 0 and len(lines) == len(wanted) else 1
    if failed:
        print("expected %d lines, found %d (exit status %d)"
              % (len(wanted), len(lines), made.returncode))
    for case, line in zip(wanted, lines):
        expected = "\t".join(oracle(*case))
        if line != expected:
            failed += 1
            print("%s\n  expected %s\n  found    %s" % (case[5], expected, line))
    print("%d passed, %d failed" % (max(len(wanted) - failed, 0), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
