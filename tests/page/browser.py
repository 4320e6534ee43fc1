"""Pages in Chromium, watched: violations of the policy, errors, requests."""

import os
import urllib.parse

from playwright.sync_api import sync_playwright

import pages

CHROMIUM = os.path.join(pages.ROOT, "build", "browser", "bin", "chromium")
AXE = os.path.join(pages.ROOT, "build", "browser", "node_modules", "axe-core", "axe.min.js")
WATCH = """
window.seen = { violations: [], errors: [], rebuilt: 0 };
addEventListener('securitypolicyviolation', (event) => seen.violations.push(
    `${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`));
addEventListener('error', (event) => { if (event.error) seen.errors.push(String(event.error.stack)); });
addEventListener('unhandledrejection', (event) => seen.errors.push(String(event.reason?.stack ?? event.reason)));
"""
PASTE = """() => { const area = document.createElement('textarea'); area.id = 'paste-here';
(document.querySelector('dialog[open]') ?? document.body).append(area); area.focus(); }"""
PASTED = """() => { const area = document.querySelector('#paste-here'), text = area.value; area.remove(); return text; }"""


class Browser:
    """One Chromium for all cases; each view is a profile of its own."""

    def __init__(self):
        self.playwright = sync_playwright().start()
        self.chromium = self.playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--font-render-hinting=none"],
        )

    def view(self, path, fragment="", **options):
        return View(self, path, fragment, **options)

    def close(self):
        self.chromium.close()
        self.playwright.stop()


class View:
    """A page that is open. As a context manager: at the end nothing forbidden may have happened."""

    def __init__(self, browser, path, fragment="", width=1280, height=860, wait=True, **options):
        options.setdefault("reduced_motion", "reduce")
        self.context = browser.chromium.new_context(
            viewport={"width": width, "height": height}, offline=True, **options
        )
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.context.set_default_timeout(pages.ACTION_S * 1000)
        self.path = os.path.abspath(path)
        self.folder = os.path.dirname(self.path)
        self.page = self.context.new_page()
        self.requests, self.failures = [], []
        self.page.on("request", lambda one: self.requests.append(one.url))
        self.page.on("pageerror", lambda error: self.failures.append(f"page error: {error}"))
        self.page.on(
            "console",
            lambda said: (
                self.failures.append(f"console: {said.text}")
                if said.type in ("error", "warning") and "net::ERR_FILE_NOT_FOUND" not in said.text
                else None
            ),
        )
        self.page.on("popup", lambda page: self.failures.append(f"window: {page.url}"))
        self.page.on(
            "dialog",
            lambda dialog: (self.failures.append(f"dialog: {dialog.message}"), dialog.dismiss()),
        )
        self.page.add_init_script(WATCH)
        self.url = "file://" + urllib.parse.quote(self.path)
        self.page.goto(self.url + fragment)
        if wait:
            self.settle()

    def settle(self):
        """Two frames later, what was asked for is in the document."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def js(self, code, value=None):
        return self.page.evaluate(code, value)

    def count(self, selector):
        return self.page.locator(selector).count()

    def text(self, selector):
        return self.page.locator(selector).first.text_content()

    def press(self, *keys, settle=True):
        for key in keys:
            self.page.keyboard.press(key)
        if settle:
            self.settle()

    def click(self, selector, nth=0, holding=None):
        """holding: a key, or None."""
        self.page.locator(selector).nth(nth).click(modifiers=[holding] if holding else None)
        self.settle()

    def hover(self, selector):
        self.page.locator(selector).hover()
        self.settle()

    def clipboard(self):
        """What is in the clipboard, byte by byte: read, not pasted, since pasting changes line ends."""
        return self.js("() => navigator.clipboard.readText()")

    def forget(self):
        self.js("() => navigator.clipboard.writeText('nothing was copied')")

    def wait_clipboard(self, expected):
        """The clipboard once it has what is expected, or what it has at the end of pages.ACTION_S."""
        return self.soon(self.clipboard, lambda found: found == expected)

    def soon(self, look, fits):
        """What look gives once that fits, or at the end of pages.ACTION_S."""
        return pages.soon(look, fits, lambda s: self.page.wait_for_timeout(s * 1000))

    def fragment(self):
        return urllib.parse.unquote_plus(self.js("() => location.hash.slice(1)"))

    def type(self, text):
        self.page.keyboard.type(text)
        self.settle()

    def fill(self, selector, text):
        self.page.fill(selector, text)
        self.settle()

    def until(self, code, value=None):
        """Waits until code gives something true."""
        self.page.wait_for_function(code, arg=value)

    def popup(self, action):
        """The address of the window that action opens."""
        with (
            self.context.expect_event("request", lambda one: one.url.startswith("http")) as request,
            self.page.expect_popup() as opened,
        ):
            action()
        opened.value.close()
        self.failures = [one for one in self.failures if not one.startswith("window: ")]
        return request.value.url

    def pictures(self):
        """Requests but the page itself, relative to its folder; what lies elsewhere stays as it is."""
        start = "file://" + urllib.parse.quote(self.folder) + "/"
        return [
            url[len(start) :] if url.startswith(start) else url
            for url in self.requests
            if url.split("#")[0] != self.url
        ]

    def axe(self):
        """Findings of axe-core, a line each."""
        if not self.js("() => 'axe' in window"):
            with open(AXE, encoding="utf-8") as source:
                self.page.evaluate(source.read())
        found = self.js(
            """async () => (await axe.run(document, { resultTypes: ['violations'], runOnly:
            ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })).violations
            .flatMap((rule) => rule.nodes.slice(0, 4).map((node) =>
                `${rule.id} (${rule.impact}): ${node.target.join(' ')} ${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 300)}`))"""
        )
        return found

    def check(self):
        """Everything that must never happen, did not."""
        seen = self.js("() => window.seen")
        evil = self.js(
            "() => [typeof window.evil, document.querySelectorAll('[onerror], [onload], [onclick], "
            "[style*=evil], iframe, object, embed, base, form[action]').length]"
        )
        assert not seen["violations"], f"policy: {seen['violations'][:5]}"
        assert not seen["errors"], f"errors: {seen['errors'][:5]}"
        assert not self.failures, f"{self.failures[:5]}"
        assert evil == ["undefined", 0], f"text was run: {evil}"
        outside = [
            url
            for url in self.pictures()
            if ":" in url and not url.startswith(("data:", "file:///"))
        ]
        assert not outside, f"requests: {outside[:5]}"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            try:
                self.check()
            finally:
                self.context.close()
        else:
            try:
                error.add_note(f"in the page: {self.js('() => window.seen')} {self.failures[:5]}")
            finally:
                self.context.close()
