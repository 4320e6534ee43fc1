#!/usr/bin/env python3
"""s3:// and gs:// against moto, which checks every signature as S3 does.

  tests/remote/s3_cases.py [-v]     with a Python that has moto; closes with "N passed, M failed"
"""
import hashlib
import json
import logging
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import boto3
import botocore.config
import moto.settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

import models

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
BUCKET, DOTTED, PUBLIC = "models", "models.with.dots", "public-models"
KEYS = ["model.safetensors", "a b", "a=b", "a+b", "\u00e4.bin", "100%", "%41", "(x)", "~t", "a:b@c",
        ",", ";", "a&b", "a#b", "a?b=c", "'q'", '"q"', "[1]", "{2}", "^", "|", "<x>", "a*b",
        "$HOME",
        "\u6a21\u578b/\u6743", "\U0001f642", "e\u0301", "trailing ", "a/b/c/d", "a%2Fb", "x.y/.z"]


class Store:
    """moto's server, its users and what the buckets hold."""

    def __init__(self, folder):
        self.folder = folder
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        self.url = "http://127.0.0.1:%d" % self.server.get_host_and_port()[1]
        self.data = random.Random(18).randbytes(3_000_000)
        self.s3 = self.client("s3")
        self.user()
        self.fill()

    def client(self, service):
        return boto3.client(service, endpoint_url=self.url, region_name="eu-west-1",
                            aws_access_key_id="setup", aws_secret_access_key="setup",
                            config=botocore.config.Config(s3={"addressing_style": "path"}))

    def user(self):
        iam, sts = self.client("iam"), self.client("sts")
        allow = json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]})
        trust = json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}]})
        iam.create_user(UserName="reader")
        iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=allow)
        made = iam.create_access_key(UserName="reader")["AccessKey"]
        self.keys = (made["AccessKeyId"], made["SecretAccessKey"])
        role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)["Role"]
        iam.put_role_policy(RoleName="reader", PolicyName="read", PolicyDocument=allow)
        made = sts.assume_role(RoleArn=role["Arn"], RoleSessionName="tests")["Credentials"]
        self.session = (made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])

    def fill(self):
        for bucket in (BUCKET, DOTTED, PUBLIC):
            self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={
                "LocationConstraint": "eu-west-1"})
        self.s3.put_object(Bucket=DOTTED, Key="model.safetensors", Body=self.data)
        self.s3.put_object(Bucket=PUBLIC, Key="model.safetensors", Body=self.data,
                           ACL="public-read")
        for key in KEYS:
            self.s3.put_object(Bucket=BUCKET, Key=key, Body=self.data[:len(key) * 1000])
        self.s3.put_object(Bucket=BUCKET, Key="model.safetensors", Body=self.data)
        self.local = os.path.join(self.folder, "llm")
        models.sharded(self.local, 4)
        for name in sorted(os.listdir(self.local)):
            self.s3.upload_file(os.path.join(self.local, name), BUCKET, "llm/" + name)
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for number in range(2300):  # three pages
            key = "many/%04d/x" if number % 10 == 0 else "many/%04d & \u00e4+.bin"
            backend.put_object(BUCKET, key % number, b"x" * (number % 7))

    def environment(self, keys, **more):
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return {"HOME": self.folder, "AWS_ENDPOINT_URL": self.url, "AWS_REGION": "eu-west-1",
                **dict(zip(names, keys)), **more}


class Run:
    """The file of a URL, read; meanwhile(), if it is given, is called when it has been opened."""

    def __init__(self, environment, *words, meanwhile=None):
        program = [os.path.join(BUILD, "tests", "remote_read"), *(["-w"] if meanwhile else [])]
        with subprocess.Popen([*program, *words], env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as made:
            if meanwhile:
                same(made.stdout.readline(), b"open\n")
                meanwhile()
            out, err = made.communicate(b"\n", timeout=120)
        self.status, self.out, self.err = made.returncode, out.decode(), err.decode()
        for name, value in environment.items():
            if name.endswith(("_ACCESS_KEY", "_TOKEN")):
                holds(value not in self.out + self.err, "%s is shown: %s" % (name, self.err))


def same(found, wanted):
    if found != wanted:
        raise AssertionError("expected %.300r, found %.300r" % (wanted, found))


def holds(ok, what):
    if not ok:
        raise AssertionError(what)


def line(data):
    return "%s %d\n" % (hashlib.sha256(data).hexdigest(), len(data))


def fails(run, code, *parts):
    same(run.status, 1)
    for part in (code + ": ", *parts):
        holds(part in run.err, "expected %r in %r" % (part, run.err))


# ── Cases ──

def replaced(store):
    """An object that is put anew between two ranges: never bytes of both."""
    url = "s3://%s/replaced" % DOTTED
    unchecked = moto.settings.INITIAL_NO_AUTH_ACTION_COUNT

    def put(data):
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
        store.s3.put_object(Bucket=DOTTED, Key="replaced", Body=data)
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = unchecked

    put(store.data)
    run = Run(store.environment(store.keys), url, "2000000", "2000010",
              meanwhile=lambda: put(store.data[::-1]))
    fails(run, "remote_changed")
    same(run.out, "")


def whole(store):
    """All bytes, by several connections."""
    run = Run(store.environment(store.keys), "s3://%s/model.safetensors" % BUCKET)
    same((run.err, run.out), ("", line(store.data)))


def ranges(store):
    """Ranges at the beginning, the end and in between; nothing else is fetched."""
    spans = [(0, 8), (1_000_000, 1_000_500), (2_999_999, 3_000_000)]
    words = [str(number) for span in spans for number in span]
    run = Run(store.environment(store.keys), "-v", "s3://%s/model.safetensors" % BUCKET, *words)
    same(run.out, "".join(line(store.data[begin:end]) for begin, end in spans))
    for told in run.err.splitlines():
        holds(" -> 206, " in told, told)


def keys_of_all_kinds(store):
    """Every key is asked for, and signed, as S3 spells it."""
    for key in KEYS:
        if key == "model.safetensors":
            continue
        run = Run(store.environment(store.keys), "s3://%s/%s" % (BUCKET, key))
        same((key, run.err, run.out), (key, "", line(store.data[:len(key) * 1000])))


def dots_in_the_bucket(store):
    run = Run(store.environment(store.keys), "s3://%s/model.safetensors" % DOTTED, "0", "10")
    same((run.err, run.out), ("", line(store.data[:10])))


def session(store):
    """Temporary keys of a role."""
    run = Run(store.environment(store.session), "s3://%s/model.safetensors" % BUCKET, "0", "10")
    same((run.err, run.out), ("", line(store.data[:10])))
    run = Run(store.environment(store.session[:2] + ("another",)),
              "s3://%s/model.safetensors" % BUCKET, "0", "10")
    fails(run, "remote_denied", "the session token is not accepted")


def profile(store):
    """Keys, region and endpoint of the AWS command's files."""
    os.makedirs(os.path.join(store.folder, ".aws"), exist_ok=True)
    with open(os.path.join(store.folder, ".aws", "config"), "w", encoding="utf-8") as file:
        file.write("[profile lab]\nregion = eu-west-1\nendpoint_url = %s\n" % store.url)
    with open(os.path.join(store.folder, ".aws", "credentials"), "w", encoding="utf-8") as file:
        file.write("[lab]\naws_access_key_id = %s\naws_secret_access_key = %s\n" % store.keys)
    run = Run({"HOME": store.folder, "AWS_PROFILE": "lab"},
              "s3://%s/model.safetensors" % BUCKET, "0", "10")
    same((run.err, run.out), ("", line(store.data[:10])))


def wrong_keys(store):
    url = "s3://%s/model.safetensors" % BUCKET
    run = Run(store.environment((store.keys[0], "not the secret")), url, "0", "10")
    fails(run, "remote_denied", "the secret key is not that of the access key")
    run = Run(store.environment(("AKIANOBODY", store.keys[1])), url, "0", "10")
    fails(run, "remote_denied", "does not know the access key")


def missing(store):
    run = Run(store.environment(store.keys), "s3://%s/none" % BUCKET)
    fails(run, "not_found", "no such object in the bucket (NoSuchKey)")
    run = Run(store.environment(store.keys), "s3://no-such-models/none")
    fails(run, "not_found", "no such bucket (NoSuchBucket)")


def listed(store, bucket, prefix):
    """What a folder holds, as boto3 tells it."""
    out = []
    for page in store.s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, Delimiter="/"):
        out += [entry["Prefix"][len(prefix):] for entry in page.get("CommonPrefixes", [])]
        out += ["%s %d" % (entry["Key"][len(prefix):], entry["Size"])
                for entry in page.get("Contents", []) if entry["Key"] != prefix]
    return sorted(out)


def folders(store, expected):
    for folder, wanted in expected.items():
        run = Run(store.environment(store.keys), "-l", folder)
        same((folder, run.err, sorted(run.out.splitlines())), (folder, "", wanted))
    fails(Run(store.environment(store.keys), "-l", "s3://%s/nothing/" % BUCKET), "not_found",
          "this folder has no objects")
    fails(Run(store.environment(store.keys), "-l", "s3://no-such-models/"), "not_found",
          "no such bucket")


def command(store):
    """A model of several shards reads as the same one on disk."""
    def output(*words):
        made = subprocess.run([os.path.join(BUILD, "safetensors"), *words], timeout=120,
                              env={**store.environment(store.keys), "NO_COLOR": "1"},
                              capture_output=True, check=False)
        holds(store.keys[1].encode() not in made.stdout + made.stderr, "the key is shown")
        return made.returncode, made.stdout, made.stderr.decode()

    index, tensor = "model.safetensors.index.json", "model.layers.1.mlp.up_proj.weight"
    folder = "s3://%s/llm/" % BUCKET
    for words in (("cat", index, tensor + "[3, :8]"), ("ls", index)):
        wanted, found = ([words[0], *(place + word if word == index else word
                                      for word in words[1:])]
                         for place in (store.local + "/", folder))
        local, remote = output(*wanted), output(*found)
        same(remote[2], "")
        same(remote[:2], (0, local[1].replace(store.local.encode() + b"/", folder.encode())))
    made = [os.path.join(store.folder, name) for name in ("a.safetensors", "b.safetensors")]
    for place, out in zip((store.local + "/", folder), made):
        status, _, errors = output("select", place + index, "--keep", "model.layers.0.*", "-o", out)
        same((status, errors), (0, ""))
    with open(made[0], "rb") as first, open(made[1], "rb") as second:
        same(first.read() == second.read(), True)
    status, text, errors = output("info", "--json", folder)
    same((status, errors), (0, ""))
    same(len(json.loads(text)["results"]), 1)


def google(store):
    """The XML interface of Google Cloud Storage with HMAC keys is S3's."""
    environment = {"HOME": store.folder, "STORAGE_EMULATOR_HOST": store.url,
                   "GS_ACCESS_KEY_ID": store.keys[0], "GS_SECRET_ACCESS_KEY": store.keys[1]}
    run = Run(environment, "gs://%s/model.safetensors" % BUCKET, "0", "10")
    same((run.err, run.out), ("", line(store.data[:10])))
    run = Run({**environment, "GS_SECRET_ACCESS_KEY": "not the secret"},
              "gs://%s/model.safetensors" % BUCKET, "0", "10")
    fails(run, "remote_denied", "the secret key is not that of the access key")


def anonymous(store):
    """Without keys, and with keys that are not to be used."""
    url = "s3://%s/model.safetensors" % PUBLIC
    for run in (Run(store.environment(()), url, "0", "10"),
                Run(store.environment(("AKIANOBODY", "not the secret")), "-a", url, "0", "10")):
        same((run.err, run.out), ("", line(store.data[:10])))


SIGNED = [whole, ranges, keys_of_all_kinds, dots_in_the_bucket, session, profile, wrong_keys,
          missing, replaced, command, google]


def main():
    failed, count = 0, 0
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder)
        store = Store(folder)
        expected = {"s3://%s" % BUCKET: listed(store, BUCKET, ""),
                    "s3://%s/many/" % BUCKET: listed(store, BUCKET, "many/"),
                    "s3://%s/\u6a21\u578b" % BUCKET: listed(store, BUCKET, "\u6a21\u578b/")}
        cases = [(anonymous, (store,), float("inf"))]
        cases += [(function, (store,), 0) for function in SIGNED]
        cases += [(folders, (store, expected), 0)]
        for function, arguments, unchecked in cases:
            moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = unchecked
            count += 1
            try:
                function(*arguments)
                problem = None
            except (AssertionError, subprocess.TimeoutExpired) as error:
                problem = str(error)
                failed += 1
            if problem or "-v" in sys.argv[1:]:
                print("%s: %s" % (function.__name__, problem or "ok"), flush=True)
        store.server.stop()
    print("%d passed, %d failed" % (count - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
