"""Seeds of fuzz_remote: a URL, and what servers answer."""
import json
import struct

COMMIT, SHA256 = "0123456789abcdef0123456789abcdef01234567", "ab" * 32
HEAD = b'{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
MODEL = struct.pack("<Q", len(HEAD)) + HEAD + b"abcd"
RANGE = {"Content-Range": "bytes 0-%d/%d" % (len(MODEL) - 1, len(MODEL)), "ETag": '"e"'}
LARGE = {"X-Repo-Commit": COMMIT, "X-Linked-Size": str(len(MODEL)),
         "X-Linked-Etag": '"%s"' % SHA256, "Location": "https://cdn.test/x?s=1"}


def answer(status, body=b"", headers=()):
    lines = [str(status)] + ["%s: %s" % item for item in dict(headers).items()]
    return ("\n".join(lines) + "\n\n").encode() + (body.encode() if isinstance(body, str)
                                                   else body)


def exchange(url, *answers):
    return url.encode() + b"\n" + b"\x1e".join(answers)


def xml(text):
    return '<?xml version="1.0"?>' + text


def remotes():
    model = answer(206, MODEL, RANGE)
    entry = {"type": "file", "path": "a/b", "size": 3, "lfs": {"oid": SHA256, "size": 3}}
    other = {"type": "file", "path": "c\u00e9", "size": 1}
    pages = {"Link": '</api/models/o/n/tree/%s?cursor=1>; rel="next"' % COMMIT}
    error = "<Error><Code>%s</Code><Message>because</Message></Error>"
    listing = ("<ListBucketResult>%s<Contents><Key>p/a</Key><Size>3</Size></Contents>"
               "<CommonPrefixes><Prefix>p/d/</Prefix></CommonPrefixes></ListBucketResult>")
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    return {
        "hub": exchange("hf://o/n/m.safetensors", answer(302, "Found", LARGE), model),
        "hub-renamed": exchange("hf://datasets/o/n@refs/pr/1/m",
                                answer(307, "", {"Location": "/new/n"}), model),
        "hub-list": exchange("hf://o/n", answer(200, json.dumps({"sha": COMMIT})),
                             answer(200, json.dumps([entry]), pages),
                             answer(200, json.dumps([other]))),
        "hub-gated": exchange("https://huggingface.co/o/n/blob/main/x",
                              answer(403, "no", {"X-Error-Code": "GatedRepo"})),
        "web": exchange("https://h.test/m.safetensors?sig=1",
                        answer(301, "", {"Location": "../n?s=2#x"}), model),
        "web-whole": exchange("http://h.test/m",
                              answer(200, MODEL, {"Content-Length": str(len(MODEL))}),
                              answer(200, MODEL)),
        "web-busy": exchange("https://h.test/m", answer(429, "slow", {
            "RateLimit": '"resolvers";r=0;t=55', "Retry-After": "Sat, 21 Nov 2026 12:00:00 GMT"})),
        "web-html": exchange("https://u:p@h.test/m", answer(200, "<html>log in</html>", {
            "Content-Type": "text/html", "Content-Encoding": "gzip"})),
        "s3": exchange("s3://bucket/m.safetensors", model),
        "s3-region": exchange("s3://bucket/m", answer(301, error % "PermanentRedirect", {
            "x-amz-bucket-region": "us-west-2"}), model),
        "s3-clock": exchange("s3://bucket/m", answer(403, error % "RequestTimeTooSkewed", {
            "Date": "Sat, 21 Nov 2026 12:00:00 GMT"}), model),
        "s3-list": exchange("s3://bucket/p/", answer(200, xml(listing % more)),
                            answer(200, listing % "<!-- x --><![CDATA[y]]>&amp;")),
        "gs": exchange("gs://bucket/m", answer(403, error % "AccessDenied")),
        "civitai": exchange("https://civitai.com/api/download/models/7",
                            answer(307, "", {"Location": "https://r2.test/x?X-Amz-Signature=1"}),
                            answer(206, MODEL, {**RANGE, "Content-Disposition":
                                                "attachment; filename*=UTF-8''x%20y"})),
    }


def remote_dictionary():
    words = ["hf://", "s3://", "gs://", "https://", "http://hub.test", "huggingface.co", "hf.co",
             "civitai.com", "/resolve/", "/blob/", "@refs/pr/", "%2F", "%2e%2e", "datasets/",
             "Content-Range", "bytes ", "bytes */", "Content-Length", "Content-Encoding", "ETag",
             "Location", "Link", "rel=\\\"next\\\"", "Retry-After", "RateLimit", "r=0", "t=",
             "Last-Modified", "X-Repo-Commit", "X-Linked-Etag", "X-Linked-Size", "X-Error-Code",
             "RepoNotFound", "GatedRepo", "multipart/byteranges", "x-amz-bucket-region",
             "<ListBucketResult", "<Contents>", "<Key>", "<Size>", "IsTruncated", "&#x", "lfs",
             "oid", "path", "directory", "\\x1e", "\\x0a\\x0a", COMMIT]
    return "".join('"%s"\n' % word for word in words)
