"""Pages that the real command writes."""

import hashlib
import json
import os
import re
import shutil
import urllib.parse

import corpus
import folder
import run
import unit
from cases_catalog import CARD, NAMES, TOTAL, both, same
from cases_injection import all_names, visible

BLOCK = re.compile(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', re.S)


def blocks(path):
    with open(path, encoding="utf-8", newline="") as text:
        return {name: json.loads(data) for name, data in BLOCK.findall(text.read())}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def numbers_of_rows(rows):
    """`what` with numbers replaced, as data.js does: types.d.ts describes the result."""
    what = []
    for one in rows["what"]:
        what.append(what[one] if isinstance(one, int) else one)
    return dict(rows, what=what)


def expanded(world, path):
    """Infos of all models, as the page's own data.js unpacks them."""
    lines = """import { readFileSync } from 'node:fs';
    import { openCatalog } from %s;
    const blocks = JSON.parse(readFileSync(0, 'utf8'));
    const catalog = openCatalog((id) => blocks[id] ? JSON.stringify(blocks[id]) : null);
    console.log(JSON.stringify(Array.from({ length: catalog.count }, (_, i) => catalog.more(i))));
    """ % json.dumps(os.path.join(unit.PAGE, "data.js"))
    script = world.keep("expand.mjs", lines)
    return json.loads(unit.run([unit.NODE, script], input=json.dumps(blocks(path))))


def case_command_types(world):
    """Every block that the command writes is of the types of page/types.d.ts, hostile text or not."""
    values = []
    for path in (world.real, world.real_hostile):
        data = blocks(path)
        values.append(("Rows", numbers_of_rows(data["rows"])))
        values += [("Info", info) for info in expanded(world, path)[:70]]
        count = data["rows"]["count"]
        same(
            sum(len(part["models"]) for name, part in data.items() if name.startswith("more-")),
            count,
            "models in the blocks",
        )
        for column in unit.columns():
            same(len(data["rows"][column]), count, f"items in {column}")
    first = next(
        os.path.join(root, name)
        for root, _, names in os.walk(os.path.join(world.folder, "real"))
        for name in names
        if name.endswith(".safetensors")
    )
    for options in ((), ("--deep",)):
        code, _, said = world.command(
            "catalog", "--model", first, "-o", "one.html", "--force", *options
        )
        same((code, said), (0, ""), "catalog --model")
        values.append(("ModelPage", blocks(os.path.join(world.folder, "one.html"))["model"]))
    unit.of_type(values)


@both
def case_command_page(world):
    """All models of a folder, with their pictures."""
    with world.view(world.real) as view:
        same(view.js(TOTAL), 300, "models")
        view.until("() => [...document.images].some((one) => one.naturalWidth > 0)")
        view.press("ArrowDown", "Enter")
        same(view.count("dialog.browse[open]"), 1, "dialogs")


def case_command_same_bytes(world):
    """The same bytes for the same folder, also at another time and in another run."""
    first = digest(world.real)
    for name in ("again.html", "third.html"):
        path = world.catalog("real", os.path.join("real", name), {0})
        same(digest(path), first, name)
        os.remove(path)
    code, _, said = world.command("catalog", "real", "-o", "real/catalogue.html")
    assert code == 2 and "exists" in said, (code, said)
    same(digest(world.real), first, "the page after a refused overwrite")


def case_command_names(world):
    """Pictures of files with # ? % spaces and other scripts in their names are found."""
    path = world.real_hostile
    with world.view(path, "#folder=names", height=2400) as view:
        total = view.js(TOTAL)
        same(total, len(folder.NAMES), "models")
        shown = view.soon(
            lambda: view.js(
                "() => [...document.images].filter((one) => one.naturalWidth).map((one) => decodeURIComponent(one.src.split('/').at(-1)))"
            ),
            lambda names: len(names) >= len(folder.NAMES),
        )
        same(
            sorted(shown),
            sorted(f"{name}.png" for name in folder.NAMES),
            "pictures",
        )


@both
def case_command_hostile(world):
    """The corpus in file names, folders, metadata and sidecars: shown, and harmless."""
    path = world.real_hostile
    rows = blocks(path)["rows"]
    with world.view(path) as view:
        same(view.js(TOTAL), rows["count"], "models")
        same(sorted(all_names(view)), sorted(visible(name) for name in rows["name"]), "names")
        view.js("() => scrollTo({ top: 0, behavior: 'instant' })")
        view.press("ArrowDown", "Enter")
        view.press(*["ArrowRight"] * (rows["count"] - 1), settle=False)
        assert view.js(
            "() => document.querySelector('dialog.browse[open] .browse-place').textContent"
        ).startswith(f"{rows['count']} of")
    shown = set(rows["name"])
    lost = [
        text
        for text in corpus.STRINGS
        if text not in shown
        and 0 < len(text.strip()) < 200
        and text.isprintable()
        and text.strip() == text
    ]
    assert (
        len(lost) < len(corpus.STRINGS) / 4
    ), f"{len(lost)} names of the corpus are not names: {lost[:8]}"


def case_command_broken(world):
    """A file that cannot be read is a card with the reason in two words; the detail has the sentence."""
    with world.view(world.real_hostile, "#is=broken") as view:
        same(view.js(NAMES), ["cut <b>off<b>"], "broken models")
        for density in ("large", "medium", "small", "list"):
            view.js("(to) => document.querySelector('.grid').dataset.density = to", density)
            same(view.text(f"{CARD} .fault"), "cut short", f"the mark of {density} cards")
            assert view.page.locator(f"{CARD} .fault .icon").is_visible(), density
        assert "byte" not in view.text(CARD), view.text(CARD)
        view.click(f"{CARD} .card-name")
        assert "byte" in view.text("[data-note=error]"), view.text("[data-note=error]")


def case_command_noscript(world):
    view = world.view(world.real_hostile, java_script_enabled=False, wait=False)
    try:
        text = view.page.locator("table").inner_text()
        for part in ("<style>guangying</style>", "fym <artist>", "日本語のモデル"):
            assert part in text, part
        same(
            view.page.locator("table tr").count(),
            blocks(world.real_hostile)["rows"]["count"] + 1,
            "lines",
        )
    finally:
        view.context.close()


def case_command_embed(world):
    """--embed puts the pictures into the page, which can then be moved away."""
    models = os.path.basename(os.path.dirname(world.real))
    path = world.catalog(models, "embedded.html", {0}, "--embed")
    os.makedirs(os.path.join(world.folder, "elsewhere"), exist_ok=True)
    moved = shutil.move(path, os.path.join(world.folder, "elsewhere", "page.html"))
    with world.view(moved) as view:
        view.until(
            "() => [...document.images].some((one) => one.src.startsWith('data:') && one.naturalWidth > 0)"
        )
        same([url for url in view.pictures() if not url.startswith("data:")], [], "requests")


def case_command_policy(world):
    """The policy allows this page's own script and style only, and stands before anything that it is about."""
    with open(world.real, encoding="utf-8", newline="") as text:
        page = text.read()
    policy = page.index("Content-Security-Policy")
    assert policy < page.index("<style") < page.index("<script") and policy < page.index("<title")
    for part in (
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ):
        assert part in page[policy : policy + 600], part
    assert (
        "unsafe" not in page[policy : policy + 600]
        and "http" not in page[policy + 30 : policy + 600]
    )
    for extra in (
        "<script>window.evil = 1</script>",
        "<img src=x onerror='window.evil = 1'>",
        "<style>body { display: none }</style>",
    ):
        made = world.keep("real/extra.html", page.replace("<body>", "<body>" + extra))
        view = world.view(made)
        try:
            same(
                view.js(
                    "() => [typeof window.evil, getComputedStyle(document.body).display !== 'none', seen.violations.length > 0]"
                ),
                ["undefined", True, True],
                extra,
            )
        finally:
            view.context.close()
            os.remove(made)


def case_command_model(world):
    """catalog --model: tensors, metadata and statistics of a real file."""
    first = next(
        os.path.join(root, name)
        for root, _, names in sorted(os.walk(os.path.join(world.folder, "real")))
        if world.real
        for name in sorted(names)
        if name.endswith(".safetensors")
    )
    code, _, said = world.command(
        "catalog", "--model", first, "-o", "deep.html", "--deep", "--force"
    )
    same((code, said), (0, ""), "catalog --model --deep")
    with world.view(os.path.join(world.folder, "deep.html")) as view:
        view.fill("#find", "lora_up")
        assert "1 of 3" in view.text(".found"), view.text(".found")
        assert "networks.lora" in view.js("() => document.body.innerText")


def case_command_samples(world):
    """The collected files of other projects."""
    samples = os.path.join(run.SHARED, "samples")
    if not os.path.isdir(samples):
        return
    path = world.catalog(samples, "samples.html", {0, 1})
    rows = blocks(path)["rows"]
    assert rows["count"] >= 20, rows["count"]
    with world.view(path) as view:
        same(view.js(TOTAL), rows["count"], "models")
        world.shot(view, "samples")
        view.press("ArrowDown", "Enter")
        view.press(*["ArrowRight"] * min(rows["count"], 60))
        for url in view.pictures():
            assert os.path.exists(
                urllib.parse.unquote(
                    urllib.parse.urlparse(urllib.parse.urljoin(view.url, url)).path
                )
            ), url
