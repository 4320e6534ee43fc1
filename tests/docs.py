#!/usr/bin/env python3
"""Rules, codes, files, help and manual pages tell the same story.

  docs/format.md      a section for each rule, with the code, the level and the files
  docs/errors.md      a row for each code, equal to the library's own table
  tests/corpus        every file belongs to a rule; every rule has files that break it
  include/            every code of the enum has a row
  hints               every sft_hint is worded by the library and by both front ends, and used
  src, include        no text names an option of the command, Python or another front end
  -h, man pages       made from one table: equal words, every command has both; docs/cli.md too
  man 3               has each public function
  links               of every page lead somewhere; docs/pictures are what tools/pictures.py draws
  commands            in blocks of a page lack nothing but their files
  messages            one condition, one text: those of one code do not differ in small words only
  docs/design.md      names what tools/bundle.py puts together
  tests/README.md     names every suite of tests/run.py; the programs of its cases can be run
  tests/functions.md  names tests for every public function
"""
import fnmatch
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for _folder in ("tests/corpus", "tests/examples", "tools"):
    sys.path.insert(0, os.path.join(ROOT, _folder))
import driver
import make
import manual3
import sessions
import tested
import vocabularies

LEVEL_WORDS = {"0": "every level", "1": "default and strict", "2": "strict"}
CLASSES = ["none", "invalid", "unsupported", "limit", "io", "usage", "state", "cancelled"]
problems, checks = [], 0


def demand(ok, what):
    global checks
    checks += 1
    if not ok:
        problems.append(what)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


# ── Codes ──

def enum(name, prefix):
    """{name: number} of an enum in safetensors.h, and of its values in safetensors_codes.h."""
    body = re.search(r"typedef enum %s \{(.*?)\} %s;" % (name, name), read("include",
                     "safetensors.h"), re.S).group(1)
    rows = re.findall(prefix + r"(\w+) = (\d+)\b", body) + re.findall(
        r"#define %s(\w+) \(\(%s\)(\d+)\)" % (prefix, name), read("include", "safetensors_codes.h"))
    demand(len({number for _, number in rows}) == len(rows), "%s: a number twice" % name)
    return {word.lower(): int(number) for word, number in rows}


def check_codes(rows):
    codes = enum("sft_code", "SFT_")
    table = {row["name"]: int(row["number"]) for row in rows}
    demand(table == codes, "the error table and the enum differ: %s" % sorted(
        set(table.items()) ^ set(codes.items())))
    demand(len({row["sentence"] for row in rows}) == len(rows), "two codes share a sentence")
    for row in rows:
        demand(row["sentence"] and not row["sentence"].endswith("."),
               "%s: the sentence ends with a full stop" % row["name"])


def exceptions(rows):
    """{code: Python exception}, of the code or of its class."""
    text = read("bindings", "python", "src", "error.c").split("pysft_exception(")[1].split("\n}")[0]
    own = re.findall(r'\{ SFT_(\w+), "(\w*)" \}', text)
    of_class = dict(re.findall(r'case SFT_CLASS_(\w+): return "(\w+)"', text))
    rest = re.search(r'default: return "(\w+)"', text).group(1)
    out = {row["name"]: of_class.get(CLASSES[int(row["class"])].upper(), rest) for row in rows}
    demand(len(own) > 10 and of_class, "no exceptions are found in bindings/python/src/error.c")
    out.update((name.lower(), exception) for name, exception in own)
    demand(len(out) == len(rows), "bindings/python/src/error.c names codes that are none")
    return out


def table_row(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def quoted(word):
    return "`%s`" % word if word else ""


def check_errors(rows):
    text = read("docs", "errors.md").splitlines()
    raised, hints = exceptions(rows), {n: name for name, n in enum("sft_hint", "SFT_HINT_").items()}
    for row in rows:
        hint = hints[int(row["hint"])]
        wanted = table_row(row["number"], quoted(row["name"]), CLASSES[int(row["class"])],
                           quoted(raised[row["name"]]), row["rule"].strip("-"), row["sentence"],
                           quoted(hint if hint != "none" else ""))
        demand(wanted in text, "docs/errors.md lacks the row\n    " + wanted)
    known = {row["number"] for row in rows}
    for line in text:
        number = re.match(r"\| (\d+) \|", line)
        demand(not number or number.group(1) in known,
               "docs/errors.md has a row for no code: " + line)


# ── Hints ──

HINT_TABLES = (("src", "core", "base", "hint.c"), ("cli", "support", "hints.c"),
               ("bindings", "python", "src", "hints.c"))


def literal(text):
    """The text of C string literals that follow one another."""
    return re.sub(r"\\(.)", r"\1", "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text)))


def hint_words(path, prefix="SFT_HINT_"):
    """[(hint, its words or None)] of a table."""
    rows = re.findall(r"\{ %s(\w+),\s*(NULL|(?:\"(?:\\.|[^\"\\])*\"\s*)+) \}" % prefix, read(*path))
    return [(name.lower(), None if words == "NULL" else literal(words)) for name, words in rows]


def check_binding_options():
    """No text of the library or the command spells an option as Python, Spark or Ray give it."""
    names = re.findall(r'^    \{ \{ "(\w+)",', read("src", "dataset", "options.c"), re.M)
    demand("single_writer" in names and len(names) > 10, "no options are found in options.c")
    spelled = re.compile(r"(?<![\w.-])(?:%s|use_manifest|backend|framework)=" % "|".join(names))
    for path in sorted(glob.glob("src/**/*.c", root_dir=ROOT, recursive=True) +
                       glob.glob("cli/**/*.c", root_dir=ROOT, recursive=True)):
        for words in re.findall(r'"((?:\\.|[^"\\\n])*)"', read(path)):
            demand(not spelled.search(words), "%s: an option of a binding: %s" % (path, words))


def check_hints():
    numbers = enum("sft_hint", "SFT_HINT_")
    names = sorted((name for name in numbers if name != "none"), key=numbers.get)
    demand(sorted(numbers.values()) == list(range(len(numbers))), "two hints have one number")
    tables = [hint_words(path) for path in HINT_TABLES]
    for path, table in zip(HINT_TABLES, tables):
        known = names if path == HINT_TABLES[0] else [n for n in names if n in dict(table)]
        demand([name for name, _ in table] == known, "%s: not each hint once, in order: %s" %
               ("/".join(path), sorted(set(known) ^ {name for name, _ in table})))
    for name, words in tables[0]:
        demand(words, "src/core/base/hint.c has no words for %s" % name)
    text = read("docs", "errors.md").splitlines()
    own = [dict(table) for table in tables]
    for name in names:
        wanted = table_row(quoted(name), *(table.get(name) or "" for table in own))
        demand(wanted in text, "docs/errors.md lacks the row\n    " + wanted)
        for table in own:
            demand(not (table.get(name) or "").endswith("."), name + " ends with a full stop")
    for name, words in tables[1]:
        demand(not re.search(r"=(?:True|False|\")|\blibsafetensors\.", words or ""),
               "cli/support/hints.c words %s for Python" % name)
    check_binding_options()
    for name, words in tables[2]:
        words = re.sub(r'\bcommand "[^"]*"|"fallocate [^"]*"', "", words or "")
        demand(not re.search(r"(?<![\w-])--[a-z]|(?:^| )-[a-z] [A-Z]{2}|\"safetensors ", words),
               "bindings/python/src/hints.c words %s for the command" % name)
    sources = "".join(read(path) for path in glob.glob("src/**/*.c", root_dir=ROOT, recursive=True)
                      if not path.endswith("base/hint.c"))
    for name in names:
        demand(re.search(r"\bSFT_HINT_%s\b" % name.upper(), sources), "no code gives %s" % name)
    check_program_hints("cli", "CLI_HINT_")
    check_program_hints("bindings/python/src", "PYSFT_HINT_")


def check_program_hints(folder, prefix):
    """Hints of a front end's own have words and are given."""
    texts = {path: read(path) for path in glob.glob(folder + "/**/*.[ch]", root_dir=ROOT,
                                                    recursive=True)}
    table = next(path for path in texts if path.endswith("/hints.c"))
    own = hint_words((table,), prefix) + [
        (name.lower(), literal(words)) for name, words in
        re.findall(r'\bX\((\w+),[\s\\]*((?:"(?:\\.|[^"\\])*"[\s\\]*)+)\)', "".join(texts.values()))]
    used = {name.lower() for path, text in texts.items() if path.endswith(".c") and path != table
            for name in re.findall(r"\b%s(\w+)" % prefix, text)}
    demand(own and {name for name, words in own if words} == used and len(own) == len(used),
           "%s: hints without words, or never given: %s" % (table, sorted(
               used ^ {name for name, words in own if words})))


# The library knows no front end: its texts name no option, no class, no call of one.
FRONT_ENDS = (
    r"(?<![\w-])--[a-z]|(?:^| )-[a-z] [A-Z]{2}"               # an option
    r"|\bsafetensors (?:%s)\b|\bgit [a-z]+\b|\bulimit\b"      # a command
    r"|\blibsafetensors\.[a-z]+\(|\b(?:numpy|torch)\.[a-z]+\b|\b(?:mode|adopt|how)="  # a call
    r"|\w(?:Error|Exception)\b|\bTrue\b|\bFalse\b|\bSpark\b|\b[Pp]ython (?!pickle)")


def check_texts():
    """String literals of the library and of its headers."""
    commands = [os.path.basename(path)[len("cmd_"):-len(".c")].replace("_", "-")
                for path in glob.glob("cli/commands/**/cmd_*.c", root_dir=ROOT,
                                      recursive=True)]
    demand(len(commands) > 15, "no commands are found in cli/commands")
    pattern = re.compile(FRONT_ENDS % "|".join(commands))
    count = 0
    for path in sorted(glob.glob("src/**/*.[ch]", root_dir=ROOT, recursive=True) +
                       glob.glob("include/*.h", root_dir=ROOT)):
        if path.startswith("src/formats/"):
            continue  # their literals are what other programs' files say
        code = re.sub(r"/\*.*?\*/|^[ \t]*#[ \t]*include[^\n]*", " ", read(path), flags=re.S | re.M)
        for found in re.findall(r'(?:"(?:\\.|[^"\\\n])*"\s*)+', code):
            count += 1
            bad = pattern.search(literal(found))
            demand(not bad, "%s: \"%s\" names a front end: %s" % (
                path, bad.group(0) if bad else "", found.strip()))
    demand(count > 2000, "found only %d texts in the library" % count)


# ── Rules ──

def sections():
    """{rule: (code, words about levels, globs)} of docs/format.md."""
    out = {}
    for part in re.split(r"^(?=### R\d+ )", read("docs", "format.md"), flags=re.M)[1:]:
        rule, code = re.match(r"### (R\d+) `(\w+)`", part).groups()
        last = re.search(r"^\*Refused at ([a-z ]+)\. Files: (.*?)\.\*$", part, re.M | re.S)
        demand(last, "docs/format.md, %s: no line of level and files" % rule)
        demand(rule not in out, "docs/format.md has %s twice" % rule)
        if last:
            out[rule] = code, last.group(1), re.findall(r"`([^`]+)`", last.group(2))
    return out


def check_rules(rows, files):
    found = sections()
    table = {row["rule"]: row for row in rows if row["rule"] != "-"}
    demand(list(found) == ["R%d" % n for n in range(1, len(found) + 1)],
           "the rules of docs/format.md are not numbered in order")
    demand(set(found) == set(table), "rules of docs/format.md and of the table differ: %s" %
           sorted(set(found) ^ set(table)))
    demand({"R%d" % n: code for n, code in make.RULES.items()} ==
           {rule: row["name"] for rule, row in table.items()}, "make.py has other rules")
    named = set()
    for rule, (code, level, globs) in found.items():
        if rule in table:
            demand(code == table[rule]["name"], "%s is %s" % (rule, table[rule]["name"]))
            demand(level == LEVEL_WORDS[table[rule]["level"]], "%s: wrong level" % rule)
        for glob in globs:
            hits = [f for f in files if fnmatch.fnmatch(f, glob)]
            demand(hits, "docs/format.md, %s: no file is called %s" % (rule, glob))
            demand("/%s-" % rule in glob, "docs/format.md, %s: %s" % (rule, glob))
            named.update(hits)
        demand(any(g.split("/")[-2] not in ("accept",) for g in globs),
               "%s: no file breaks it" % rule)
    for name in files:
        demand(name in named or not re.search(r"/R\d+-", name),
               "docs/format.md does not name %s" % name)


def check_manifest(rows):
    """Each code a single file can have is some file's at the level of its rule."""
    built = make.build()
    seen = {code for row in built.rows for code in row["code"].values()}
    seen |= {row["code"] for row in built.sets} | {row.get("scan") for row in built.rows}
    for row in rows:
        if row["rule"] != "-" or 200 <= int(row["number"]) < 220:  # tests/import has the rest
            demand(row["name"] in seen, "no file of the corpus is refused as " + row["name"])


def check_notes():
    header = read("include", "safetensors_scan.h")
    body = re.search(r"A remark, which makes no file invalid\.\s+\*?\s*Names are(.*?)\*/", header, re.S).group(1)
    told = set(re.findall(r'"(\w+)"', body))
    listed = set(re.findall(r"^\| `(\w+)` \|", read("docs", "format.md").split("## Notes")[1]
                            .split("## ")[0], re.M))
    demand(told == listed, "notes of the header and of docs/format.md differ: %s" %
           sorted(told ^ listed))
    used = set()
    for folder in ("file", "format"):
        for name in os.listdir(os.path.join(ROOT, "src", "core", folder)):
            if name.endswith(".c"):
                used |= {n for n in listed if '"%s"' % n in read("src", "core", folder, name)}
    demand(used == listed, "notes never made: %s" % sorted(listed - used))


def check_fixes():
    rows = re.search(r"repair_rows\[\] = \{(.*?)^\};", read("src", "core", "file", "repairs.c"),
                     re.S | re.M).group(1)
    made = set(re.findall(r'"(\w+)",\s*"', rows)) - {"NULL"}
    made -= set(re.findall(r'SFT_OK, "(\w+)", "', rows)) - set(re.findall(
        r'SFT_OK, "\w+", "(\w+)"', rows))
    manual = read("docs", "repair.md")
    of_models = manual.index("## A model in several files")
    listed = set(re.findall(r"^\| `(\w+)` \|", manual[:of_models], re.M))
    demand(made == listed, "fixes of src/core/file/repairs.c and of docs/repair.md differ: %s" %
           sorted(made ^ listed))


def check_dtypes():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", read("docs", "format.md"), re.M)
    demand([(n, int(b)) for n, b in rows] == make.DTYPES, "dtypes of docs/format.md")
    for name in ("dtype.c",):
        found = re.findall(r'\{ "(\w+)", (\d+), SFT_KIND', read("src", "core", "format", name))
        demand([(n, int(b)) for n, b in found] == make.DTYPES, "dtypes of src/core/format/" + name)


# ── Words of labels ──

def check_vocabularies():
    """Ids of data/ and of the pages on JSON are the same, and what C can tell is among them."""
    text = read("docs", "json-vocabularies.md")
    demand(vocabularies.page(text) == text,
           "docs/json-vocabularies.md is not what tools/vocabularies.py makes of data/")
    section = text.split("## Vocabularies")[1]
    known = set(re.findall(r"`([^`]+)`", section))
    formats = re.search(r"sfti_format_names\[SFTI_FORMATS\] = \{(.*?)\}",
                        read("src", "label", "layouts.c"), re.S).group(1)
    for name in re.findall(r'"(\w+)"', formats):
        demand(name in known, "docs/json-vocabularies.md has no adapter format " + name)
    sizes = read("src", "label", "tensors", "quantisation.c")
    names = re.search(r"precision_names\[SFT_DTYPE_COUNT\] = \{(.*?)\}", sizes, re.S).group(1)
    for name in re.findall(r'"(\w+)"', names):
        demand(name in known, "docs/json-vocabularies.md has no precision " + name)
    check_ids(set(vocabularies.ids("model")), OTHER_WORDS)
    check_ids({name for name in re.findall(r"^(?:quantisation|method) (\S+)",
                                           read("data", "quantisation.txt"), re.M)}, OTHER_CODES)
    language = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", read("docs", "records.md"),
                                                     flags=re.S)))
    for name in re.findall(r'NAME\("([\w-]+)"\)', read("src", "label", "records", "words.c")):
        demand(name in language or name in TABLES,
               "docs/records.md does not explain " + name)
    rows = {of: re.findall(r"`([^`]+)`", ids)
            for of, ids in re.findall(r"^\| (.*?) \| (.*) \|$", section, re.M)}
    row = {of: re.findall(r"`([^`]+)`", re.search(r"^\| `%s` \|.*$" % of, read(
        "docs", "json-info.md"), re.M).group(0))[1:] for of in ("kind", "prediction_type")}
    want = {"kind": row["kind"], "variant": rows["`variant`"], "family": rows["`family`"],
            "quantisation": [name for name in rows["`quantization`"]
                             if not re.search("N|TYPE", name)],
            "prediction": row["prediction_type"]}
    for of, values in want.items():
        have = vocabularies.ids(of)
        for value in sorted(set(values) ^ set(have)):
            place = "data/" if value in values else "docs/json-*.md"
            demand(False, "%s lacks %s of the type %s" % (place, value, of))


TABLES = {"special", "denoiser", "image", "encoder", "other", "language"}  # of prefixes

# Words that are also called like a model: a folder, a part of a file, bits, words of captions.
OTHER_WORDS = {"cli/commands/repair/cmd_repair.c": {"clip"},
               "src/label/civitai.c": {"clip"}, "src/label/sidecars/find.c": {"clip", "esrgan"},
               "src/label/tensors/tensors.c": {"clip"}, "cli/support/title_words.c": {"bit"},
               "src/label/tensors/embeddings.c": {"t5"},
               "src/label/records/grammar.c": {"t5"},
               "src/label/words/vocabulary.c": {"hat", "sdxl"}}


# Words that are also called like a quantisation: dtypes, precisions, a format of adapters, words of
# file names; how the bits of four methods are found out; and what data/quantised.layouts tells to be
# declared in a way of its own.
OTHER_CODES = {"cli/commands/info/rows.c": {"fp8"}, "cli/support/values.c": {"fp8", "int8"},
               "src/core/format/entry.c": {"int8"}, "src/dataset/arrow/type.c": {"int8"},
               "src/formats/pickle/globals.c": {"int8"},
               "src/formats/pickle/torch_dtype.c": {"int4", "int8"},
               "src/label/tensors/adapters.c": {"mlx"},
               "src/label/tensors/quantisation.c": {"awq", "compressed-tensors", "fp8", "gptq", "int4",
                                                    "int8", "mlx"},
               "src/label/layouts.c": {"mlx"},
               "src/text/stems.c": {"fp8"},
               "src/model/quant/layouts.c": {"awq", "torchao"},
               "src/model/quant/method.c": {"gptq", "mlx"},
               "src/model/quant/torchao.c": {"torchao"}}


def check_ids(models, other_words):
    """No source knows a model or a quantisation by name: what is known of them stands in data/."""
    for path in sorted(glob.glob("src/**/*.[ch]", root_dir=ROOT, recursive=True) +
                       glob.glob("cli/**/*.[ch]", root_dir=ROOT, recursive=True)):
        text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
        found = set(re.findall(r'"((?:\\.|[^"\\])*)"', text)) & models
        for name in sorted(found - other_words.get(path, set())):
            demand(False, '%s names "%s", which is for data/' % (path, name))
    demand(len(models) > (300 if other_words is OTHER_WORDS else 20), "data/ has no ids")


# ── Help ──

def command(*args):
    base = shlex.split(os.environ.get("SFT_COMMAND", os.path.join(ROOT, "build", "safetensors")))
    done = subprocess.run(base + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def words(text):
    """The words of help or of a page's source, without the marks of the latter."""
    text = re.sub(r"^\.\\\".*$|^'\\\".*$", "", text, flags=re.M)
    text = re.sub(r"\\f[BIRP]|\\&|^\.[A-Za-z]+", " ", text, flags=re.M).replace("\\-", "-")
    return set(re.findall(r"--[a-z][a-z-]+", text))


def check_help():
    status, text = command("help", "-a")
    demand(status == 0 and text, "safetensors help fails")
    found = re.findall(r"^  ([a-z-]+)\s{2,}", text, re.M)
    found = [name for name in found if name not in ("help",)]
    demand(found, "safetensors help lists no command")
    for name in found:
        status, help_ = command(name, "-h")
        demand(status == 0 and help_, "safetensors %s -h fails" % name)
        demand(command(name, "--help") == (0, help_), "%s: -h and --help differ" % name)
        demand(command("help", name) == (0, help_), "help %s and %s -h differ" % (name, name))
        status, page = command("__man", "safetensors-" + name)
        demand(status == 0 and page.startswith("."), "no manual page for %s" % name)
        demand(words(help_) == words(page) or words(help_) <= words(page),
               "%s: options only in -h: %s" % (name, sorted(words(help_) - words(page))))
        kept = os.path.join(ROOT, "man", "safetensors-%s.1" % name)
        if os.path.exists(kept):
            demand(read("man", "safetensors-%s.1" % name) == page,
                   "man/safetensors-%s.1 is not what __man writes" % name)
    status, page = command("__reference", "cli")
    demand(status == 0 and page == read("docs", "cli.md"),
           "docs/cli.md is not what `safetensors __reference cli` writes")
    for name in ("safetensors",):
        status, page = command("__man", name)
        demand(status == 0 and page, "no manual page %s" % name)


def check_pages():
    """The day of the pages is one; mandoc, where it is, finds nothing wrong with them."""
    day = re.search(r'MANUAL_DATE "([0-9-]+)"', read("cli", "support", "help.c")).group(1)
    demand('"5" "%s"' % day in read("man", "safetensors.5"), "man/safetensors.5 is not of " + day)
    released = re.search(r"^## [0-9.]+ \(([^)]*)\)", read("CHANGELOG.md"), re.M).group(1)
    demand(released in ("unreleased", day), "the pages are of %s, the release of %s" % (day, released))
    functions = manual3.pages(sorted(glob.glob(os.path.join(ROOT, "include", "*.h"))))
    said = set(re.findall(r"\w+", "".join(functions.values())))
    for path in glob.glob("include/*.h", root_dir=ROOT):
        for name in set(re.findall(r"\bsft_\w+|\bSFT_\w+", tested.code(path))) - said:
            demand(re.match("SFT_(API|NODISCARD|BUILDING|STATIC_API|SHARED|PREFIX|SAFETENSORS_|"
                            "EXPERIMENTAL_)", name), "no page of section 3 has %s" % name)
    for name in sum(tested.functions().values(), []):
        page = functions.get(name + ".3", "").replace(".so man3/", "").strip()
        demand(name in functions.get(page, "").split(".SH SYNOPSIS")[0], "man %s" % name)
    if not shutil.which("mandoc"):
        return
    names = re.findall(r"^  ([a-z-]+)\s{2,}", command("help", "-a")[1], re.M)
    pages = [read("man", "safetensors.5"), command("__man", "safetensors")[1]]
    pages += [command("__man", "safetensors-" + name)[1] for name in names]
    pages += [page for page in functions.values() if not page.startswith(".so ")]
    demand(len(pages) > 40, "found only %d pages" % len(pages))
    for page in pages:
        said = subprocess.run(["mandoc", "-Tlint", "-W", "warning"], input=page.encode(), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
        demand(not said, "mandoc: %s of %s" % (said.strip(), page.splitlines()[0]))


# ── Links ──

def anchors(text):
    """Of the headings of a page, as GitHub makes them."""
    found = set()
    for title in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()
        found.add(re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-"))
    return found


def check_links():
    pages = glob.glob("*.md", root_dir=ROOT) + glob.glob("docs/*.md", root_dir=ROOT)
    pages += ["tests/README.md", "bindings/python/README.md", "examples/README.md"]
    count = 0
    for page in pages:
        text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            name, _, anchor = target.partition("#")
            place = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
            there = os.path.exists(os.path.join(ROOT, place))
            demand(there, "%s: no file %s" % (page, target))
            if there and anchor and place.endswith(".md"):
                demand(anchor in anchors(read(place)), "%s: no heading for %s" % (page, target))
    demand(count > 80, "found only %d links" % count)


# ── Commands ──

ABSENT = "cannot open|No such file|found no path|succeeded$"
UNSENT = "in a cache, found none|not in the Hub's cache"


def commands_shown():
    """(page, line) of every command in a block of a page, without what a session prints; sessions
    of pages that are played are proved there."""
    for page in glob.glob("*.md", root_dir=ROOT) + sorted(glob.glob("docs/*.md", root_dir=ROOT)):
        for kind, text in re.findall(r"^```(sh|bash|console)\n(.*?)^```$", read(page), re.M | re.S):
            if kind == "console" and page in sessions.DOCUMENTS:
                continue
            start = "$ " if kind == "console" else ""
            for line in text.splitlines():
                if line.startswith(start + "safetensors ") or (
                        line.startswith(start + "cat ") and " | safetensors " in line):
                    yield page, line[len(start):]
    for line in re.findall(r"\| `(safetensors [^`]+)` \|$", read("README.md"), re.M):
        yield "README.md", line


def unsent(line):
    """Of a command with a URL nothing is sent, here."""
    line = re.sub(r"--online(?=[^|;&]*://)", "--online --dry-run", line)
    return re.sub(r"safetensors (?=[^|;&]*://)", "safetensors --offline ", line)


def check_commands():
    """In an empty folder, a command that a page shows can only lack its files, or the network."""
    shown = sorted(set(commands_shown()))
    with tempfile.TemporaryDirectory() as folder:
        programs = sessions.command_folder(os.path.join(folder, "bin"))
        for page, line in shown:
            here = tempfile.mkdtemp(dir=folder)
            tried = unsent(line.replace("~", here))
            said = sessions.run(tried + "\ntest $? = 0 && echo succeeded", here, programs)
            demand(re.search(UNSENT if tried != line.replace("~", here) else ABSENT, said), "%s: $ %s\n    %s" % (page, line, said.strip()))
    demand(len(shown) > 100, "found only %d commands" % len(shown))


def check_pictures():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "pictures.py"), "--check"],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    demand(done.returncode == 0, done.stdout.decode("utf-8", "replace").strip())


# ── Messages ──

FAIL = re.compile(r'\b(?:sfti_fail(?:_tensor|_byte)?\(\s*&?[\w>.-]+,\s*(SFT_\w+),\s*[^"();]*?'
                  r'|(?:cli_usage_error|sfti_misuse)\(\s*&?[\w>.-]+,\s*)((?:"(?:\\.|[^"\\])*"\s*(?:PRI\w+\s*)?)+)')
SMALL = set("a an the this that of its own one for to in there is was but".split())


def failures():
    """(code, text) of every failure in the sources, %u and the like as %."""
    for folder in ("src", "cli", "bindings"):
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*.c"), recursive=True)):
            for code, literals in FAIL.findall(read(path)):
                text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literals))
                yield code or "SFT_BAD_ARGUMENT", re.sub(r"%(?:\.\*|\.?\d+)?(?:ll|[lzh])?[a-z]?", "%", text)


def check_messages():
    said = {}
    for code, text in failures():
        words = re.findall(r'[a-z0-9]+|%|"', text.lower())
        key = code, tuple(word.rstrip("s") for word in words if word not in SMALL)
        demand(said.setdefault(key, text) == text, "%s: \"%s\" or \"%s\"? One condition has one "
               "text" % (code, said[key], text))
    demand(len(said) > 300, "found only %d messages" % len(said))


def check_summary():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "summary.py"), "--check"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    demand(done.returncode == 0, "measured.md: %s" % done.stdout.decode().strip())


def check_bundle():
    told = re.search(r"^`tools/bundle.py` concatenates (.*?) into `safetensors.c`.*? added by "
                     r"`--with`: (.*?);", read("docs", "design.md"), re.M)
    script = read("tools", "bundle.py")
    core = re.search(r"^CORE = \[([^]]*)\]", script, re.M).group(1)
    parts = re.findall(r'^    "(\w+)": \(\[', script, re.M)
    for part, listed in zip(told.groups() if told else ("", ""),
                            (re.findall(r"[a-z/]+", core), parts)):
        demand(re.findall(r"[a-z/]+", part) == listed,
               "design.md has other contents of the bundle than bundle.py: " + ", ".join(listed))
    rows = re.findall(r"^\| (?:alone|`(?:WITH=)?([a-z,]+)`) \| [\d,]+ \| \d+ \|$",
                      read("docs", "install.md"), re.M)
    demand(sorted(rows) == sorted(["", *parts, ",".join(parts)]),
           "install.md has other bundles than bundle.py makes")


def check_suites():
    named = set(re.findall(r"`([a-z-]+)`", read("tests", "README.md")))
    for suite in re.findall(r'^    \("([a-z-]+)", "', read("tests", "run.py"), re.M):
        demand(suite in named, "tests/README.md does not name the suite " + suite)
    for cell in re.findall(r"\| `([^`|]+)` \|$", read("tests", "README.md"), re.M):
        for path in re.findall(r"\b(?:tests|tools|fuzz|examples)/[\w./-]+", cell):
            if not cell.startswith("build/") or not path.startswith("tests/unit/"):
                found = os.path.exists(os.path.join(ROOT, path))
                demand(found or "build/" + path in cell, "tests/README.md: no file " + path)
        program = os.path.join(ROOT, cell.split()[0])
        demand(cell.startswith("build/") or os.access(program, os.X_OK),
               "tests/README.md: %s cannot be run" % cell)


def check_tested():
    for what in tested.problems():
        demand(False, what)


def main():
    rows = driver.codes()
    files = make.build().files
    check_codes(rows)
    check_errors(rows)
    check_hints()
    check_texts()
    check_rules(rows, files)
    check_manifest(rows)
    check_notes()
    check_fixes()
    check_dtypes()
    check_vocabularies()
    check_help()
    check_pages()
    check_links()
    check_commands()
    check_pictures()
    check_messages()
    check_suites()
    check_tested()
    check_bundle()
    check_summary()
    for what in problems:
        print("FAIL", what)
    print("%d passed, %d failed" % (checks - len(problems), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
