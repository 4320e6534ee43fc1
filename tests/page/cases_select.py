"""What leads on from the page: selection, commands, stars, ratings."""

import copy
import os
import shutil
import subprocess

import folder as folders
import pages
import run
import synthetic
from cases_catalog import NAMES, POSITION, TOTAL, both, same

CHOSEN = """() => [...document.querySelectorAll('.card.selected')].filter((one) => one.querySelector('.card-check').ariaChecked === 'true')
    .sort((a, b) => a.getAttribute('aria-posinset') - b.getAttribute('aria-posinset')).map((one) => one.querySelector('.card-name').textContent)"""
COUNT = ".selected-count b"
SHOWN = "() => [...document.querySelectorAll('dialog.commands code')].map((one) => one.textContent)"


@both
def case_select(world):
    """Models are selected by key and by mouse, one by one, as a range, all; the bar counts them."""
    path, rows, _ = world.models
    with world.view(path) as view:
        same(view.js("() => document.querySelector('.select-bar').hidden"), True, "no bar")
        names = view.js(NAMES)
        view.press("ArrowDown", "x")
        same(view.js(CHOSEN), names[:1], "x")
        view.press("Shift+ArrowRight", "Shift+ArrowRight")
        same(view.js(CHOSEN), names[:3], "Shift and an arrow")
        view.press("Shift+ArrowLeft")
        same(view.js(CHOSEN), names[:2], "and back")
        view.press("Shift+ArrowDown")
        same(view.js(POSITION), int(view.text(COUNT).split()[0]), "the row below")
        view.press("Shift+ArrowUp")
        same(view.js(CHOSEN), names[:2], "and above")
        same(view.text(COUNT), "2 selected", "count")
        view.press("ArrowRight", "ArrowRight", " ")
        same(view.js(CHOSEN), names[:2] + names[3:4], "Space, where the name would open")
        same(view.count("dialog.browse[open]"), 0, "nothing was opened")
        view.press("Escape")
        same((view.js(CHOSEN), view.js("() => document.querySelector('.select-bar').hidden")), ([], True), "Esc")
        view.press("Control+a")
        same(view.text(COUNT), "500 selected", "Ctrl A")
        view.click(".select-bar [aria-label='Select none']")
        same(view.count(".card.selected"), 0, "none")
        card = "li.card[aria-posinset='%d'] .picture"
        view.click(card % 2, holding="Control")
        view.click(card % 4, holding="Shift")
        same(view.js(CHOSEN), names[1:4], "click and Shift click")
        view.click(card % 3, holding="Shift")
        same(view.js(CHOSEN), names[1:3], "a shorter range")
        view.hover("li.card[aria-posinset='6']")
        view.click("li.card[aria-posinset='6'] .card-check")
        same(view.js(CHOSEN), names[1:3] + names[5:6], "the box")
        view.press("/")
        view.type("nothing has this")
        same(view.text(COUNT), "3 selected", "kept by a search")
        assert "3 not shown" in view.text(".selected-count"), view.text(".selected-count")
        view.press("Escape")
        same(view.js(CHOSEN), names[1:3] + names[5:6], "and after it")
        view.click("li.card[aria-posinset='1'] .picture")
        same(view.count("dialog.browse[open]"), 1, "a click opens")


def case_select_access(world):
    """Nothing that axe-core finds, with models selected and in the dialog, light and dark, wide and narrow."""
    path, _, _ = world.models
    for width, scheme in ((1280, "light"), (390, "dark")):
        with world.view(path, width=width, color_scheme=scheme) as view:
            view.press("ArrowDown", "x", "Shift+ArrowRight", "*")
            same(view.axe(), [], f"axe, selected, {scheme}")
            view.press("a")
            for verb in ("note", "convert", "stars"):
                view.click(f"dialog.commands [data-verb={verb}]")
                same(view.axe(), [], f"axe, {verb}, {scheme}")
            same(
                view.js("() => document.documentElement.scrollWidth <= innerWidth"), True, "no overflow"
            )


def told(world, view):
    """The words that a real shell hands to the command that is shown first."""
    place = os.path.join(world.folder, "bin")
    script = world.keep("bin/safetensors", '#!/bin/sh\nprintf "%s\\0" "$@"\n')
    os.chmod(script, 0o755)
    view.forget()
    view.click("dialog.commands .command button")
    line = view.soon(view.clipboard, lambda text: text.startswith("safetensors"))
    env = dict(os.environ, PATH=place + ":" + os.environ["PATH"], HOME=world.folder)
    done = subprocess.run(["sh", "-c", line], env=env, stdout=subprocess.PIPE, check=True)
    return os.fsdecode(done.stdout).split("\0")[:-1]


def hostile_names(world):
    """A page beside models with names that shells would read."""
    place = os.path.join(world.folder, "select names")
    names = ["-rf", "it's", 'quo"te', "%PATH%", "!x", "$(id)", "a;b&c", "new\nline", "ret\rurn", "日本", "rtl\u202ex", "#1", "back\\slash", "rating=4"]
    for k, name in enumerate(names):
        pages.keep(place, f"m/{name}.safetensors", folders.safetensors(folders.lora(), {"n": str(k)}))
    bad = os.path.join(os.fsencode(place), b"m/not\xffutf.safetensors")
    with open(bad, "wb") as file:
        file.write(folders.safetensors(folders.lora(), {"n": "bytes"}))
    page = world.catalog(os.path.join(place, "m"), os.path.join(place, "page.html"), {0}, "--force")
    return page, [os.path.join(place, "m", name + ".safetensors") for name in names]


def case_select_command(world):
    """A command names exactly the files that were selected, through a real shell and through a list."""
    page, files = hostile_names(world)
    with world.view(page) as view:
        same(view.js(TOTAL), len(files) + 1, "models")
        view.page.fill("#search", "it's")
        view.settle()
        view.press("Enter", "x", "a")
        view.click("[data-verb=trash]")
        same(told(world, view), ["trash", next(one for one in files if "it's" in one)], "one word")
        view.click("[data-verb=mv]")
        same(view.js(SHOWN), [], "no command without a folder")
        view.fill(".command-fields input", "to 'here'")
        view.page.check("dialog.commands [type=checkbox]")
        same(told(world, view)[2:], ["to 'here'/", "--dry-run"], "a folder")
        view.page.uncheck("dialog.commands [type=checkbox]")
        view.click("[data-verb=note]")
        view.page.select_option(".command-fields select", "4")
        view.fill(".command-fields label:has-text('Note') input", 'say "x" $HOME')
        same(told(world, view)[2:], ["rating=4", 'note=say "x" $HOME'], "facts")
        view.press("Escape", "Escape")
        view.fill("#search", "")
        view.press("Enter", "Control+a", "a")
        view.click("[data-verb=trash]")
        assert "Without 1 model" in view.text("dialog.commands .note.warn"), "a name that is no UTF-8"
        same(told(world, view)[:2], ["trash", "--files-from"], "a list")
        with view.page.expect_download() as saved:
            view.page.click(".list-row button")
        got = os.path.join(world.folder, "got.txt")
        saved.value.save_as(got)
        assert told(world, view)[2].endswith("Downloads/" + saved.value.suggested_filename)
        code, out, said = world.command("info", "--files-from", got, "--tsv", "-f", "path")
        same((code, said, len(out.splitlines()) - 1), (0, "", len(files)), "info of the list")
        with open(got, "rb") as file:
            same(sorted(os.fsdecode(file.read()).split("\0")[:-1]), sorted(files), "the list")
        for shell, start in (("powershell", '"$HOME/Downloads/'), ("cmd", '"%USERPROFILE%\\Downloads\\')):
            view.page.select_option("dialog.commands .field:has-text('shell') select", shell)
            view.settle()
            assert start in view.js(SHOWN)[0], view.js(SHOWN)


def case_stars(world):
    """A star lives in the browser, is filtered, leaves as commands, and is then the files' own."""
    place = os.path.join(world.folder, "stars")
    for name in "abc":
        pages.keep(place, f"m/{name}.safetensors", folders.safetensors(folders.lora(), {"n": name}))
    code, _, said = world.command("note", "stars/m/c.safetensors", "favourite", "rating=3.5", "note=kept")
    same((code, said), (0, ""), "note")
    page = world.catalog("stars/m", "stars/page.html", {0})
    starred = "() => [...document.querySelectorAll('.card:has(.starred) .card-name')].map((one) => one.textContent).sort()"
    with world.view(page) as view:
        same(view.js(starred), ["c"], "by the files")
        assert "★ 3.5" in view.text(".card:has(.starred)"), "rating"
        view.press("ArrowDown", "*")
        same(view.js(starred), ["a", "c"], "a star by key")
        assert view.js("() => document.activeElement.closest('.card') !== null"), "the focus stays"
        assert "in this browser" in view.soon(lambda: view.text("#status"), bool), view.text("#status")
        view.press("ArrowRight", "ArrowRight")
        view.click(".card:has(.card-bar) .card-bar [aria-label=Favourite]")
        same(view.js(starred), ["a"], "one taken by mouse")
        view.page.reload()
        view.settle()
        same(view.js(starred), ["a"], "kept")
        view.click(".facet[data-facet=is] .chip:has-text('favourites')")
        same(view.js(NAMES), ["a"], "filtered")
        view.click(".stars-button")
        assert "by this browser alone" in view.text("dialog.commands"), view.text("dialog.commands")
        lines = view.js(SHOWN)
        assert len(lines) == 2, lines
        env = dict(os.environ, PATH=run.BUILD + ":" + os.environ["PATH"])
        for line in lines:
            subprocess.run(["sh", "-c", line], env=env, check=True, stdout=subprocess.DEVNULL)
        world.catalog("stars/m", "stars/page.html", {0}, "--force")
        view.page.goto(view.url)
        view.page.reload()
        view.settle()
        same(view.js(starred), ["a"], "the files' own")
        same(view.js("() => document.querySelector('.stars-button').hidden"), True, "nothing is left")
        view.press("ArrowDown", "*")
        view.click(".stars-button")
        view.click("dialog.commands button:has-text('Forget')")
        same(view.js(starred), ["a"], "forgotten")


def case_ratings(world):
    """Ratings and own notes: filters, order, search, and what the details say."""
    path, rows, more = world.models
    infos = [info for part in more for info in part["models"]]
    with world.view(path) as view:
        for stars in ("5", "2"):
            view.page.goto(view.url + f"#rating={stars}")
            view.settle()
            same(view.js(TOTAL), sum(int(stars) <= one < int(stars) + 1 for one in rows["rating"]), stars)
        view.page.goto(view.url + "#is=noted&sort=-rating")
        view.settle()
        same(view.js(TOTAL), sum(one >= 0 for one in rows["rating"]), "own notes")
        best = view.js("() => [...document.querySelectorAll('.grid .rating')].slice(0, 3).map((one) => one.textContent)")
        same(best, ["★ 5"] * 3, "best first")
    with world.view(path, "#q=%22kept%207,%22") as view:
        view.until("() => document.documentElement.dataset.details === 'searched'")
        same(view.js(TOTAL), sum("kept 7," in str(info["model"].get("notes")) for info in infos), "notes are searched")
        view.press("ArrowDown", "Enter")
        text = view.text("dialog.browse .detail")
        assert "Your note" in text and "works at 768" in text and "your note" in text, text[:300]


def case_veil(world):
    """Pictures rated R and above: striped and not loaded, blurred, or shown."""
    path, _, _ = world.models
    with world.view(path) as view:
        hidden = ".grid .picture[data-state=hidden]"
        count = view.count(hidden)
        same((count > 0, view.count(hidden + " img")), (True, 0), "striped: nothing is loaded")
        view.click(".maturity")
        view.page.select_option(".maturity-menu label:has-text('Hidden') select", "blur")
        view.settle()
        same(view.count(hidden + " img"), count - view.count(hidden + ":has(video)"), "blurred")
        blur = view.js(f"() => getComputedStyle(document.querySelector('{hidden} img')).filter")
        assert blur.startswith("blur(") and float(blur[5:-3]) > 4, blur
        view.page.reload()
        view.settle()
        assert view.count(hidden + " img"), "kept"
        same(view.axe(), [], "axe")
        view.click(hidden + " button")
        same(view.count(hidden), count - 1, "one is shown")
        view.press("b")
        same(view.count(hidden), 0, "shown")


def case_digits(world):
    """Where names are only digits the newest come first, unless the address says otherwise."""
    rows, more = copy.deepcopy(world.models[1]), world.models[2]
    rows["name"] = [f"{7919 * i % 100000:05}" if i % 10 else f"Name {i}" for i in range(500)]
    path = world.keep("digits.html", pages.catalogue_page(rows, more))
    with world.view(path) as view:
        same(view.js("() => document.querySelector('.order').value"), "modified", "order")
        same(view.fragment(), "", "nothing in the address")
        newest = max(range(500), key=lambda i: (rows["modified"][i], i))
        same(view.js(NAMES)[0], rows["name"][newest], "newest first")
        view.page.select_option(".order", "name")
        view.settle()
        same(view.fragment(), "sort=name", "another order")
    with world.view(path, "#sort=name") as view:
        same(view.js("() => document.querySelector('.order').value"), "name", "by the address")


def case_first_screen(world):
    """From 700 px the details have two columns; trigger words are in the first screen."""
    path, rows, _ = world.models
    i = next(i for i in range(500) if rows["word_count"][i] in (1, 2) and rows["preview"][i] and not rows["preview"][i].get("why") and rows["preview"][i].get("level") == 1)
    where = rows["dict"]["folder"][rows["folder"][i]] + "/" + rows["file"][i]
    for width, height, columns in ((390, 844, 1), (700, 900, 2), (1400, 900, 2)):
        with world.view(path, width=width, height=height) as view:
            view.js("(text) => { location.hash = new URLSearchParams({ m: text }).toString(); }", where)
            view.page.wait_for_selector("dialog.browse[open] .word-group .chip")
            view.settle()
            same(view.js("() => getComputedStyle(document.querySelector('.browse .detail')).gridTemplateColumns.split(' ').length"), columns, width)
            bottom = view.js("() => document.querySelector('.browse .word-group .chip').getBoundingClientRect().bottom")
            assert bottom <= height, (width, bottom)


def case_same_hues(world):
    """A base model has one colour on every page, whatever else is there."""
    _, rows, more = world.models
    hues = "() => Object.fromEntries([...document.querySelectorAll('.card .badge:not(.fault)')].map((one) => [one.textContent, one.dataset.hue]))"
    with world.view(world.models[0], "#sort=size") as view:
        one = view.js(hues)
    mixed = copy.deepcopy(rows)
    mixed["dict"]["base"].reverse()
    last = len(mixed["dict"]["base"]) - 1
    mixed["base"] = [last - k if k >= 0 else k for k in mixed["base"]]
    with world.view(world.keep("mixed.html", pages.catalogue_page(mixed, more)), "#sort=size") as view:
        same(view.js(hues), one, "colours")
    assert len(set(one.values())) > 1, one


def case_list_folder(world):
    """In the list a long folder is cut at its beginning."""
    path, _, _ = world.models
    with world.view(path, width=1400) as view:
        view.click("[data-density-of=list]")
        cells = view.js("""() => { const one = document.querySelector('.as-list .card-folder'), text = one.firstElementChild;
            text.textContent = 'beginning/' + 'of a very long folder/'.repeat(6) + 'end';
            const box = one.getBoundingClientRect(), range = document.createRange(), node = text.firstChild;
            range.setStart(node, node.length - 3); range.setEnd(node, node.length);
            const end = range.getBoundingClientRect();
            range.setStart(node, 0); range.setEnd(node, 3);
            return [box.left <= end.left && end.right <= box.right + 1, range.getBoundingClientRect().left < box.left]; }""")
        same(cells, [True, True], "its end is seen, its beginning is not")


def case_empty_folder(world):
    """Of a folder without models there is a page, which says what would be one."""
    shutil.rmtree(os.path.join(world.folder, "no models"), ignore_errors=True)
    pages.keep(world.folder, "no models/readme.txt", "nothing")
    page = world.catalog("no models", "none.html", {0})
    with world.view(page) as view:
        text = view.text(".empty")
        for part in ("No models here", "no models", ".safetensors", "index", ".gguf", ".ckpt", ".pt2"):
            assert part in text, (part, text)
        same(view.axe(), [], "axe")
        view.press("Control+a", "a", "*", "x")
        same(view.count("dialog[open]"), 0, "nothing to act on")
