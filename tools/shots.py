#!/usr/bin/env python3
"""Take docs/pictures/catalogue*.png: pages that the command writes about made-up models
(tools/collection.py), in headless Chromium.

usage: tools/browser_env.sh && build/browser/bin/python tools/shots.py
"""
import os
import subprocess
import sys
import tempfile

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
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
        page.goto(write_page(folder, "catalogue.html", "models"))
        shoot(page, "catalogue.png")
        for key in ["ArrowRight"] * 2 + ["Enter"]:
            page.keyboard.press(key)
        shoot(page, "catalogue-details.png")
        page.goto(write_page(folder, "model.html", "--model",
                             "models/llm/nimbus-1b-fp8.safetensors"))
        shoot(page, "catalogue-model.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
