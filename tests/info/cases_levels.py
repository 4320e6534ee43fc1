"""How explicit a preview is, by sidecars of LoRA Manager, Civitai Helper and rgthree."""
from cases_sidecars import API, MANAGER, RGTHREE, VERSION, beside, jpeg, png


def image(level=None, width=832, height=1216, **more):
    made = {"url": "https://image.civitai.com/x/0a1b/width=450/1.jpeg", "type": "image",
            "width": width, "height": height, "hash": "U7D0", "meta": None}
    if level is not None:
        made["nsfwLevel"] = level
    return dict(made, **more)


def answer(*images):
    return dict(VERSION, images=list(images))


def saved(*images, **files):
    """The preview is 450 pixels wide, of images that are 832 x 1216 if nothing is said."""
    return beside(x__civitai__info=answer(*images), x__preview__png=png(450, 658), **files)


def managed(level, url="D:\\loras\\x.webp", **files):
    made = dict(MANAGER, preview_nsfw_level=level, preview_url=url)
    return beside(x__metadata__json=made, **dict({"x__webp": png(20, 10)}, **files))


HOSTILE = {"negative": -4, "zero": 0, "64": 64, "huge": 2**40, "huge2": 10**30, "text": "4",
           "word": "Explicit", "true": True, "float": 4.0, "list": [4], "object": {"value": 4}}
CASES = {
    "manager": managed(8),
    "manager.slash": managed(8, "/home/me/loras/x.webp"),
    "manager.other": managed(8, "D:\\loras\\y.webp"),
    "manager.unnamed": managed(8, ""),
    "manager.unnamed-two": managed(8, "", x__jpg=jpeg(30, 40)),
    "manager.two": managed(8, x__jpg=jpeg(30, 40)),
    "manager.bits": managed(12),
    "manager.old": managed("Mature"),
    "manager.over-first": managed(16, "x.preview.png", x__preview__png=png(450, 658),
                                  x__civitai__info=answer(image(1))),
    "manager.not-known": managed(0, "x.preview.png", x__preview__png=png(450, 658),
                                 x__civitai__info=answer(image(2))),
    "manager.own-answer": beside(
        x__metadata__json=dict(MANAGER, preview_url="", civitai=answer(image(4))),
        x__preview__jpg=jpeg(832, 1216)),
    "first": saved(image(4), image(1)),
    "first.whole": beside(x__civitai__info=answer(image(4)), x__preview__jpeg=jpeg(832, 1216)),
    "first.larger": beside(x__civitai__info=answer(image(4)), x__preview__jpeg=jpeg(1664, 2432)),
    "first.own-name": beside(x__civitai__info=answer(image(4)), x__png=png(450, 658)),
    "first.no-size": saved(image(4, None, None)),
    "first.other-size": saved(image(4, 1024, 1024)),
    "first.film": beside(x__civitai__info=answer(image(4)),
                         x__preview__mp4=b"\0\0\0\x18ftypmp42" + bytes(16)),
    "first.not-told": saved(image(), image(1)),
    "video-first": saved(image(2, 720, 1280, type="video"), image(8), image(1)),
    "video-first.alike": saved(image(2, type="video"), image(8)),
    "later": saved(image(8, 1024, 1024), image(2), image(2), image(1, 512, 512)),
    "later.differ": saved(image(8, 1024, 1024), image(2), image(1)),
    "later.one-not-told": saved(image(8, 1024, 1024), image(2), image()),
    "rgthree": beside(**{"x__safetensors__rgthree-info__json": dict(RGTHREE, images=[image(16)]),
                         "x__preview__png": png(450, 658)}),
    "model": beside(x__api_info__json=dict(API, modelVersions=[answer(image(8))]),
                    x__preview__png=png(450, 658)),
    "old.none": saved(image(nsfw="None")),
    "old.soft": saved(image(nsfw="Soft")),
    "old.mature": saved(image(nsfw="Mature")),
    "old.x": saved(image(nsfw="X")),
    "old.bool": saved(image(nsfw=True)),
    "old.both": saved(image(1, nsfw="X")),
    "embedded": beside(x__metadata__json=dict(MANAGER, preview_nsfw_level=8, preview_url="")),
    "differs": saved(image(4)),
    "differs.near": saved(image(4)),
    "hostile-many": saved(*[image(2) for _ in range(5000)]),
    "hostile-sizes": saved(image(4, -450, 658), image(4, 2**32 + 450, 658), image(4, "450", True)),
}
CASES.update({"hostile-" + name: saved(image(level)) for name, level in HOSTILE.items()})
CASES.update({"hostile-manager-" + name: managed(level) for name, level in HOSTILE.items()})
OPTIONS = {"differs": ["--hash", "sha256,autov3"]}
