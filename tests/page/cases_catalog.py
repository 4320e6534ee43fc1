"""The grid and its controls, by mouse and by key."""

import re

CARD = ".grid > .card:not(.probe)"
NAMES = "() => [...document.querySelectorAll('.grid > .card:not(.probe)')].sort((a, b) => a.getAttribute('aria-posinset') - b.getAttribute('aria-posinset')).map((one) => one.querySelector('.card-name').textContent)"
FOCUSED = "() => document.activeElement.closest('.card')?.querySelector('.card-name').textContent ?? document.activeElement.tagName"
POSITION = (
    "() => Number(document.activeElement.closest('.card')?.getAttribute('aria-posinset') ?? 0)"
)
# Cards: the models, and what could not be read.
TOTAL = """() => {
    const place = document.querySelector('.result-count'), read = (text) => Number(text.replace(/\\D/g, ''));
    return read(place.querySelector('b').textContent.replace(/ of .*/, ''))
        + read(/, ([\\d,]+) unreadable/.exec(place.textContent)?.[1] ?? '');
}"""


def both(case):
    """A case for Firefox too."""
    case.firefox = True
    return case


def folded(text):
    return text.lower()


def by_name(rows):
    """Row numbers in the order of names: natural, without punctuation and accents."""
    import unicodedata

    def key(i):
        plain = "".join(
            one
            for one in unicodedata.normalize(
                "NFD", unicodedata.normalize("NFKC", rows["name"][i]).lower()
            )
            if not unicodedata.category(one).startswith("M")
        )
        bare = re.sub(r"[\W_]+", " ", plain).strip() or plain
        return re.sub(
            r"\d+",
            lambda digits: chr(48 + min(len(digits.group().lstrip("0") or "0"), 40))
            + (digits.group().lstrip("0") or "0"),
            bare,
        )

    return sorted(range(rows["count"]), key=lambda i: (key(i), i))


def same(found, expected, what):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


@both
def case_load(world):
    """All models are counted, the first ones are shown in order of names, with their facts."""
    path, rows, _ = world.models
    with world.view(path) as view:
        same(view.js("() => document.title"), rows["title"], "title")
        same(view.js(TOTAL), 500, "models")
        broken = len(rows.get("fault", {}))
        assert broken and view.text(".result-count").startswith(
            f"{500 - broken} models, {broken} unreadable"
        ), view.text(".result-count")
        names = view.js(NAMES)
        order = by_name(rows)
        same(names, [rows["name"][i] for i in order[: len(names)]], "names")
        assert len(names) >= 8, names
        same(
            view.js(
                "() => document.querySelector('.grid .card:not(.probe)').getAttribute('aria-setsize')"
            ),
            "500",
            "aria-setsize",
        )
        text = view.text(CARD)
        first = order[0]
        assert rows["what"][first].split(" for ")[0] in text, text
        for word in rows["words"][first]:
            assert word in text, (word, text)


@both
def case_search(world):
    """Words, excluded words, phrases and fields find what they should; Esc and the button clear."""
    path, rows, more = world.models
    infos = [info for part in more for info in part["models"]]

    def hay(i):
        base = rows["dict"]["base"][rows["base"][i]][1] if rows["base"][i] >= 0 else ""
        model = infos[i]["model"]
        return folded(
            "\n".join(
                [
                    rows["name"][i],
                    rows["file"][i],
                    rows["what"][i],
                    base,
                    rows["dict"]["folder"][rows["folder"][i]],
                    model["description"][0],
                    model["version_name"][0],
                    infos[i]["path"],
                    rows["dict"]["kind"][rows["kind"][i]][1],
                    rows["dict"]["author"][rows["author"][i]],
                    rows["dict"]["licence"][rows["licence"][i]] if rows["licence"][i] >= 0 else "",
                    " ".join(one["tag"] for one in infos[i].get("frequent_tags", [])),
                    " ".join(w["text"] for w in infos[i].get("trigger_words", [])),
                ]
                + [rows["dict"]["tag"][k] for k in rows["tags"][i]]
            )
        )

    with world.view(path) as view:
        view.until("() => document.documentElement.dataset.details === 'searched'")
        view.press("/")
        same(view.js("() => document.activeElement.id"), "search", "focus after /")
        view.type("neon ci")
        expected = [i for i in range(500) if "neon" in hay(i) and "ci" in hay(i)]
        assert expected
        same(view.js(TOTAL), len(expected), "models with neon ci")
        same(view.fragment(), "q=neon ci", "fragment")
        named = [
            "neon" in name and "ci" in name
            for name in (
                folded(rows["name"][i] + "\n" + rows["file"][i])
                for i in view.js(
                    """() => [...document.querySelectorAll('.card[data-model]')]
                        .sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)
                        .map((card) => Number(card.dataset.model))"""
                )
            )
        ]
        assert True in named and False in named, "some are called so, some are not"
        same(named, sorted(named, reverse=True), "those that are called so come first")
        view.press("Escape")
        same(view.js(TOTAL), 500, "models after Esc")
        for query, test in (
            ("oversaturated", lambda i: "oversaturated" in hay(i)),
            ('"film noir"', lambda i: "film noir" in hay(i)),
            ("style -watercolor", lambda i: "style" in hay(i) and "watercolor" not in hay(i)),
            (
                "base:pony",
                lambda i: rows["base"][i] >= 0
                and "pony" in folded(rows["dict"]["base"][rows["base"][i]][1]),
            ),
            (
                "word:guangying",
                lambda i: any("guangying" in w["text"] for w in infos[i].get("trigger_words", [])),
            ),
            ("tag:slider", lambda i: "slider" in [rows["dict"]["tag"][k] for k in rows["tags"][i]]),
            ("<style>", lambda i: "<style>" in hay(i)),
            ("夏の雨", lambda i: "夏の雨" in hay(i)),
            (
                "hash:" + next(h for h in rows["hash"] if h)[:8],
                lambda i: rows["hash"][i].startswith(next(h for h in rows["hash"] if h)[:8]),
            ),
        ):
            view.fill("#search", query)
            expected = sum(map(test, range(500)))
            assert expected, query
            same(view.js(TOTAL), expected, query)
        view.fill("#search", "no such model anywhere")
        same(
            (view.js(TOTAL), view.count(CARD + ":visible") if hasattr(view, "page") else 0),
            (0, 0),
            "models of no result",
        )
        assert view.js("() => !document.querySelector('.empty').hidden")
        view.click(".search button[aria-label='Clear the search']")
        same(view.js(TOTAL), 500, "models after clearing")


def case_filters(world):
    """Every facet shows its counts, and a choice shows as many models; choices can be removed."""
    path, rows, _ = world.models
    with world.view(path, height=1400) as view:
        for facet, column in (("kind", "kind"), ("base", "base")):
            count = rows[column].count(0)
            label = rows["dict"][column][0][1]
            option = f"details[data-facet={facet}] .option:has(:text-is('{label}'))"
            same(view.text(option + " .count"), str(count), f"count of {label}")
            view.click(option)
            same(view.js(TOTAL), count, f"models of {label}")
            assert f"{facet}={rows['dict'][column][0][0]}" in view.fragment(), view.fragment()
            view.click(".active-filters .chip")
            same(view.js(TOTAL), 500, "models after removing it")
            same(view.fragment(), "", "fragment after removing it")
        tag = rows["dict"]["tag"][0]
        having = sum(0 in tags for tags in rows["tags"])
        chip = f".facet .chip:has(bdi:text-is('{tag}'))"
        view.click(chip)
        same(view.js(TOTAL), having, "models with the tag")
        view.click(chip)
        same(view.js(TOTAL), 500 - having, "models without the tag")
        view.click(chip)
        same(view.js(TOTAL), 500, "models")
        second = f".facet .chip:has(bdi:text-is('{rows['dict']['tag'][1]}'))"
        view.click(chip)
        view.click(second)
        same(
            view.js(TOTAL),
            sum(0 in tags or 1 in tags for tags in rows["tags"]),
            "models with one of two tags",
        )
        view.click("[data-all=true]")
        same(
            view.js(TOTAL),
            sum(0 in tags and 1 in tags for tags in rows["tags"]),
            "models with both tags",
        )
        view.press("Escape")
        view.click(".filters-head button")
        same(view.js(TOTAL), 500, "models after Clear all")
        folder = "loras"
        view.click(f"details[data-facet=folder] .option:has(bdi:text-is('{folder}'))")
        same(
            view.js(TOTAL),
            sum(rows["dict"]["folder"][k].split("/")[0] == folder for k in rows["folder"]),
            "models below loras",
        )
        view.click(".filters-head button")
        chip = "details[data-facet=is] .chip:has(bdi:text-is('duplicates'))"
        view.click(chip)
        same(view.js(TOTAL), sum(k >= 0 for k in rows["copies"]), "duplicates")
        view.click(chip)
        same(view.js(TOTAL), sum(k < 0 for k in rows["copies"]), "models without duplicates")


def case_filters_by_key(world):
    """Filters work by keys alone: Tab reaches each, Space chooses, f hides them all."""
    path, rows, _ = world.models
    with world.view(path) as view:
        view.page.locator("details[data-facet=kind] .option input").first.focus()
        view.press("Space")
        same(view.js(TOTAL), rows["kind"].count(0), "models of a kind")
        view.press("Space")
        same(view.js(TOTAL), 500, "models")
        view.page.locator("details[data-facet=tag] .chip, .facet .chip").first.focus()
        view.press("Enter")
        assert view.js(TOTAL) < 500
        view.page.locator(".active-filters .chip").first.focus()
        view.press("Enter")
        same(view.js(TOTAL), 500, "models")
        view.press("f")
        assert not view.page.locator(".filters").is_visible()
        view.press("f")
        assert view.page.locator(".filters").is_visible()
    with world.view(path, width=600) as view:
        view.press("f")
        same(view.count("dialog.drawer[open]"), 1, "drawers")
        view.page.locator("dialog.drawer .option input").first.focus()
        view.press("Space")
        view.press("Escape")
        same(
            (view.count("dialog.drawer[open]"), view.js(TOTAL)),
            (0, rows["kind"].count(0)),
            "after the drawer",
        )
        view.click(".filters-button")
        same(view.count("dialog.drawer[open]"), 1, "drawers by mouse")


def case_order(world):
    """Orders by the list, by s, by the headings of the list; both ways; unknown last."""
    path, rows, _ = world.models
    known = [i for i in range(500) if rows["bytes"][i] > 0]
    with world.view(path) as view:
        view.page.select_option(".order", "size")
        view.settle()
        same(
            view.js(NAMES)[0],
            rows["name"][max(known, key=lambda i: (rows["bytes"][i], i))],
            "largest",
        )
        assert "sort=-size" in view.fragment()
        view.click(".order-group button")
        same(
            view.js(NAMES)[0],
            rows["name"][min(known, key=lambda i: (rows["bytes"][i], i))],
            "smallest",
        )
        view.page.select_option(".order", "path")
        view.settle()
        same(view.js(NAMES)[:5], rows["name"][:5], "by path")
        view.press("s")
        newest = max(range(500), key=lambda i: (rows["modified"][i], i))
        same(view.js(NAMES)[0], rows["name"][newest], "newest file, by s")
        view.click("[data-density-of=list]")
        view.click(".head-name")
        same(
            view.js(NAMES)[:5], [rows["name"][i] for i in by_name(rows)[:5]], "by name in the list"
        )
        view.click(".head-name")
        same(view.js(NAMES)[0], rows["name"][by_name(rows)[-1]], "reversed")


@both
def case_keys_move(world):
    """Arrows, Home, End and Page keys move among cards; the focus stays in view."""
    path, rows, _ = world.models
    order = by_name(rows)
    with world.view(path) as view:
        view.press("ArrowDown")
        same(view.js(POSITION), 1, "first")
        view.press("ArrowRight", "ArrowRight")
        same(view.js(FOCUSED), rows["name"][order[2]], "third")
        columns = view.js(
            "() => { const tops = [...document.querySelectorAll('.grid > .card:not(.probe)')].map((one) => Math.round(one.getBoundingClientRect().top)); return tops.filter((top) => top === Math.min(...tops)).length; }"
        )
        view.press("ArrowDown")
        same(view.js(POSITION), 3 + columns, "row below")
        view.press("ArrowUp", "ArrowLeft")
        same(view.js(POSITION), 2, "back")
        view.press("End")
        same(view.js(POSITION), 500, "last")
        inside = "() => { const box = document.activeElement.getBoundingClientRect(), head = document.querySelector('.top').getBoundingClientRect(); return box.top >= head.bottom && box.bottom <= innerHeight; }"
        assert view.js(inside), "the last card is not in view"
        view.press("ArrowRight")
        same(view.js(POSITION), 500, "still the last")
        view.press("PageUp")
        assert 400 < view.js(POSITION) < 500, view.js(POSITION)
        assert view.js(inside), "after PageUp the focus is not in view"
        view.press("Home")
        same(view.js(POSITION), 1, "first again")
        assert view.js(inside), "the first card is not in view"
        view.press("PageDown")
        assert 1 < view.js(POSITION) < 60, view.js(POSITION)
        assert view.js(inside), "after PageDown the focus is not in view"


@both
def case_detail(world):
    """Click and Enter open a model; arrows and buttons step in the filtered order; Esc, Back and the button close."""
    path, rows, more = world.models
    order = by_name(rows)
    heading = "dialog.browse[open] .detail-name"
    with world.view(path) as view:
        view.click(CARD + " .card-name")
        same(view.text(heading), rows["name"][order[0]], "opened by mouse")
        view.press("ArrowRight")
        same(view.text(heading), rows["name"][order[1]], "next by key")
        view.press("ArrowLeft")
        same(view.text(heading), rows["name"][order[0]], "previous by key")
        view.press("ArrowLeft")
        same(view.text(heading), rows["name"][order[0]], "there is none before")
        view.click("dialog.browse[open] button[title^='Next']")
        same(view.text(heading), rows["name"][order[1]], "next by mouse")
        view.click("dialog.browse[open] button[title^='Previous']")
        same(view.text(heading), rows["name"][order[0]], "previous by mouse")
        i = order[0]
        folder, file = rows["dict"]["folder"][rows["folder"][i]], rows["file"][i]
        same(view.fragment(), f"m={folder}/{file}", "fragment")
        view.press("Escape")
        same((view.count("dialog.browse[open]"), view.fragment()), (0, ""), "closed by Esc")
        same(view.js(POSITION), 1, "focus after closing")
        view.press("Enter")
        same(view.count("dialog.browse[open]"), 1, "opened by Enter")
        view.click("dialog.browse[open] button[title^='Close']")
        same(view.count("dialog.browse[open]"), 0, "closed by mouse")
        view.press("Enter")
        view.js("() => history.back()")
        view.until("() => !document.querySelector('dialog.browse[open]')")
        view.fill("#search", "base:pony")
        names = [
            rows["name"][k]
            for k in order
            if rows["base"][k] >= 0 and rows["dict"]["base"][rows["base"][k]][1] == "Pony"
        ]
        view.press("Enter", "Enter", "ArrowRight")
        same(view.text(heading), names[1], "next of the filtered order")
        assert f"2 of {len(names)}" in view.text("dialog.browse[open] .browse-place")
    info = more[0]["models"][0]
    with world.view(
        path,
        f"#m={rows['dict']['folder'][rows['folder'][0]]}/{rows['file'][0]}".replace(
            "%", "%25"
        ).replace("#", "#", 1),
    ) as view:
        text = view.text("dialog.browse[open]")
        for part in (
            info["model"]["description"][0][:60],
            info["hashes"]["recorded"][0]["value"][:12],
            info["model"]["author"][0],
        ):
            assert part in text, part


def case_copy(world):
    """Words, prompt, path and hash by mouse and by key, from the grid and from the detail."""
    path, rows, more = world.models
    infos = [info for part in more for info in part["models"]]
    order = by_name(rows)
    k = next(
        k
        for k in range(8, 60)
        if rows["word_count"][order[k]] >= 2
        and rows["rank"][order[k]] > 0
        and rows["flags"][order[k]] & 6 == 6
        and "(" not in "".join(rows["words"][order[k]])
        and "," not in "".join(rows["words"][order[k]])
    )
    i = order[k]
    info = infos[i]
    words = ", ".join(word["prompt"] for word in info["trigger_words"])

    def copied(view, expected, what):
        same(view.wait_clipboard(expected), expected, what)
        view.forget()

    with world.view(path) as view:
        view.press("ArrowDown", *["ArrowRight"] * k)
        same(view.js(FOCUSED), rows["name"][i], "card")
        view.press("c")
        copied(view, words, "words by c")
        view.press("l")
        copied(view, info["prompts"]["a1111"], "prompt by l")
        card = f".card:has(.card-name[title='{info['path'].removeprefix('models/')}'])"
        view.page.locator(card).hover()
        view.click(card + " .chip")
        copied(view, rows["words"][i][0], "word by mouse")
        view.until(
            "(word) => document.querySelector('#status').textContent.includes(word)",
            rows["words"][i][0],
        )
        view.page.locator(card).hover()
        view.click(card + " [aria-label='Copy the trigger words']")
        copied(view, words, "words by mouse")
        view.click(card + " [aria-label='Copy the prompt']")
        copied(view, info["prompts"]["a1111"], "prompt by mouse")
        view.click(card + " [aria-label='More actions']")
        view.click(card + " .menu button:has-text('path')")
        copied(view, info["path"], "path by mouse")
        view.click(card + " [aria-label='More actions']")
        view.click(card + " .menu button:has-text('hash')")
        copied(view, info["hashes"]["computed"]["sha256"], "hash by mouse")
        view.page.locator(card + " .card-name").focus()
        view.page.locator(card + " [aria-label='More actions']").focus()
        view.press("Enter", "Enter")
        copied(view, info["path"], "path by key")
        same(
            view.popup(lambda: view.press("o")),
            f"https://civitai.com/models/{info['civitai']['model_id']}?modelVersionId={info['civitai']['version_id']}",
            "page by o",
        )
        view.page.locator(card + " .card-name").focus()
        view.press("Enter")
        view.press("c")
        copied(view, words, "words by c in the detail")
        view.press("l")
        copied(view, info["prompts"]["a1111"], "prompt by l in the detail")
        for n, word in enumerate(info["trigger_words"][:3]):
            view.click(".word-group .chip", n)
            copied(view, word["prompt"], "word by mouse in the detail")
        same(
            view.popup(lambda: view.press("o")),
            f"https://civitai.com/models/{info['civitai']['model_id']}?modelVersionId={info['civitai']['version_id']}",
            "page by o in the detail",
        )


DETAIL_ACTIONS = {"words", "prompt", "open", "before", "after"}


def check_actions(view, done):
    """The help lists actions, and none but those that cases do."""
    view.press("?")
    listed = view.js(
        "() => [...document.querySelectorAll('dialog.help [data-action]')].map((one) => one.dataset.action)"
    )
    known = done | {"detail-" + one for one in DETAIL_ACTIONS}
    assert listed and set(listed) <= known, set(listed) - known


def case_actions_tested(world):
    """Every action that the help lists is one that a case of this file or of cases_access.py does."""
    path, _, _ = world.models
    done = {
        "search",
        "find",
        "filters",
        "sort",
        "density",
        "theme",
        "maturity",
        "left",
        "right",
        "up",
        "down",
        "first",
        "last",
        "page-up",
        "page-down",
        "open",
        "words",
        "syntax",
        "site",
        "clear",
        "help",
        # of cases_select.py
        "select",
        "select-all",
        "unselect",
        "stretch-left",
        "stretch-right",
        "stretch-up",
        "stretch-down",
        "act",
        "star",
    }
    with world.view(path) as view:
        check_actions(view, done)
        view.press("Escape")
        same(view.count("dialog.help[open]"), 0, "help after Esc")
        view.click("button[aria-label=Keys]")
        same(view.count("dialog.help[open]"), 1, "help by mouse")
        view.click("dialog.help [aria-label=Close]")
        view.press("Control+f")
        same(view.js("() => document.activeElement.id"), "search", "focus after Ctrl+F")


@both
def case_state(world):
    """A fragment brings back query, filters, order and the open model; Back closes it."""
    path, rows, _ = world.models
    pony = next(entry[0] for entry in rows["dict"]["base"] if entry[0] == "Pony")
    k = [entry[0] for entry in rows["dict"]["base"]].index(pony)
    expected = [
        i
        for i in range(500)
        if rows["base"][i] == k and "style" not in [rows["dict"]["tag"][t] for t in rows["tags"][i]]
    ]
    expected.sort(key=lambda i: (rows["bytes"][i], i), reverse=True)
    with world.view(path, "#base=Pony&-tag=style&sort=-size") as view:
        same(view.js(TOTAL), len(expected), "models")
        same(view.js(NAMES)[:4], [rows["name"][i] for i in expected[:4]], "order")
        same(view.js("() => document.querySelector('.order').value"), "size", "order shown")
        same(view.count(".active-filters .chip"), 2, "chips")
        view.js("() => { location.hash = 'q=neon'; }")
        view.settle()
        same(
            view.js("() => document.querySelector('#search').value"),
            "neon",
            "search after the address changed",
        )
    for nonsense in (
        "#q=%",
        "#sort=__proto__&is=constructor&m=../../x&kind=&tag=&folder=%ff",
        "#" + "x=1&" * 3000,
    ):
        with world.view(path, nonsense) as view:
            assert 0 <= view.js(TOTAL) <= 500, nonsense[:40]
