"""All that is known of one model: what is copied, shown, hidden and loaded."""

import os

import pages
import pictures
import tensors
from cases_catalog import same

INFO_FILE = "mikumo.civitai.info"
HIDDEN = ".gallery-large .picture[data-state=hidden]"


def fact(value, source, trust, *others):
    return {
        "value": value,
        "source": source,
        "trust": trust,
        "others": [{"value": other, "source": where, "trust": how} for other, where, how in others],
    }


def sidecar(pointer):
    return f"sidecar:{INFO_FILE}:/{pointer}"


def word(text, **more):
    return {"text": text, "prompt": text, "source": sidecar("trainedWords/0"), "trust": 90, **more}


def rich(shots):
    """A LoRA of which everything is known."""
    return {
        "path": "loras/it's mikumo.safetensors",
        "file": {"bytes": 228456104, "tensors": 722},
        "model": {
            "kind": fact("adapter", "tensors", 100),
            "name": fact("Mikumo_v2", sidecar("model/name"), 95, ("mikumo", "filename", 45)),
            "base_model": fact(
                "Illustrious", sidecar("baseModel"), 70, ("Pony", "header:modelspec.base", 70)
            ),
            "base_checkpoint": fact(
                "OnomaAIResearch/Illustrious-xl", "header:ss_sd_model_name", 70
            ),
            "license": fact("openrail++", "header:modelspec.license", 85),
            "negative_prompt": fact("blurry", sidecar("negative"), 90),
            "description": fact(
                "Based on https://civitai.com/models/11?modelVersionId=22&x=<b>, see https://example.org/a(b). "
                "Mirror: https://huggingface.co/alkaid/mikumo\n\nSecond paragraph.",
                sidecar("description"),
                90,
            ),
        },
        "adapter": {"type": "lora", "rank": {"min": 16, "max": 32, "mode": 32}},
        "trigger_words": [
            word("mikumo, red scarf"),
            word("mikumo, yukata"),
            word("<style>guangying</style>"),
            word("fym\n<artist>\u202e"),
            word("ink", source="header:ss_tag_frequency", coverage=0.97, folder="10_m"),
        ],
        "prompts": {
            "a1111": "<lora:mikumo:0.8> mikumo, red scarf",
            "comfy": "<lora:mikumo:0.8> mikumo, red scarf",
        },
        "frequent_tags": [
            {"tag": f"tag {i}", "count": 100 - i, "coverage": 1 - i / 100} for i in range(40)
        ],
        "civitai": {
            "model_id": 257749,
            "version_id": 290640,
            "permissions": {"credit": True, "commercial": ["Image"], "derivatives": False},
        },
        "training": {
            "tool": "sd-scripts",
            "duration_s": 4806,
            "epoch": 8,
            "epochs": 10,
            "datasets": [{"folder": "10_m", "images": 60, "repeats": 10}],
        },
        "hashes": {
            "recorded": [
                {"algo": "sha256", "value": "ab" * 32, "source": sidecar("h")},
                {"algo": "autov3", "value": "cd" * 6, "source": "header:sshs_model_hash"},
            ],
            "computed": {"sha256": "ab" * 32, "autov3": "ef" * 6},
            "mismatches": [
                {
                    "algo": "autov3",
                    "recorded": "cd" * 6,
                    "computed": "ef" * 6,
                    "source": "header:sshs_model_hash",
                    "known": None,
                }
            ],
        },
        "sidecars": [
            {"path": INFO_FILE, "kind": "civitai", "match": "weights"},
            {"path": "mikumo.json", "kind": "a1111", "error": "expected an object, found a list"},
        ],
        "conflicts": [
            {
                "field": "base_model",
                "candidates": [
                    {"value": "Illustrious", "source": sidecar("baseModel"), "trust": 70},
                    {"value": "Pony", "source": "header:modelspec.base", "trust": 70},
                ],
            }
        ],
        "cut": ["description"],
        "pictures": shots,
    }


def detail(world, name, info=None):
    """The page about a model of this name; pictures of levels PG, R and unknown, a video, and some that may not be loaded."""
    folder = os.path.join(world.folder, "detail")
    shots = []
    for i, level in enumerate((1, 4, 0)):
        content, width, height = pictures.picture(i)
        pages.keep(folder, f"{i} #.png", content)
        shots.append({"href": f"{i}%20%23.png", "width": width, "height": height, "level": level})
    shots += [
        {"href": "clip.mp4", "video": True, "level": 1},
        {"href": "https://example.org/x.png", "level": 1},
        {"href": "\\\\host\\x.png", "level": 1},
        {"href": "gone.png", "level": 1},
        {"href": "", "why": "too large"},
    ]
    data = dict(tensors.MODELS["lora"](), info=info or rich(shots))
    return world.keep(f"detail/{name}.html", pages.model_page(data))


def case_detail_words(world):
    """Words one by one, by set and all together; the prompt with the strength that is chosen; what is taken out is said."""
    with world.view(detail(world, "words")) as view:

        def copied(expected, what, said=""):
            same(view.wait_clipboard(expected), expected, what)
            if said:
                view.until(
                    "(said) => document.querySelector('#status').textContent.includes(said)", said
                )
            view.forget()

        titles = view.js(
            "() => [...document.querySelectorAll('.word-group > .muted')].map((one) => one.textContent)"
        )
        same(titles, ["set 1", "set 2", f"{INFO_FILE}", "captions of 10_m"], "groups")
        view.click(".chip:has-text('guangying')")
        copied("<style>guangying</style>", "a word", "copied: <style>guangying</style>")
        view.click(".chip:has-text('artist')")
        copied("fym <artist>", "a word with controls", "without its control characters")
        view.click(".word-group [aria-label='Copy set 2']")
        copied("mikumo, yukata", "a set")
        view.click("[aria-label='Copy all trigger words']")
        copied("mikumo, red scarf, yukata, <style>guangying</style>, fym <artist>", "all words")
        view.fill(".strength [type=number]", "0.55")
        same(
            view.js("() => document.querySelector('.strength [type=range]').value"),
            "0.55",
            "slider",
        )
        view.click("[aria-label='Copy prompt']")
        copied("<lora:mikumo:0.55> mikumo, red scarf", "prompt")
        view.click("[aria-label='Copy tag only']")
        copied("<lora:mikumo:0.55>", "tag only")
        view.page.locator(".strength [type=range]").focus()
        view.press("ArrowRight", "l")
        copied(
            "<lora:mikumo:0.6> mikumo, red scarf", "prompt by key, with the strength of the slider"
        )
        view.click("[aria-label='Copy negative prompt']")
        copied("blurry", "negative prompt")
        view.click("[aria-label='Copy path']")
        copied("loras/it's mikumo.safetensors", "path")
        view.click(".group:has(h4:has-text('Left out')) [aria-label='Copy the command']")
        copied("safetensors info 'loras/it'\\''s mikumo.safetensors'", "command")


def case_detail_links(world):
    """Links are made of numbers and of a repository's name; other addresses are text to copy."""
    with world.view(detail(world, "links")) as view:
        links = view.js(
            "() => [...document.querySelectorAll('.detail a')].map((one) => [one.href, one.rel])"
        )
        hosts = [
            "https://civitai.com/models/257749?modelVersionId=290640",
            "https://huggingface.co/OnomaAIResearch/Illustrious-xl",
            "https://civitai.com/models/11?modelVersionId=22",
            "https://huggingface.co/alkaid/mikumo",
        ]
        same(links, [[host, "noopener noreferrer"] for host in hosts], "links")
        view.click(".address button")
        same(view.wait_clipboard("https://example.org/a(b"), "https://example.org/a(b", "address")
        same(view.count(".prose p"), 2, "paragraphs")


def case_detail_facts(world):
    """Each fact has trust and source, and its other candidates on demand; what contradicts itself is marked, and first."""
    with world.view(detail(world, "facts")) as view:
        note = view.text("[data-note=conflicts]")
        for part in (
            "Sources disagree",
            "base model",
            "Illustrious",
            "Pony",
            "civitai.info",
            "header",
        ):
            assert part in note, part
        same(
            view.js(
                "() => [...document.querySelectorAll('.fact.conflict')].map((one) => one.dataset.fact)"
            ),
            ["base_model"],
            "marked",
        )
        same(view.text("[data-fact=name] .fact-value"), "Mikumo_v2", "a name is shown as it is")
        same(view.text("[data-fact=kind] .trust-words"), "measured · tensors", "trust and source")
        button = "[data-fact=name] button"
        same(view.count("[data-fact=name] .claims"), 0, "candidates before")
        view.page.locator(button).focus()
        view.press("Enter")
        same(
            view.js("(button) => document.querySelector(button).ariaExpanded", button),
            "true",
            "expanded",
        )
        claims = view.text("[data-fact=name] .claims")
        for part in ("Mikumo_v2", sidecar("model/name"), "trust 95", "mikumo", "guessed"):
            assert part in claims, part
        view.click(button)
        assert not view.page.locator("[data-fact=name] .claims").is_visible()
        view.click(".tab:has-text('Files')")
        assert view.js(
            "() => { const at = document.querySelector('section[aria-label=Files]').getBoundingClientRect().top; return at >= 0 && at < innerHeight; }"
        )
        hashes = view.js(
            "() => [...document.querySelectorAll('.hashes li')].map((one) => [...one.children].map((part) => part.textContent))"
        )
        same(
            [(one[0], one[2]) for one in hashes],
            [("sha256", "verified"), ("autov3", "computed"), ("autov3", "differs")],
            "hashes",
        )
        text = view.text(".detail")
        for part in (
            "credit is required",
            "commercial use: selling pictures",
            "merges may not be shared",
            "same weights, edited metadata",
            "not used: expected an object, found a list",
            "1 h 20 min",
            "8 of 10",
        ):
            assert part in text, part
        same(view.count(".tags li"), 30, "tags")
        view.click("button:has-text('Show all 40')")
        same(view.count(".tags li"), 40, "all tags")
        view.click(".tag", 39)
        same(view.wait_clipboard("tag 39"), "tag 39", "a tag")


def case_detail_pictures(world):
    """What is hidden is not loaded until it is shown, and again after a change; nothing is loaded from elsewhere."""
    with world.view(detail(world, "pictures")) as view:
        shown = {"0%20%23.png", "2%20%23.png", "gone.png"}
        view.soon(view.pictures, shown.issubset)
        view.js("() => new Promise((done) => setTimeout(done, 150))")  # nothing more
        loaded = {url for url in view.pictures() if not url.startswith("data:")}
        same(loaded, shown, "loaded")
        view.press(".")
        same(view.text(HIDDEN + " .picture-hidden"), "hidden: rated R", "words")
        view.page.locator(HIDDEN + " button").focus()
        view.press("Enter")
        same(view.count(HIDDEN), 0, "hidden after Show")
        assert view.js(
            "() => document.activeElement.matches('.gallery-large .picture')"
        ), "the focus is lost"
        same(view.count(".thumb:nth-child(2) img"), 1, "shown in the row of small ones too")
        assert "1%20%23.png" in view.pictures()
        view.click(".thumb", 0)
        view.press(",")
        assert "too large" in view.text(".gallery-large")
        for k, why in ((4, "no picture"), (5, "no picture"), (6, "the picture cannot be shown")):
            view.click(".thumb", k)
            view.until(
                "(why) => document.querySelector('.gallery-large').textContent.includes(why)", why
            )
        same(
            [
                url
                for url in view.pictures()
                if "host" in url or "example" in url or url.endswith(".mp4")
            ],
            [],
            "loaded from elsewhere",
        )
        view.click(".thumb", 0)
        view.until("() => document.querySelector('.gallery-large img')?.complete")
        cut = view.js("""() => { const image = document.querySelector('.gallery-large img');
            image.width = 90;
            image.height = 1800;
            const box = document.querySelector('.gallery-large').getBoundingClientRect();
            return image.getBoundingClientRect().bottom - box.bottom; }""")
        assert cut < 1, f"a tall picture is cut by {cut} px"
        view.js("""() => { document.querySelector('.detail-main').style.minHeight = '4000px';
            scrollTo(0, 2000); }""")
        top = view.js("() => document.querySelector('.gallery').getBoundingClientRect().top")
        assert top >= 0, f"the pictures went away with the text: {top}"


def case_detail_video(world):
    """A video plays under the pointer and with the focus, not with reduced motion."""
    for motion, plays in (("no-preference", 2), ("reduce", 0)):
        with world.view(detail(world, "video"), reduced_motion=motion) as view:
            view.js(
                "() => { window.played = 0; HTMLMediaElement.prototype.play = () => { window.played++; return Promise.resolve(); }; }"
            )
            view.page.locator(".thumb").nth(3).hover()
            view.page.locator("h2").first.hover()
            view.page.locator(".thumb").nth(3).focus()
            same(view.js("() => window.played"), plays, motion)


def case_detail_notes(world):
    """A broken model has its sentence and a command; a pickle what a loader would run."""
    broken = {
        "path": "-a.safetensors",
        "model": {},
        "error": {"code": "truncated", "message": "file is truncated", "hint": "download it again"},
    }
    with world.view(detail(world, "broken", broken)) as view:
        assert view.text("[data-note=error]").startswith(
            "file is truncateddownload it again"
        ), view.text("[data-note=error]")
        view.click("[data-note=error] button")
        same(
            view.wait_clipboard("safetensors check ./-a.safetensors"),
            "safetensors check ./-a.safetensors",
            "command",
        )
    pickle = {
        "path": "a.ckpt",
        "model": {},
        "import": {
            "format": "torch",
            "title": "PyTorch checkpoint",
            "globals": [
                {"module": "os", "name": "system", "named": 1, "calls": 1},
                {"module": "torch", "name": "FloatStorage", "named": 9, "calls": 0},
            ],
        },
    }
    with world.view(detail(world, "pickle", pickle)) as view:
        assert "A pickle loader would call os.system; not run" in view.text("[data-note=pickle]")


def case_detail_copy_fallback(world):
    """Without a clipboard, as on pages of http, a selection is copied."""
    with world.view(detail(world, "fallback")) as view:
        view.forget()
        view.js(
            "() => Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })"
        )
        view.click(".chip:has-text('guangying')")
        view.until("() => document.querySelector('#status')?.textContent.startsWith('copied: ')")
        same(
            view.js("() => document.activeElement.textContent"), "<style>guangying</style>", "focus"
        )
        view.js("() => { delete navigator.clipboard; }")
        same(
            view.wait_clipboard("<style>guangying</style>"), "<style>guangying</style>", "clipboard"
        )
