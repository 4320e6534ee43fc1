#!/usr/bin/env python3
"""Writes pages of section 3 of the manual from the public headers.

    tools/manual3.py OUT HEADER...

safetensors.h gives a page for each of its groups, safetensors_errors.3 for "Errors: ..."; every
other header gives one. A function's name is a page that leads to that of its group. Text is that
of the comments: what they say is not said again here. Tests: tests/docs.py.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BANNER = re.compile(r"^/\* ── (.*?) ─+ \*/$", re.M)
# Guards, includes and what C++ needs.
FRAME = re.compile("|".join((
    r"^#ifdef __cplusplus\n.*?^#endif\n",
    r"^#ifndef SFT_SAFETENSORS\w*_H\n(?:#error[^\n]*\n#endif\n|#define[^\n]*\n)",
    r"^#include[^\n]*\n", r"^#ifdef SFT_PREFIX\n.*?^#endif\n",
    r"^#define SFT_EXPERIMENTAL_\w+ 1\n",
    r"^#ifndef SFT_API\n.*?^#endif\n#endif\n",
    r"^#if defined\(__GNUC__\)\n#define SFT_NODISCARD.*?^#endif\n",
    r"^#endif\n\Z")), re.M | re.S)
FUNCTION = re.compile(r"^SFT_API [^;{]*?\b(sft_\w+)\(", re.M | re.S)


def escaped(text):
    """Text for roff: no line of it is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def paragraphs(comment):
    """The lines of a comment without its marks, in paragraphs."""
    lines = [re.sub(r"^ ?\* ?", "", line).rstrip() for line in comment.split("\n")]
    return re.sub(r"\n{2,}", "\n\n", "\n".join(lines).strip()).split("\n\n")


def prose(comment):
    """Roff of a comment: paragraphs, lists, and what is indented as it is."""
    out = []
    comment = re.sub(r"\s*(?:\w+: )?@since (\d+\.\d+)[.;]?", r" (Since \1.)", comment)
    for paragraph in paragraphs(comment):
        kind = None
        out.append(".PP")
        for line in paragraph.split("\n"):
            item = re.match(r" {2}- (.*)", line)
            if item:
                new = "item"
            elif kind == "item" and line.startswith("    "):
                new = "item"
            elif line.startswith("   "):
                new = "code"
            else:
                new = "text"
            if (new == "code") != (kind == "code"):
                out.append(".nf" if new == "code" else ".fi")
            if kind == "item" and new == "text":
                out.append(".PP")
            if item:
                out.append(".IP \\(bu 2")
            kind = new
            out.append(escaped((item[1] if item else line) if kind == "code" or item
                               else line.strip()))
        if kind == "code":
            out.append(".fi")
    while ".fi" in out[:2]:
        out.remove(".fi")
    return out


def declared(code):
    """Declarations, with functions on lines of their own and no words of the preprocessor."""
    def function(found):
        text = " ".join(found[0].replace("SFT_API ", "").replace("SFT_NODISCARD ", "").split())
        lines = [""]
        for argument in re.split(r"(?<=,) ", text):
            if lines[-1] and len(lines[-1]) + len(argument) > 75:
                lines.append("   ")
            lines[-1] += " " + argument if lines[-1] else argument
        return "\n".join(lines)
    return re.sub(r"^SFT_API [^;]*;", function, code, flags=re.M)


def body(text):
    """Roff of a group: each declaration, then its comment; that of a header stands before."""
    out = []
    first = FRAME.sub("", declared(re.split(r"^/\*", text, maxsplit=1, flags=re.M)[0])).strip("\n")
    if first:
        out += [".PP", ".nf", *escaped(first).split("\n"), ".fi"]
    for comment, code in re.findall(r"^/\*(?! ──)(.*?)\*/[ \t]*$(.*?)(?=^/\*|\Z)", text,
                                    re.M | re.S):
        code = declared(FRAME.sub("", code)).strip("\n")
        code = re.sub(r"\n{2,}", "\n\n", code)
        if code.strip() and "Conventions as in" in comment:
            out += [*prose(comment), ".PP", ".nf", *escaped(code).split("\n"), ".fi"]
        elif code.strip():
            out += [".PP", ".nf", *escaped(code).split("\n"), ".fi"]
            out += [".RS 4", *prose(comment)[1:], ".RE"]
        else:
            out += prose(comment)
    return out


def sections(text):
    """[(title or "", text)] of a header."""
    parts = BANNER.split(text)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2])]


def groups(header, text):
    """[(page, title, [(subtitle, text)])] of a header."""
    stem = os.path.basename(header)[:-len(".h")]
    first = re.match(r"/\* (?:libsafetensors: )?(.*?)[.:;](?:\s|$)", text, re.S)[1]
    title = " ".join(re.sub(r"^ \* ?", "", first, flags=re.M).split())
    parts = sections(text)
    if stem != "safetensors":
        return [(stem, title, parts)]
    out = [(stem, title, parts[:1])]
    for name, part in parts[1:]:
        slug = re.sub(r"\W+", "_", re.split(r"[:,]", name)[0].lower())
        what = name.replace(": ", ", ")
        out.append(("safetensors_" + slug, what[0].lower() + what[1:] + " (libsafetensors)",
                    [("", part)]))
    return out


def page(name, title, parts, header, others, told):
    functions = [found for _, text in parts for found in FUNCTION.findall(text)]
    names = ", ".join(sorted({name, *functions}, key=lambda n: (n != name, n)))
    version, day = told
    out = ['.TH "%s" "3" "%s" "safetensors %s" "Library Functions"' % (name.upper(), day, version),
           ".SH NAME", escaped("%s " % names) + "\\- " + escaped(title), ".SH SYNOPSIS", ".nf",
           "#include <%s>" % os.path.basename(header), "",
           escaped("cc program.c $(pkg-config --cflags --libs safetensors)"), ".fi",
           ".SH DESCRIPTION"]
    for subtitle, text in parts:
        if subtitle:
            out.append(".SS " + escaped(subtitle))
        out += body(text)
    out.append(".SH SEE ALSO")
    also = sorted(other for other in others if other != name) if name == "safetensors" else [
        "safetensors"]
    out += [".BR %s (3)%s" % (escaped(other), "," if other != also[-1] else "") for other in also]
    text = "\n".join(out) + "\n"
    text = re.sub(r"^(\.S[HS] .*\n)\.PP\n", r"\1", text, flags=re.M)
    text = re.sub(r"^(\.RS 4\n)(?:\.PP\n)?", r"\1", text, flags=re.M)
    return text, functions


def pages(headers):
    """{file: text} of all. The C++ header and that of prefixes have no page."""
    texts, made = {}, {}
    headers = [h for h in headers if h.endswith(".h") and not h.endswith("_prefix.h")]
    for header in headers:
        with open(header, encoding="utf-8") as file:
            texts[header] = file.read()
    with open(os.path.join(ROOT, "cli", "support", "help.c"), encoding="utf-8") as file:
        day = re.search(r'MANUAL_DATE "([0-9-]+)"', file.read())[1]
    with open(os.path.join(ROOT, "include", "safetensors.h"), encoding="utf-8") as file:
        version = re.search(r'SFT_VERSION_STRING "(.+)"', file.read())[1]
    found = [(header, group) for header in headers for group in groups(header, texts[header])]
    others = [name for _, (name, _, _) in found]
    for header, (name, title, parts) in found:
        text, functions = page(name, title, parts, header, others, (version, day))
        made[name + ".3"] = text
        for function in functions:
            made[function + ".3"] = ".so man3/%s.3\n" % name
    return made


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, text in pages(sys.argv[2:]).items():
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
