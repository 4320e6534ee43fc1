"""Seeds of fuzz_answer: its first byte chooses the reader."""

ANSWER, REDIRECT, URL, HOST, DATE, XML, INI, HUB = range(8)

HEADS = {
    "part": "Content-Range: bytes 0-9/100\nContent-Length: 10\nETag: \"x\"\n",
    "no-part": "Content-Range: bytes */100\n",
    "two-parts": "Content-Range: bytes 0-9/100\nContent-Range: bytes 0-9/*\n",
    "two-lengths": "Content-Length: 5, 6\n",
    "weak": "ETag: W/\"x\"\nLast-Modified: Sat, 21 Nov 2026 12:00:00 GMT\n",
    "busy": "Date: Sun, 06 Nov 1994 08:49:37 GMT\nRetry-After: Sun, 06 Nov 1994 08:51:37 GMT\n",
    "limit": "RateLimit: \"resolvers\";r=0;t=55, \"pages\";r=1;t=9\nRetry-After: 7\n",
    "limits": "RateLimit: limit=10, remaining=0, reset=5\nRateLimit-Remaining: 0\n"
              "X-RateLimit-Reset: 1795262460\n",
    "moved": "Location: https://b.example/x?y\nX-Repo-Commit: " + "0af1" * 10
             + "\nX-Linked-Size: 548105171\nX-Linked-Etag: \"" + "0af1" * 16 + "\"\n",
    "next": "Link: <https://a/?cursor=x>; rel=\"next\", <b>; rel=xet-auth\n",
    "named": "Content-Disposition: attachment; filename=\"a\\\"b\"; "
             "filename*=UTF-8''%c3%a4.bin\n",
    "denied": "X-Error-Code: GatedRepo\nX-Error-Message: no\nx-amz-bucket-region: eu-1\n\n"
              "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
    "page": "Content-Type: text/html; charset=utf-8\nContent-Encoding: gzip\n\n"
            "<html><title>403</title>",
    "parts": "Content-Type: multipart/byteranges; boundary=x\n"
             "X-Goog-Stored-Content-Encoding: gzip\n",
}
LOCATIONS = ["https://a/b/c?d\n../e/./f?g#h", "http://a:8/b\n//c/d", "https://a/b\n?c d",
             "https://a\n/b/../c", "https://u:p@a/b\nc:d", "https://a/b\nfile:///etc/passwd"]
URLS = ["https://u:p@a.example:8080/b/c?d=e#f", "http://[::1]:1/", "HTTPS://a?", "s3://k:s@b/c?d",
        "https://u:p/x@a/", "a%2fb%C3%A4"]
HOSTS = ["127.0.0.1\n127.0.0.0/8", "0x7f.1\n*", "2130706433\n.example", "017700000001\n",
         "[::ffff:127.0.0.1]\nfd00::/8, [::1]:80", "[64:ff9b::10.0.0.1]\n::1",
         "a.localhost\nexample.com:80 a", "[fe80::1]\n10.0.0.0/33", "huggingface.co.\nco"]
DATES = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
         "Sun Nov  6 08:49:37 1994"]
XMLS = ["<?xml version=\"1.0\"?><Error><Code>a&amp;b</Code></Error>",
        "<a:b xmlns:a=\"x\"><c/><Key><![CDATA[x]]>&#65;&#x42;</Key><!-- - --></a:b>"]
INIS = ["[default]\naws_access_key_id = a\n# b\ns3 =\n  addressing_style = path\n",
        "[profile x]\nregion=eu\n"]
NAMES = ["hf://ns/m", "hf://datasets/ns/m@refs/pr/1/a/b", "hf://ns/m@v%2F1/x.safetensors",
         "https://huggingface.co/ns/m/resolve/main/a.safetensors?download=true"]


def answers():
    rows = {"answer-" + name: (ANSWER, text) for name, text in HEADS.items()}
    for name, reader, texts in (("redirect", REDIRECT, LOCATIONS), ("url", URL, URLS),
                                ("host", HOST, HOSTS), ("date", DATE, DATES), ("xml", XML, XMLS),
                                ("ini", INI, INIS), ("hub", HUB, NAMES)):
        rows.update(("%s-%d" % (name, i), (reader, text)) for i, text in enumerate(texts))
    return {name: bytes([reader]) + text.encode() for name, (reader, text) in rows.items()}


def answer_dictionary():
    words = {line.split(":")[0] + ":" for text in HEADS.values() for line in text.split("\n")
             if ": " in line}
    words |= {"bytes ", "*/", "GMT", "W/", "rel=", "next", "filename*=", "UTF-8''", ";r=0;t=",
              "https://", "http://", "//", "../", "?", "#", "@", "%2F", "::ffff:", "64:ff9b::",
              "127.0.0.1", "0x7f", "/8", "<![CDATA[", "]]>", "&amp;", "&#x", "<!--", "-->", "<?",
              "hf://", "refs/pr/", "datasets/", "/resolve/", "[profile "}
    return "".join('"%s"\n' % word for word in sorted(words))
