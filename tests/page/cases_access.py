"""Accessibility: axe-core in four modes, the keyboard, reflow, and screenshots of all views."""

from cases_catalog import CARD, same


def nothing(_):
    pass


def key(*keys):
    return lambda view: view.press(*keys)


def filters(view):
    if view.page.viewport_size["width"] < 900:
        view.press("f")
    else:
        view.js("() => { for (const one of document.querySelectorAll('.facet')) one.open = true; }")


def chosen(view):
    view.js("() => { location.hash = 'base=Pony&tag=style&-tag=nsfw&is=words&q=-zzz'; }")
    view.settle()


def menu(view):
    view.press("ArrowDown")
    view.page.locator(CARD + " [aria-label='More actions']").first.focus()
    view.press("Enter")


def maturity(view):
    view.click(".maturity")


def empty(view):
    view.fill("#search", "no such model anywhere")


def detail(view):
    view.js(
        "() => { location.hash = 'm=' + encodeURIComponent((document.querySelector('.grid > .card:not(.probe):has(.chip) .card-name') ?? document.querySelector('.grid > .card:not(.probe) .card-name')).title); }"
    )
    view.settle()
    view.js(
        "() => { for (const one of document.querySelectorAll('dialog details')) one.open = true; }"
    )


STATES = {
    "grid": nothing,
    "list": key("v", "v"),
    "filters": filters,
    "chosen": chosen,
    "menu": menu,
    "maturity": maturity,
    "empty": empty,
    "detail": detail,
    "help": key("?"),
}


# The states, and their modes, at which make test looks; make test-browsers looks at all in all.
SHORT = {"grid": ("light", "forced", "narrow"), "filters": ("light",), "menu": ("light",),
         "detail": ("dark",), "tree": ("light", "narrow"), "row": ("light",), "lora": ("light",)}


def findings(world, path, states, prefix):
    """Findings of axe-core in each state and mode, and what is wider than a narrow window."""
    wrong = []
    for state, reach in states.items():
        for width, modes in ((1280, ("light", "dark", "forced")), (320, ("narrow",))):
            if world.short:
                modes = [mode for mode in modes if mode in SHORT.get(state, ())]
            if not modes:
                continue
            with world.view(path, width=width, height=860 if width > 320 else 640) as view:
                reach(view)
                for mode in modes:
                    view.page.emulate_media(
                        color_scheme="dark" if mode == "dark" else "light",
                        forced_colors="active" if mode == "forced" else "none",
                    )
                    view.settle()
                    wrong += [f"{mode} {state}: {one}" for one in view.axe()]
                    world.shot(view, f"{prefix}-{state}-{mode}")
                overflow = view.js("() => document.scrollingElement.scrollWidth - innerWidth")
                if overflow > 0:
                    wrong.append(f"{width} px, {state}: {overflow} px wider than the window")
    assert not wrong, f"{len(wrong)} findings:\n" + "\n".join(wrong[:25])


def case_axe_catalog(world):
    findings(world, world.models[0], STATES, "catalogue")


def select_row(view):
    view.js("() => document.querySelector('.tree').focus()")
    view.press("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowDown")


def find(view):
    view.fill("#find", "proj")


def case_axe_model(world):
    findings(
        world,
        world.model("llm")[0],
        {"tree": nothing, "row": select_row, "find": find, "help": key("?")},
        "model-llm",
    )


def case_axe_lora(world):
    findings(world, world.model("lora")[0], {"lora": nothing}, "model")


def case_tab(world):
    """Each Tab stop is in view, not covered, with a name and a visible focus."""
    look = """() => { const ring = (one) => one !== null && getComputedStyle(one).outlineStyle !== 'none' && parseFloat(getComputedStyle(one).outlineWidth) > 0;
        const one = document.activeElement, box = one.getBoundingClientRect(), style = getComputedStyle(one);
        const x = Math.min(Math.max(box.x + box.width / 2, 0), innerWidth - 1), y = Math.min(Math.max(box.y + Math.min(box.height / 2, 20), 0), innerHeight - 1);
        const top = document.elementFromPoint(x, y);
        return { what: one.outerHTML.slice(0, 120), size: [box.width, box.height], inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
            covered: !(top && (one.contains(top) || top.contains(one) || one.closest('label')?.contains(top))), outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0
                || style.boxShadow !== 'none' || one.closest('.search, label')?.matches(':focus-within') || ring(one.closest('.card')) }; }"""
    path, _, _ = world.models
    for width in (1280, 400):
        with world.view(path, width=width) as view:
            seen = set()
            for _ in range(45):
                view.press("Tab")
                one = view.js(look)
                if one["what"].startswith("<body"):
                    break
                seen.add(one["what"])
                assert one["inside"] and not one["covered"], one
                assert one["outline"], one
            assert len(seen) >= 15, len(seen)


def case_dialog_focus(world):
    """Focus stays in an open dialog and returns to its card."""
    path, _, _ = world.models
    with world.view(path) as view:
        view.press("ArrowDown", "ArrowRight", "Enter")
        for _ in range(30):
            view.press("Tab")
            # Between the last and the first stop the browser's own controls have the focus.
            assert view.js(
                "() => document.activeElement.closest('dialog') !== null || document.activeElement === document.body"
            )
        view.press("Escape")
        same(
            view.js("() => document.activeElement.closest('.card').getAttribute('aria-posinset')"),
            "2",
            "card",
        )


def case_roles(world):
    """A list of items with their places, one status, landmarks, one heading of level 1."""
    path, _, _ = world.models
    with world.view(path) as view:
        view.press("ArrowDown", "c")
        view.page.wait_for_timeout(100)
        roles = view.js(
            """() => ({ list: document.querySelector('.grid').getAttribute('role'), h1: document.querySelectorAll('h1').length,
            main: document.querySelectorAll('main').length, status: document.querySelectorAll('[role=status]').length,
            places: [...document.querySelectorAll('.grid > .card:not(.probe)')].map((one) => Number(one.getAttribute('aria-posinset'))) })"""
        )
        same((roles["list"], roles["h1"], roles["main"]), ("list", 1, 1), "roles")
        assert roles["status"] >= 1
        same(
            roles["places"],
            list(range(1, len(roles["places"]) + 1)),
            "places, in the order of the document",
        )


def case_motion(world):
    """With reduced motion nothing is animated for long, and no video plays."""
    path, rows, _ = world.models
    with world.view(path, "#q=zzz") as view:
        view.fill("#search", "")
        longest = view.js(
            "() => Math.max(0, ...[...document.querySelectorAll('*')].map((one) => Math.max(...getComputedStyle(one).transitionDuration.split(',').map(parseFloat), ...getComputedStyle(one).animationDuration.split(',').map(parseFloat))))"
        )
        assert longest <= 0.01, longest
        i = next(
            i
            for i in range(rows["count"])
            if rows["preview"][i] and rows["preview"][i].get("video")
        )
        view.fill("#search", f'name:"{rows["file"][i]}"')
        view.page.locator(CARD).first.hover()
        view.page.wait_for_timeout(100)
        assert view.js("() => [...document.querySelectorAll('video')].every((one) => one.paused)")
        assert not any(url.endswith(".mp4") for url in view.pictures()), "a video was loaded"
