"""How the catalogue is shown: densities, themes, pictures, print, without scripts, at 50,000 models."""

import json
import re

from cases_catalog import FOCUSED, NAMES, POSITION, TOTAL, by_name, same


def case_letter_keys(world):
    """Keys of one letter can be switched off, and that is kept."""
    path, _, _ = world.models
    with world.view(path) as view:
        view.press("?")
        view.click("dialog.help [role=switch]")
        view.press("Escape")
        view.press("v", "t", "s", "/")
        same(
            (view.fragment(), view.js("() => document.activeElement.tagName")),
            ("", "BODY"),
            "nothing happened",
        )
        view.page.reload()
        view.settle()
        view.press("s")
        same(view.fragment(), "", "nothing after a reload")


def case_view(world):
    """Density, theme and maturity by key and mouse; kept for the next visit."""
    path, rows, _ = world.models
    state = "() => [document.querySelector('.grid').dataset.density, document.documentElement.dataset.theme ?? 'auto']"
    with world.view(path) as view:
        same(view.js(state), ["medium", "auto"], "at first")
        seen = []
        for _ in range(4):
            view.press("v")
            seen.append(view.js(state)[0])
        same(sorted(seen), ["large", "list", "medium", "small"], "densities by v")
        for density in ("list", "small", "large", "medium"):
            view.click(f"[data-density-of={density}]")
            same(view.js(state)[0], density, "density by mouse")
        themes = []
        for _ in range(3):
            view.press("t")
            themes.append(view.js(state)[1])
        same(themes, ["light", "dark", "auto"], "themes by t")
        view.click("button[aria-label^=Theme]")
        view.click("button[aria-label^=Theme]")
        back = "() => getComputedStyle(document.body).backgroundColor"
        dark = view.js(back)
        assert sum(map(int, re.findall(r"\d+", dark)[:3])) < 200, dark
        hidden = view.count(".picture[data-state=hidden]")
        assert hidden
        view.press("b")
        same(view.count(".picture[data-state=hidden]"), 0, "hidden pictures after b")
        view.press("b")
        same(view.count(".picture[data-state=hidden]"), hidden, "hidden pictures after b again")
        view.click(".maturity")
        view.page.select_option(".maturity-menu select", "2")
        view.settle()
        assert view.count(".picture[data-state=hidden]") >= hidden
        view.page.check(".maturity-menu input")
        view.settle()
        more = view.count(".picture[data-state=hidden]")
        assert more > hidden
        view.press("Escape")
        view.page.reload()
        view.settle()
        same(
            (view.js(state), view.count(".picture[data-state=hidden]")),
            (["medium", "dark"], more),
            "after a reload",
        )


def case_clipped(world):
    """Nothing of a card lies outside of it, in any density and width."""
    path, _, _ = world.models
    outside = """() => [...document.querySelectorAll('.grid > .card:not(.probe)')].flatMap((card) => { const box = card.getBoundingClientRect();
        return [...card.querySelectorAll('*')].filter((one) => { const own = one.getBoundingClientRect(), line = own.width && own.height && !one.closest('.card-words, .card-name, svg, img');
            return line && (own.right > box.right + 1 || own.left < box.left - 1 || own.bottom > box.bottom + 1); }).map((one) => one.outerHTML.slice(0, 100)); })"""
    for width in (320, 700, 1000, 1280, 1920):
        with world.view(path, width=width) as view:
            for _ in range(4):
                density = view.js("() => document.querySelector('.grid').dataset.density")
                same(view.js(outside), [], f"outside of cards at {width} px, {density}")
                view.press("v")


def case_embedded(world):
    """Embedded pictures are shown, and nothing is requested."""
    path, rows, pictures = world.embedded
    with world.view(path) as view:
        view.until(
            "() => [...document.images].some((one) => one.src.startsWith('data:image/png') && one.naturalWidth > 0)"
        )
        first = next(
            i
            for i in by_name(rows)
            if rows["preview"][i]
            and isinstance(rows["preview"][i]["href"], int)
            and rows["preview"][i].get("level", 0) < 4
        )
        assert view.js(
            "(src) => [...document.images].some((one) => one.src === src)",
            pictures[rows["preview"][first]["href"]],
        )
        same([url for url in view.pictures() if not url.startswith("data:")], [], "requests")


def case_pictures(world):
    """Hidden pictures are never requested, shown ones are, and only those near the window."""
    path, rows, _ = world.models
    hrefs = {
        rows["preview"][i]["href"]: rows["preview"][i].get("level", 0)
        for i in range(500)
        if rows["preview"][i] and rows["preview"][i]["href"] and not rows["preview"][i].get("video")
    }
    with world.view(path) as view:
        view.page.wait_for_load_state("networkidle")
        near = set(view.pictures())
        assert 0 < len(near) < 40, len(near)
        height = view.js("() => document.documentElement.scrollHeight")
        for top in range(0, height, 700):
            view.js("(top) => scrollTo({ top, behavior: 'instant' })", top)
            view.page.wait_for_timeout(12)
        view.page.wait_for_timeout(400)
        view.page.wait_for_load_state("networkidle")
        asked = set(view.pictures())
        assert asked <= set(hrefs), sorted(asked - set(hrefs))[:4]
        mature = sorted(href for href in asked if hrefs[href] >= 4)
        assert not mature, f"hidden pictures were requested: {mature[:4]}"
        broken = view.js(
            "() => [...document.images].filter((one) => one.complete && !one.naturalWidth).map((one) => one.src)"
        )
        assert not broken, broken[:3]
        view.js("() => scrollTo({ top: 0, behavior: 'instant' })")
        view.page.wait_for_timeout(300)

        def mature_ones():
            return [href for href in view.pictures() if hrefs[href] >= 4]

        same(mature_ones(), [], "hidden pictures")
        box = view.page.locator(".card .picture[data-state=hidden]").first
        box.locator("button").click()
        new = view.soon(mature_ones, len)
        same(len(new), 1, "pictures after Show")
        same(view.count("dialog.browse[open]"), 0, "dialogs after Show")


def case_many(world):
    """50,000 models: few nodes, few rows rebuilt a step, everything reachable."""
    path, rows, _ = world.many
    with world.view(path, width=1600, height=1000) as view:
        same(view.js(TOTAL), 50000, "models")
        nodes = "() => document.querySelectorAll('.grid > .card, .grid > .card *').length"
        view.js(
            """() => { window.touched = new Set(); new MutationObserver((all) => { for (const one of all) {
            if (one.target.matches('.card')) touched.add(one.target); for (const node of one.addedNodes) if (node.matches?.('.card')) touched.add(node); }
        }).observe(document.querySelector('.grid'), { childList: true, subtree: true }); }"""
        )
        columns = view.js(
            "() => { const cards = [...document.querySelectorAll('.grid > .card:not(.probe)')]; const top = cards[0].getBoundingClientRect().top; return cards.filter((one) => one.getBoundingClientRect().top === top).length; }"
        )
        row = view.js(
            "() => [...document.querySelectorAll('.grid > .card:not(.probe)')].at(-1).getBoundingClientRect().height"
        )
        most = 0
        for step in range(1, 13 if world.short else 40):
            view.js(
                "(top) => { touched.clear(); scrollTo({ top, behavior: 'instant' }); }", step * row
            )
            view.settle()
            # Pictures begin to load when the page rests.
            view.soon(lambda: view.count(".grid [data-state=waiting]"), lambda waiting: waiting == 0)
            assert view.js(nodes) <= 400, f"{view.js(nodes)} nodes"
            most = max(most, view.js("() => touched.size"))
        assert most <= 3 * columns, f"{most} cards rebuilt in a step of one row, {columns} columns"
        view.press("End")
        view.js(
            "() => scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' })"
        )
        view.settle()
        names = view.js(NAMES)
        order = by_name(rows)
        same(names[-1], rows["name"][order[-1]], "last")
        view.fill("#search", rows["name"][order[31234]])
        assert view.js(TOTAL) >= 1
        view.fill("#search", "")
        view.press("Escape")
        view.click("[data-density-of=list]")
        view.js(
            "() => scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' })"
        )
        view.settle()
        same(view.js(NAMES)[-1], rows["name"][order[-1]], "last of the list")
        assert view.js(nodes) <= 500, f"{view.js(nodes)} nodes of the list"


def case_tall(world):
    """Where 50,000 cards would be taller than a browser allows, scrolling is scaled: all are reached, none overlap."""
    path, rows, _ = world.many
    tops = "() => [...document.querySelectorAll('.grid > .card:not(.probe)')].map((one) => [Number(one.getAttribute('aria-posinset')), one.getBoundingClientRect().top, one.offsetHeight])"
    with world.view(path, "#sort=path", width=360, height=740) as view:
        view.press("v", "v", "v")
        height = view.js("() => document.documentElement.scrollHeight")
        assert 14e6 < height < 17e6, height
        view.press("ArrowDown")
        for keys in (["End"], ["ArrowUp"], ["PageUp"], ["Home"], ["ArrowDown"], []):
            if not keys:
                view.js("(top) => scrollTo({ top, behavior: 'instant' })", height // 2)
                view.settle()
            view.press(*keys)
            cards = sorted(view.js(tops))
            for (one, top, size), (next_one, next_top, _) in zip(cards, cards[1:]):
                assert next_one > one + 1 or top + size < next_top < top + size + 40, (keys, cards)
            if keys:
                assert view.js(
                    "() => { const box = document.activeElement.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight; }"
                ), keys
        middle = view.js(tops)[0][0]
        assert 24000 < middle < 26000 or view.js(POSITION) == 2, middle
        view.press("End")
        same(view.js(POSITION), 50000, "last")
        same(view.js(FOCUSED), rows["name"][-1], "name of the last")


def case_place(world):
    """The model that has the focus keeps it, in view, through densities, widths, orders and searches."""
    path, _, _ = world.models
    inside = "() => { const box = document.activeElement.getBoundingClientRect(), head = document.querySelector('.top').getBoundingClientRect(); return document.activeElement.matches('.card-name') && box.top >= head.bottom && box.bottom <= innerHeight; }"
    with world.view(path) as view:
        view.press("ArrowDown", *["PageDown"] * 6)
        name, position = view.js(FOCUSED), view.js(POSITION)
        assert position > 20, position
        for _ in range(4):
            view.press("v")
            same((view.js(FOCUSED), view.js(POSITION)), (name, position), "after another density")
            assert view.js(
                inside
            ), f"not in view: {view.js('() => document.querySelector(`.grid`).dataset.density')}"
        for width in (700, 1700, 1280):
            view.page.set_viewport_size({"width": width, "height": 860})
            view.settle()
            view.settle()
            same((view.js(FOCUSED), view.js(POSITION)), (name, position), f"at a width of {width}")
        view.press("s")
        same(view.js(FOCUSED), name, "after another order")
        assert view.js(inside), "not in view after another order"
        view.js("() => { location.hash = 'q=-zzzzzz&sort=path'; }")
        view.settle()
        same(view.js(FOCUSED), name, "after a search that finds it")
        view.js("() => { location.hash = 'kind=embedding'; }")
        view.settle()
        assert view.js(FOCUSED) != "BODY", "the focus was lost with the model"


def case_noscript(world):
    """Without JavaScript a table has the models."""
    path, rows, _ = world.models
    view = world.view(path, java_script_enabled=False, wait=False)
    try:
        lines = view.page.locator("noscript table tr, table tr")
        assert lines.count() == 501, lines.count()
        text = view.page.locator("table").inner_text()
        assert rows["name"][0] in text and "<style>guangying</style>" in text
        world.shot(view, "noscript")
    finally:
        view.context.close()


def case_print(world):
    """In print, a table has the result."""
    path, rows, _ = world.models
    with world.view(path, "#q=base%3Apony") as view:
        total = view.js(TOTAL)
        view.js("() => dispatchEvent(new Event('beforeprint'))")
        same(view.count(".printed tbody tr"), total, "lines")
        view.page.emulate_media(media="print")
        assert (
            view.page.locator(".printed").is_visible()
            and not view.page.locator(".grid").is_visible()
        )
        view.js("() => dispatchEvent(new Event('afterprint'))")
        same(view.count(".printed"), 0, "tables afterwards")


def case_damaged(world):
    """A page whose data is cut off says so."""
    path, _, _ = world.models
    with open(path, encoding="utf-8") as text:
        whole = text.read()
    start = whole.index('id="rows">') + len('id="rows">')
    for data in ('{"format":1', json.dumps({"format": 2}), "", "null"):
        made = world.keep(
            "500/damaged.html", whole[:start] + data + whole[whole.index("</script>", start) :]
        )
        view = world.view(made)
        try:
            assert "damaged" in view.text("[role=alert]"), data
        finally:
            view.context.close()
