"""The page about one model: totals, tree, treemap, search, statistics."""

import base64
import json
import struct

import pages
import pictures
from cases_catalog import both, check_actions, same

ROWS = "() => [...document.querySelectorAll('.tree [role=row][data-i]')].sort((a, b) => a.dataset.i - b.dataset.i).map((one) => one.querySelector('.c-name bdi').textContent)"
NAME_COPIED = (
    "model.diffusion_model.output_blocks.{7–8}.1.transformer_blocks.{0–9}.attn2.to_k.weight"
)
ACTIVE = "() => document.querySelector('.tree [aria-selected=true] .c-name bdi')?.textContent"


@both
def case_model_tree(world):
    """Equal layers are one row; arrows open, close and move; Space unfolds; Enter zooms."""
    path, data = world.model("llm")
    with world.view(path) as view:
        text = view.js("() => document.body.textContent")
        for part in ("291", "8.03 B", "16.1 GB", "BF16", "Llama-3.1-8B-Instruct"):
            assert part in text, part
        names = view.js(ROWS)
        assert (
            names[:3] == ["lm_head.weight", "model", "embed_tokens.weight"] or "model" in names
        ), names
        assert any("0–31" in name for name in names), names
        view.js("() => document.querySelector('.tree').focus()")
        view.press("Home", "ArrowDown")
        same(view.js(ACTIVE), "model", "second row")
        before = len(view.js(ROWS))
        view.press("ArrowLeft")
        assert len(view.js(ROWS)) < before, "nothing was closed"
        same(
            view.js(
                "() => document.querySelector('.tree [aria-selected=true]').getAttribute('aria-expanded')"
            ),
            "false",
            "aria-expanded",
        )
        view.press("ArrowRight", "ArrowDown", "ArrowDown")
        assert "0–31" in view.js(ACTIVE), view.js(ACTIVE)
        view.press("Space")
        names = view.js(ROWS)
        at = names.index(view.js(ACTIVE)) + 1
        same(names[at : at + 4], ["0", "1", "2", "3"], "layers, unfolded")
        total = int(view.js("() => document.querySelector('.tree').getAttribute('aria-rowcount')"))
        assert total >= 32, total
        view.press("Enter")
        assert "layers" in view.text(".crumbs"), view.text(".crumbs")
        view.press("Escape")


@both
def case_model_search(world):
    """Names, dtype:, shape: and is:nan find what they should."""
    path, data = world.model("llm")
    names, before = [], ""
    for shared, rest in zip(data["shared"], data["rest"]):
        before = before[:shared] + rest
        names.append(before)
    shapes = [data["shapes"][k] for k in data["shape"]]
    with world.view(path) as view:
        view.press("/")
        same(view.js("() => document.activeElement.id"), "find", "focus after /")
        for query, expected in (
            ("q_proj", sum("q_proj" in name for name in names)),
            ("mlp -up", sum("mlp" in name and "up" not in name for name in names)),
            ("dtype:f32", 1),
            ("shape:4096x14336", shapes.count("4096,14336")),
            ("is:nan", 2),
            ("nothing there", 0),
        ):
            view.fill("#find", query)
            assert f"{expected} of 291" in view.text(
                ".found"
            ), f"{query}: expected {expected}, found {view.text('.found')}"
        view.press("Escape")
        same(view.js("() => document.querySelector('#find').value"), "", "search after Esc")


def case_model_treemap(world):
    """The treemap and the tree select the same tensor."""
    path, _ = world.model("llm")
    with world.view(path, height=1000) as view:
        box = view.page.locator(".treemap").bounding_box()
        for x, y in ((0.5, 0.97), (0.97, 0.5), (0.2, 0.3)):
            view.page.mouse.click(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
            view.settle()
            name = view.js(ACTIVE)
            assert name and name.split(".")[0].split("0–31")[0] in view.text("#chosen"), (
                name,
                view.text("#chosen"),
            )
        view.fill("#find", "lm_head")
        view.page.mouse.click(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.3)
        view.settle()
        same(view.js("() => document.querySelector('#find').value"), "", "search, which has not found what is chosen")
        assert view.js(ACTIVE) in view.text("#chosen") and "lm_head" not in view.text("#chosen"), view.text("#chosen")
        painted = view.js(
            """() => { const canvas = document.querySelector('.treemap canvas'), data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            const colours = new Set(); for (let i = 0; i < data.length; i += 4 * 97) colours.add(data.slice(i, i + 3).join()); return colours.size; }"""
        )
        assert painted >= 2, painted
        pointed = "() => [...document.querySelectorAll('.tree .pointed .c-name bdi')].map((one) => one.textContent)"
        frames = "() => document.querySelectorAll('.treemap canvas')[1].toDataURL()"
        view.page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.3)
        view.settle()
        assert len(view.js(pointed)) == 1, view.js(pointed)
        view.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] - 100)
        view.settle()
        same(view.js(pointed), [], "rows marked while the pointer is elsewhere")
        before = view.js(frames)
        view.page.hover(".tree [data-i='1']")
        view.settle()
        assert view.js(frames) != before, "the map does not mark the row under the pointer"
        assert view.text(".caption").startswith(view.js("() => document.querySelector(\".tree [data-i='1'] .c-name bdi\").textContent")[:4])


@both
def case_model_order(world):
    """Largest first, by the list and by its key; the row chosen stays so."""
    path, _ = world.model("llm")
    with world.view(path) as view:
        by_name, chosen = view.js(ROWS), view.js(ACTIVE)
        view.js("() => { const list = document.querySelector('.tree-tools select'); list.value = 'size'; list.dispatchEvent(new Event('change', { bubbles: true })); }")
        view.settle()
        by_size = view.js(ROWS)
        same(sorted(by_size), sorted(by_name), "rows")
        assert by_size != by_name and by_size[0] == "model", by_size
        same(view.js(ACTIVE), chosen, "row chosen")
        view.js("() => document.querySelector('.tree').focus()")
        view.press("s")
        same(view.js(ROWS), by_name, "rows by name again")
        same(view.js("() => document.querySelector('.tree-tools select').value"), "name", "list")


@both
def case_model_statistics(world):
    """Statistics and histogram of the row; what is not a number is said."""
    path, _ = world.model("llm")
    with world.view(path) as view:
        view.fill("#find", "is:nan")
        view.js("() => document.querySelector('.tree').focus()")
        view.press("Home", "End")
        text = view.text("#chosen").lower()
        for part in ("mean", "min", "nan"):
            assert part in text, text
    with world.view(world.model("lora")[0]) as view:
        text = view.js("() => document.body.textContent")
        assert "lora_unet_down_blocks_0" in text or "down_blocks" in text
        assert "<style>guangying</style>" in text


@both
def case_model_many(world):
    """92,000 tensors: few rows in the document; the end and a search are reached."""
    path, data = world.model("moe")
    with world.view(path) as view:
        same(data["count"] > 92000, True, "count")
        assert f"{data['count']:,}" in view.js("() => document.body.textContent")
        assert view.count(".tree [role=row]") <= 80, view.count(".tree [role=row]")
        view.fill("#find", "layers.59.mlp.experts.510.up_proj")
        assert "1 of 92" in view.text(".found").replace(",", ""), view.text(".found")
        view.fill("#find", "")
        view.js(
            "() => { for (const one of document.querySelectorAll('button')) if (one.textContent === 'Open all') one.click(); }"
        )
        view.settle()
        view.js("() => document.querySelector('.tree').focus()")
        view.press("End")
        assert view.count(".tree [role=row]") <= 80, view.count(".tree [role=row]")
        assert view.js(ACTIVE)


def case_model_copy(world):
    """Ctrl+C copies the whole name of the row."""
    path, _ = world.model("sdxl")
    with world.view(path) as view:
        view.fill("#find", "attn2.to_k.weight")
        view.js("() => document.querySelector('.tree').focus()")
        view.press("End")
        view.forget()
        view.press("Control+c")
        same(view.wait_clipboard(NAME_COPIED), NAME_COPIED, "clipboard")


def case_model_copy_button(world):
    """The button copies the same."""
    with world.view(world.model("llm")[0]) as view:
        view.fill("#find", "lm_head")
        view.js("() => document.querySelector('.tree').focus()")
        view.press("End", "Home")
        view.forget()
        view.click("#chosen button[aria-label^=Copy]")
        same(view.wait_clipboard("lm_head.weight"), "lm_head.weight", "name")


def small_lora(path):
    """Two modules of ones, rank 2, without alpha: each product is 2 in 12 places. One value is NaN."""
    header, data = {}, b""
    for block in range(2):
        for end, shape in (("lora_down", [2, 3]), ("lora_up", [4, 2])):
            values = [1.0] * (shape[0] * shape[1])
            header[f"lora_unet_down_blocks_{block}_attentions_0_proj_in.{end}.weight"] = {
                "dtype": "F32",
                "shape": shape,
                "data_offsets": [len(data), len(data) + 4 * len(values)],
            }
            data += struct.pack(f"<{len(values)}f", *values)
    header["odd"] = {"dtype": "F32", "shape": [2], "data_offsets": [len(data), len(data) + 8]}
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(
            struct.pack("<Q", len(text)) + text + data + struct.pack("<2f", float("nan"), 0.5)
        )


def case_model_command(world):
    """A page that the command wrote: tensors, statistics, norms, each shown."""
    path = world.keep("real-model/lora.safetensors", "")
    small_lora(path)
    status, _, said = world.command("catalog", "--model", path, "--deep", "-o", path + ".html")
    same(status, 0, said)
    with world.view(path + ".html") as view:
        same(
            view.js(ROWS),
            [
                "lora_unet_down_blocks_0–1_attentions_0_proj_in",
                "lora_down.weight",
                "lora_up.weight",
                "odd",
            ],
            "rows",
        )
        norms = view.js(
            "() => [...document.querySelectorAll('.norm')].map((one) => one.textContent)"
        )
        same(norms, ["lora_unet_down_blocks_0r26.93", "lora_unet_down_blocks_1r26.93"], "ranks and norms")
        same(view.count(".spectrum i"), 4, "singular values")
        view.click(".note.bad button")
        same(view.js(ROWS), ["odd"], "with NaN")
        view.click(".tree-body [data-i='0']")
        text = view.text("#chosen")
        for part in ("Minimum0.5", "Maximum0.5", "NaN, infinite1, 0"):
            assert part in text, text
        view.press("Escape")
        view.click(".norm", 1)
        same(
            view.js("() => document.querySelector('#find').value"),
            "lora_unet_down_blocks_1_",
            "search of a block",
        )
        assert "2 of 5" in view.text(".found"), view.text(".found")


def case_model_picture(world):
    """A picture that is in the page is shown."""
    path, data = world.model("lora")
    data["info"]["pictures"] = [{"href": 0, "width": 256, "height": 374, "level": 1}]
    url = "data:image/png;base64," + base64.b64encode(pictures.picture(0)[0]).decode()
    whole = pages.model_page(data).replace("<body>\n", "<body>\n" + pages.block("embed-0", url))
    with world.view(world.keep("model/picture.html", whole)) as view:
        view.until(
            "(url) => [...document.images].some((one) => one.src === url && one.naturalWidth === 256)",
            url,
        )


def case_model_actions_tested(world):
    """Every action that the help lists is one that a case of this file does, or of the detail."""
    path, _ = world.model("llm")
    done = {
        "find",
        "unfind",
        "move",
        "open",
        "close",
        "unfold",
        "zoom",
        "order",
        "copy",
        "theme",
        "help",
    }
    with world.view(path) as view:
        check_actions(view, done)
