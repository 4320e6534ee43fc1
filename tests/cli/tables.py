#!/usr/bin/env python3
"""Help, man page, completions and rules say the same.

For each command: the options of -h, of safetensors-CMD(1) and of the bash, zsh and fish
completions are equal sets, with equal help texts and equal words to choose from; the exit
statuses are those of the page. Each rule of cli/commands/cmd_check.c reads as in docs/format.md.

  tests/cli/tables.py [--write-rules]     needs SFT_COMMAND or build/safetensors
"""
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, "cli", "commands", "cmd_check.c")


def command_words():
    default = os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "safetensors")
    return shlex.split(os.environ.get("SFT_COMMAND") or shlex.quote(default))


def ask(*args):
    done = subprocess.run(command_words() + list(args), stdout=subprocess.PIPE, check=True,
                          stdin=subprocess.DEVNULL)
    return done.stdout.decode()


def flat(text):
    return " ".join(text.split())


# ── What each document says: {option: (letter, value, help)} ──

def from_help(text):
    part = re.search(r"^Options:\n(.*?)^\n?Exit status:", text, re.M | re.S)[1]
    rows = re.findall(r"^  (?:-(\w), |    )--([a-z-]+)(?: (\S+)|\[=(\S+)\])?(?:  |\n)"
                      r"(.*(?:\n {10}.*)*)", part, re.M)
    return {name: (letter, value or maybe, flat(says)) for letter, name, value, maybe, says in rows}


def unroff(text):
    text = text.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
    return re.sub(r"\\f[BIR]", "", text)


def from_page(text):
    part = re.search(r"^\.SH OPTIONS\n(.*?)^\.SH", text, re.M | re.S)[1]
    rows = re.findall(r"^\.TP\n(?:-(\w), )?--([a-z-]+)(?: (\S+)|\[=(\S+)\])?\n(.*?)(?=^\.|\Z)",
                      unroff(part), re.M | re.S)
    return {name: (letter, value or maybe, " ".join(says.split()))
            for letter, name, value, maybe, says in rows}


def from_bash(text, command):
    words = re.search(r"^ +%s\) words='([^']*)'.* ;;$" % command, text, re.M)[1].split()
    choices = dict(re.findall(r"^ +(?:%s,-\w\|)?%s,--([a-z-]+)\) words='([^ '].*)' ;;$" %
                              (command, command), text, re.M))
    names = [w[2:] for w in words if w.startswith("--")]
    return names, {w[1:] for w in words if re.fullmatch(r"-\w", w)}, choices


def choices(words):
    """"a b" as "a|b"; names that another table has begin with a blank."""
    return "" if words.startswith(" ") else words.replace(" ", "|")


def from_zsh(text, command):
    part = re.search(r"^    %s\)\n        _arguments(.*?)        ;;" % command, text,
                     re.M | re.S)[1]
    rows = re.findall(r"'(?:\(-(\w) --[a-z-]+\)'\{-\w,)?--([a-z-]+)[=\}'-]*'?"
                      r"\[((?:[^\]\\]|\\.)*)\](?:::?[a-z-]+:(?:\((.*?)\)|_values[^']*)?)?'", part)
    return {name: (letter, choices(choice), re.sub(r"\\(.)", r"\1", says))
            for letter, name, says, choice in rows}


def from_fish(text, command):
    rows = re.findall(r"^complete -c safetensors -n '__fish_seen_subcommand_from %s'"
                      r"(?: -s (\w))? -l ([a-z-]+)(?: -r)?(?: -x -a '(?:\(__fish.*?\)|(.*?))')?"
                      r" -d '(.*)'$"
                      % command, text, re.M)
    return {name: (letter, choices(choice), says) for letter, name, choice, says in rows}


def field_lists(scripts):
    """The names that -f is completed with, by shell."""
    found = {"bash": re.search(r"info,--fields\) list=1 words='(.*)' ;;", scripts["bash"]),
             "zsh": re.search(r"_values -s , fields ([^']*)'", scripts["zsh"]),
             "fish": re.search(r'-l fields -x -a .*?split -n \\" \\" \\"( [^"\\]*)', scripts["fish"])}
    return {shell: found[shell] and re.split("[ ,]", found[shell][1].strip(" ,"))
            for shell in scripts}


def field_differences(scripts):
    lists = field_lists(scripts)
    for shell, names in lists.items():
        if not names or names != lists["bash"] or len(names) < 100:
            yield "%s does not complete the fields of info -f" % shell
        elif "adapter.rank.max" not in names or "a1111" not in names:
            yield "%s completes too few fields" % shell
        else:
            yield from unknown_fields(shell, names)


def unknown_fields(shell, names):
    for at in range(0, len(names), 64):
        words = ["info", "-f", ",".join(names[at:at + 64]), "nosuch"]
        made = subprocess.run(command_words() + words,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if b"expected a field" in made.stdout:
            yield "%s: %s" % (shell, made.stdout.decode())


# ── Comparing ──

def differences(command, scripts):
    help_text = ask(command, "--help")
    page = ask("__man", "safetensors-" + command)
    options, paged = from_help(help_text), from_page(page)
    words = {name: (row[0], row[1] if "|" in row[1] else "", row[2])
             for name, row in options.items()}
    names, letters, choices = from_bash(scripts["bash"], command)
    if not options:
        yield "no options in -h"
    if options != paged:
        yield "-h and man page differ: %s" % sorted(set(options.items()) ^ set(paged.items()))
    if sorted(names) != sorted(options):
        yield "-h and bash differ: %s" % sorted(set(options) ^ set(names))
    if letters != {row[0] for row in options.values() if row[0]}:
        yield "letters of -h and bash differ"
    if choices != {n: row[1].replace("|", " ") for n, row in words.items() if row[1]}:
        yield "choices of -h and bash differ"
    for shell, found in (("zsh", from_zsh), ("fish", from_fish)):
        said = found(scripts[shell], command)
        if said != words:
            yield "-h and %s differ: %s" % (shell, sorted(set(said.items()) ^ set(words.items())))
    statuses = re.findall(r"^  (\d) ", help_text.split("Exit status:")[1], re.M)
    if statuses != re.findall(r"^\.B (\d)$", page.split(".SH EXIT STATUS")[1], re.M):
        yield "exit statuses of -h and man page differ"
    if not help_text.index("Examples:") < help_text.index("Usage:"):
        yield "examples do not come first"


def overview_differences(names, scripts):
    page = unroff(ask("__man", "safetensors"))
    paged = re.findall(r"^\.BR safetensors-([a-z-]+) \(1\)$", page, re.M)
    if paged != names:
        yield "commands of help and man page differ: %s, %s" % (names, paged)
    for shell, pattern in (("bash", r"%s\) words="), ("zsh", r"'%s:"), ("fish", r"-a %s -d")):
        for name in names:
            if not re.search(pattern % name, scripts[shell]):
                yield "%s does not know %s" % (shell, name)


# ── Rules ──

def documented_rules():
    with open(os.path.join(ROOT, "docs", "format.md"), encoding="utf-8") as f:
        text = f.read()
    for number, body in re.findall(r"^### R(\d+) `\w+`\n\n(.*?)\n\n", text, re.M | re.S):
        sentence = re.split(r"(?<=\.) (?=[A-Z`])", flat(body))[0]
        yield int(number), re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).rstrip(".")


def coded_rules():
    with open(RULES, encoding="utf-8") as f:
        body = f.read().split("{\n", 1)[1].split("\n};")[0]
    rows = re.findall(r'^    \[(\d+)\] = ((?:\s*"(?:[^"\\]|\\.)*")+),$', body, re.M)
    return {int(n): "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')
            .replace("\\\\", "\\") for n, text in rows}


def write_rules():
    lines = []
    for number, text in documented_rules():
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        pieces, line = [], "    [%d] = " % number
        words = text.split(" ")
        piece = ""
        for i, word in enumerate(words):
            more = word + (" " if i + 1 < len(words) else "")
            if len(line) + len(piece) + len(more) + 4 > 99:
                pieces.append(line + '"%s"' % piece)
                line, piece = " " * 11, ""
            piece += more
        pieces.append(line + '"%s",' % piece)
        lines += pieces
    with open(RULES, encoding="utf-8") as f:
        head, rest = f.read().split("{\n", 1)
    with open(RULES, "w", encoding="utf-8") as f:
        f.write(head + "{\n" + "\n".join(lines) + "\n};" + rest.split("\n};", 1)[1])


def rule_differences():
    documented, coded = dict(documented_rules()), coded_rules()
    for number in sorted(set(documented) | set(coded)):
        if documented.get(number) != coded.get(number):
            yield "R%d: cli/commands/cmd_check.c says %r, docs/format.md %r (--write-rules copies)" % (
                number, coded.get(number), documented.get(number))


def main():
    if "--write-rules" in sys.argv:
        write_rules()
        return 0
    scripts = {shell: ask("__completion", shell) for shell in ("bash", "zsh", "fish")}
    overview = ask("help", "-a").split("\nInspect\n")[1].split("\nOptions:")[0] + "  help \n"
    names = re.findall(r"^  ([a-z-]+) ", overview, re.M)
    checks = [("overview", overview_differences(names, scripts)), ("rules", rule_differences()),
              ("fields", field_differences(scripts))]
    checks += [(name, differences(name, scripts)) for name in names]
    passed = failed = 0
    for what, found in checks:
        found = list(found)
        for line in found:
            print("tables: %s: %s" % (what, line))
        passed, failed = passed + (not found), failed + bool(found)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
