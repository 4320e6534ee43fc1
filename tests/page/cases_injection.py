"""Text that has broken pages of others: shown as it is, copied as it should be, and harmless."""

import re

import corpus
import pages
from cases_catalog import TOTAL, both, same

HIDDEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
SPACE = "\t\n\x0b\x0c\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f]$")


# Types each of some texts into a field, a frame each, and empties it.
EACH = """async ([selector, texts]) => { const field = document.querySelector(selector);
    for (const text of [...texts, '']) {
        field.value = text;
        field.dispatchEvent(new Event('input', { bubbles: true }));
        await new Promise((done) => requestAnimationFrame(done));
    } }"""


def visible(text):
    """The rule of page/text.js, written a second time."""
    return HIDDEN.sub(
        lambda one: (
            one.group()
            if one.group() in "\u200d\ufe0f" and EMOJI.search(text[: one.start()])
            else f"\\u{{{ord(one.group()):x}}}"
        ),
        text,
    )


def prompt_parts(prompt):
    """The parts of a prompt between commas that are in no brackets."""
    parts, depth, before = [""], 0, ""
    for one in prompt:
        if before != "\\":
            depth = max(0, depth + (one in "([{<") - (one in ")]}>"))
        if one == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += one
        before = one
    return [part.strip(SPACE) for part in parts if part.strip(SPACE)]


def joined(text):
    """What copying all words of a model of the corpus gives: those found in captions give way to declared ones."""
    return corpus.clean(", ".join(dict.fromkeys(prompt_parts(f"second {text}"))))


def all_names(view):
    """Names of all cards, by scrolling."""
    found, top = {}, 0
    while True:
        view.js("(top) => scrollTo({ top, behavior: 'instant' })", top)
        view.settle()
        found.update(
            view.js(
                "() => [...document.querySelectorAll('.grid > .card:not(.probe)')].map((one) => [one.getAttribute('aria-posinset'), one.querySelector('.card-name').textContent])"
            )
        )
        top += 500
        if top > view.js("() => document.documentElement.scrollHeight"):
            return [found[key] for key in sorted(found, key=int)]


def case_corpus(_):
    """The corpus is as large and as mixed as it should be, and its rules are not trivial."""
    assert len(set(corpus.STRINGS)) == len(corpus.STRINGS) >= 100
    same(corpus.clean("a\r\nb\x1b[31m\u202ec\u2028d"), "a b[31mc d", "clean")
    same(
        visible("a\u202eb\x1bc👩\u200d👩 \u200d"),
        "a\\u{202e}b\\u{1b}c👩\u200d👩 \\u{200d}",
        "visible",
    )


@both
def case_injection_grid(world):
    """Cards, list, filters and search show every string and run none."""
    path, rows, _ = world.hostile
    expected = sorted(visible(name) for name in rows["name"])
    with world.view(path) as view:
        same(view.js(TOTAL), len(corpus.STRINGS), "models")
        same(view.js("() => document.title"), rows["title"], "title")
        same(sorted(all_names(view)), expected, "names")
        view.js(
            "() => { for (const one of document.querySelectorAll('.facet')) one.open = true; for (const one of document.querySelectorAll('.facet-body > button')) if (!one.hidden) one.click(); }"
        )
        view.settle()
        labels = set(
            view.js(
                "() => [...document.querySelectorAll('.option bdi, .facet .chip bdi')].map((one) => one.textContent)"
            )
        )
        missing = [text for text in corpus.STRINGS if visible(text) not in labels]
        assert not missing, f"not among the filters: {missing[:5]}"
        view.js("() => document.querySelector('[data-density-of=list]').click()")
        view.settle()
        same(sorted(all_names(view)), expected, "names in the list")
        view.js("() => dispatchEvent(new Event('beforeprint'))")
        printed = view.js(
            "() => [...document.querySelectorAll('.printed tbody tr')].map((one) => one.firstChild.textContent)"
        )
        same(sorted(printed), expected, "names in print")
        view.js("() => dispatchEvent(new Event('afterprint'))")


@both
def case_injection_search(world):
    """Every string can be searched for, and comes back from the fragment."""
    path, rows, _ = world.hostile
    with world.view(path) as view:
        view.until("() => document.documentElement.dataset.details === 'searched'")
        for text in corpus.STRINGS[:: 9 if world.short else 3]:
            if (
                '"' in text
                or text.strip(SPACE) != text
                or HIDDEN.search(text)
                or {*text} & {*"\n\t"}
                or len(text) > 900
            ):
                continue
            view.fill("#search", f'"{text}"')
            assert view.js(TOTAL) >= 1, f"not found: {text!r}"
        view.js(EACH, ["#search", corpus.STRINGS])
    for text in corpus.STRINGS[: 30 : 9 if world.short else 3]:
        with world.view(path, "#q=" + "".join(f"%{byte:02x}" for byte in text.encode())) as view:
            same(
                view.js("() => document.querySelector('#search').value"),
                text,
                "query of the fragment",
            )


def case_injection_chips(world):
    """A word on a card is copied as a whole, however long."""
    path, rows, more = world.hostile
    with world.view(path) as view:
        for text in (
            "<style>guangying</style>",
            "fym <artist>",
            "a\u202egnp.exe",
            "line\r\nbreak",
            "\x1b]0;title\x07",
            "w" * 3000,
            "\\\\evil.example\\share\\x.png",
        ):
            i = corpus.STRINGS.index(text)
            file = f"{i:03} {text[:60]}.safetensors"
            k = rows["file"].index(file)
            if str(k) in rows["error"]:
                continue
            view.fill("#search", f"name:{i:03}")
            card = view.js(
                "(name) => [...document.querySelectorAll('.grid > .card:not(.probe)')].findIndex((one) => one.querySelector('.card-name').textContent === name)",
                visible(rows["name"][k]),
            )
            assert card >= 0, text
            view.js(
                "(k) => document.querySelectorAll('.grid > .card:not(.probe)')[k].setAttribute('data-tested', '')",
                card,
            )
            view.forget()
            view.click("[data-tested] .chip")
            same(view.wait_clipboard(corpus.clean(text)), corpus.clean(text), "clipboard")
            view.js("() => document.querySelector('[data-tested]').removeAttribute('data-tested')")


def through(view, count, look, every):
    """Opens the first model, steps through all and looks at every third, say."""
    view.press("ArrowDown", "Enter")
    for step in range(count):
        if step % every == 0:
            look(step)
        view.press("ArrowRight", settle=False)
    view.press("Escape")


@both
def case_injection_detail(world):
    """Details show every string in every field, with links to known hosts only; words reach the clipboard exactly."""
    path, _, _ = world.hostile
    texts = {visible(text): text for text in corpus.STRINGS}
    seen, hosts = [], set()

    with world.view(path) as view:

        def look(step):
            name = view.js(
                "() => document.querySelector('dialog.browse[open] .detail-name').textContent"
            )
            text = texts[name]
            seen.append(name)
            found = view.js(
                """(shown) => { const dialog = document.querySelector('dialog.browse[open]');
                for (const one of dialog.querySelectorAll('details')) one.open = true;
                const bare = (text) => text.replace(/\\s+/g, '');
                return { parts: [...dialog.querySelectorAll('bdi, .badge, td, dd, p')].filter((one) => bare(one.textContent).includes(bare(shown))).length,
                    links: [...document.querySelectorAll('a[href]')].map((one) => [one.href, one.rel, one.textContent]),
                    hidden: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(dialog.textContent) }; }""",
                name,
            )
            assert not found[
                "hidden"
            ], f"{text!r}: characters that cannot be seen are in the document"
            parts = found["parts"]
            for href, rel, label in found["links"]:
                host = href.split("/")[2] if href.startswith("https://") else href
                assert (
                    host in ("civitai.com", "huggingface.co")
                    and host in label
                    and "noopener" in rel
                    and "noreferrer" in rel
                ), (href, rel, label)
                hosts.add(host)
            assert (
                parts >= 8 or len(text) > 200 or not text.strip(SPACE)
            ), f"{text!r} is shown {parts} times"
            view.forget()
            view.press("c", settle=False)
            same(view.wait_clipboard(joined(text)), joined(text), f"words of {text!r}")
            if step % (9 if world.short else 8) == 0:
                assert view.count("dialog.browse[open] .word-group .chip"), f"no words of {text!r}"
                view.click("dialog.browse[open] .word-group .chip")
                chips = view.js(
                    "() => [...document.querySelectorAll('dialog.browse[open] .word-group .chip bdi')].map((one) => one.textContent)"
                )
                assert visible(text) in chips or len(text) > 200, (text, chips)
                found = view.clipboard()
                same(corpus.clean(found), found, f"word of {text!r}")

        through(view, len(corpus.STRINGS), look, 9 if world.short else 1)
    if world.short:
        same(len({*seen}), len([*texts][::9]), "models")
    else:
        same(sorted(seen), sorted(texts), "models")
    assert "civitai.com" in hosts, hosts


def case_injection_buttons(world):
    """Whatever a button copies has no control characters and no line breaks."""
    path, rows, _ = world.hostile
    for text in ("line\r\nbreak", "escape \x1b[31mred\x1b[0m")[: 1 if world.short else 2]:
        k = rows["file"].index(f"{corpus.STRINGS.index(text):03} {text[:60]}.safetensors")
        with world.view(
            path,
            "#m="
            + "".join(
                f"%{byte:02x}"
                for byte in f"{rows['dict']['folder'][rows['folder'][k]]}/{rows['file'][k]}".encode()
            ),
        ) as view:
            view.js(
                "() => { for (const one of document.querySelectorAll('dialog.browse details')) one.open = true; }"
            )
            buttons = view.page.locator(
                "dialog.browse[open] button:visible:has(svg), dialog.browse[open] .chip:visible"
            )
            copied = 0
            for n in range(buttons.count()):
                label = (buttons.nth(n).get_attribute("title") or "") + (
                    buttons.nth(n).get_attribute("aria-label") or ""
                )
                if "opy" not in label:
                    continue
                view.forget()
                buttons.nth(n).click()
                found = view.soon(view.clipboard, lambda text: text != "nothing was copied")
                assert found != "nothing was copied", label
                same(corpus.clean(found), found, f"clipboard after {label}")
                copied += 1
            assert copied >= 8, f"{copied} buttons that copy"


@both
def case_injection_model(world):
    """Tensor names, dtypes, metadata, norms and files of a page about one model."""
    path, data = world.model("hostile")
    with world.view(path) as view:
        same(view.js("() => document.title"), data["title"], "title")
        text = view.js("() => document.body.innerText")
        missing = [
            one
            for one in corpus.STRINGS
            if len(one) < 200 and re.sub(r"\s", "", visible(one)) not in re.sub(r"\s", "", text)
        ]
        assert not missing, f"metadata not shown: {missing[:5]}"
        view.js(
            "() => { for (const one of document.querySelectorAll('button')) if (/^Open all$/.test(one.textContent)) one.click(); }"
        )
        view.settle()
        view.js("() => document.querySelector('.tree').focus()")
        view.press(*["ArrowDown"] * 120, settle=False)
        view.js(EACH, ["#find", corpus.STRINGS[:: 9 if world.short else 2]])


@both
def case_watch(world):
    """The watch notices what must not happen: each of these pages does one thing of it."""
    rows, more, _ = corpus.catalogue()
    page = pages.catalogue_page(rows, more)
    bare = re.sub(r"<meta http-equiv=.Content-Security-Policy. [^>]*>", "", page)
    marked = "el('bdi',{class:className},visible(text))"
    assert marked in page and bare != page
    parsed = "Object.assign(el('bdi', { class: className }), { innerHTML: text })"
    for name, text, complaint in (
        ("script", page.replace("<body>", f"<body><script>{corpus.RUN}</script>"), "policy"),
        (
            "handler",
            page.replace("<body>", f"<body><img src='data:image/png,x' onerror='{corpus.RUN}'>"),
            "policy",
        ),
        (
            "picture",
            page.replace("<body>", "<body><img src='https://evil.example/x.png'>"),
            "policy",
        ),
        ("request", bare.replace("<body>", "<body><img src='https://evil.example/x.png'>"), ""),
        ("evil", bare.replace("<body>", f"<body><script>{corpus.RUN}</script>"), "text was run"),
        ("error", bare.replace("<body>", "<body><script>throw new Error('x')</script>"), "errors"),
        (
            "parsed",
            page.replace(marked, parsed).replace(
                pages.digest(pages.join("shared") + pages.join("catalog")),
                pages.digest(
                    (pages.join("shared") + pages.join("catalog")).replace(marked, parsed)
                ),
            ),
            "",
        ),
    ):
        try:
            with world.view(world.keep(f"watch/{name}.html", text)) as view:
                view.press("ArrowDown", "Enter")
        except AssertionError as error:
            assert complaint in str(error), f"{name}: {error}"
        else:
            raise AssertionError(f"{name}: nothing was noticed")
