#!/usr/bin/env python3
"""Take docs/pictures/catalogue*.png: pages that the command writes about made-up models
(tools/collection.py), in headless Chromium.

usage: tools/browser_env.sh && build/browser/bin/python tools/shots.py
"""
import os
import subprocess
import sys
import tempfile
import urllib.parse

from playwright.sync_api import sync_playwright

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND = os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "safetensors")
CHROMIUM = os.path.realpath(os.path.join(ROOT, "build", "browser", "bin", "chromium"))
PICTURES = os.path.join(ROOT, "docs", "pictures")


def write_page(folder, name, *words):
    subprocess.run([COMMAND, "catalog", "-o", name, *words], cwd=folder, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "file://" + os.path.join(folder, name)


def shoot(page, name):
    page.wait_for_timeout(800)  # pictures fade in
    page.screenshot(path=os.path.join(PICTURES, name))


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "collection.py"),
                        os.path.join(folder, "models")], check=True)
        own = ["models/loras/flux/alpine_morning.safetensors",
               "models/loras/sdxl/cold_orbit.safetensors"]
        subprocess.run([COMMAND, "note", *own, "favourite", "rating=5"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
        page.goto(write_page(folder, "catalogue.html", "models"))
        shoot(page, "catalogue.png")
        for key in ["ArrowRight"] * 2 + ["Enter"]:
            page.keyboard.press(key)
        shoot(page, "catalogue-details.png")
        # From a server the commands have paths from the page on, not those of this machine.
        page.emulate_media(color_scheme="light")
        page.route("http://models.test/**", lambda route: route.fulfill(path=os.path.join(
            folder, urllib.parse.unquote(urllib.parse.urlsplit(route.request.url).path[1:]))))
        page.goto("http://models.test/catalogue.html")
        for key in ["ArrowRight", "x", "Shift+ArrowRight", "Shift+ArrowRight", "a"]:
            page.keyboard.press(key)
        page.click("[data-verb=note]")
        page.select_option(".command-fields select", "4")
        shoot(page, "catalogue-commands.png")
        page.goto(write_page(folder, "model.html", "--model",
                             "models/llm/nimbus-1b-fp8.safetensors"))
        shoot(page, "catalogue-model.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
