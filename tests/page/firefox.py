"""Pages in Firefox by WebDriver BiDi, with what the cases use of browser.View."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

import websocket

import browser
import pages

FIREFOX = os.path.join(pages.ROOT, "build", "browser", "bin", "firefox")
PREFS = {
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "app.update.disabledForTesting": True,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.server": "https://localhost/none",
    "browser.safebrowsing.update.enabled": False,
    "extensions.update.enabled": False,
    "browser.topsites.contile.enabled": False,
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "ui.prefersReducedMotion": 1,
}
KEYS = {
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "Home": "\ue011",
    "End": "\ue010",
    "PageUp": "\ue00e",
    "PageDown": "\ue00f",
    "Tab": "\ue004",
    "Space": " ",
    "Backspace": "\ue003",
    "Control": "\ue009",
    "Shift": "\ue008",
    "Delete": "\ue017",
}


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp()
        with open(os.path.join(self.profile, "user.js"), "w", encoding="utf-8") as out:
            out.writelines(
                f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
                for name, value in PREFS.items()
            )
        self.log = open(os.path.join(self.profile, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [
                FIREFOX,
                "--headless",
                "--no-remote",
                "--profile",
                self.profile,
                "--remote-debugging-port=0",
                "about:blank",
            ],
            stdout=self.log,
            stderr=self.log,
            env=dict(os.environ, HOME=self.profile, MOZ_HEADLESS="1"),
        )
        self.socket, self.number, self.events = None, 0, []
        self.socket = websocket.create_connection(
            self.address() + "/session", suppress_origin=True, timeout=pages.ACTION_S
        )
        self.send("session.new", capabilities={})
        self.send(
            "session.subscribe",
            events=[
                "log.entryAdded",
                "network.beforeRequestSent",
                "browsingContext.userPromptOpened",
                "browsingContext.contextCreated",
            ],
        )

    def address(self):
        end = time.monotonic() + pages.ACTION_S
        while time.monotonic() < end:
            with open(self.log.name, encoding="utf-8", errors="replace") as text:
                said = text.read()
            found = re.search(r"BiDi listening on (ws://\S+)", said)
            if found:
                return found.group(1)
            assert self.process.poll() is None, said
            time.sleep(0.1)
        raise AssertionError("Firefox does not listen: " + said)

    def send(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            got = json.loads(self.socket.recv())
            if got.get("id") == self.number:
                assert got["type"] == "success", f"{method}: {got}"
                return got["result"]
            self.events.append(got)

    def view(self, path, fragment="", **options):
        return View(self, path, fragment, **options)

    def close(self):
        try:
            self.send("browser.close")
        except (AssertionError, OSError, websocket.WebSocketException):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)


class View(browser.View):
    """Shares what View does through js, press and click. Options that only playwright has are not taken."""

    def __init__(
        self, firefox, path, fragment="", width=1280, height=860, wait=True
    ):  # pylint: disable=super-init-not-called
        self.firefox = firefox
        self.user = firefox.send("browser.createUserContext")["userContext"]
        self.tab = firefox.send("browsingContext.create", type="tab", userContext=self.user)[
            "context"
        ]
        firefox.send(
            "browsingContext.setViewport",
            context=self.tab,
            viewport={"width": width, "height": height},
        )
        firefox.send(
            "script.addPreloadScript",
            functionDeclaration="() => {" + browser.WATCH + "}",
            contexts=[self.tab],
        )
        firefox.events.clear()
        self.path = os.path.abspath(path)
        self.folder = os.path.dirname(self.path)
        self.url = "file://" + urllib.parse.quote(self.path)
        self.failures = []
        firefox.send(
            "browsingContext.navigate", context=self.tab, url=self.url + fragment, wait="complete"
        )
        if wait:
            self.settle()

    def settle(self):
        self.js(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def js(self, code, value=None):
        words = f"async () => {{ const made = await ({code})(...{json.dumps([] if value is None else [value])}); return JSON.stringify(made ?? null); }}"
        got = self.firefox.send(
            "script.callFunction",
            functionDeclaration=words,
            target={"context": self.tab},
            awaitPromise=True,
            arguments=[],
        )
        assert got["type"] == "success", got["exceptionDetails"]["text"]
        return json.loads(got["result"]["value"])

    def count(self, selector):
        return self.js("(selector) => document.querySelectorAll(selector).length", selector)

    def text(self, selector):
        return self.js("(selector) => document.querySelector(selector).textContent", selector)

    def act(self, kind, actions, **more):
        self.firefox.send("input.performActions", context=self.tab,
                          actions=[{"type": kind, "id": kind, "actions": actions, **more}])

    def press(self, *keys, settle=True):
        for key in keys:
            names = [KEYS.get(part, part) for part in (key.split("+") if len(key) > 1 else [key])]
            self.act("key", [{"type": "keyDown", "value": name} for name in names] + [
                {"type": "keyUp", "value": name} for name in reversed(names)])
        if settle:
            self.settle()

    def type(self, text):
        self.press(*text)

    def fill(self, selector, text):
        self.js(
            "([selector, text]) => { const one = document.querySelector(selector); one.focus(); one.value = text;"
            " one.dispatchEvent(new Event('input', { bubbles: true })); }",
            [selector, text],
        )
        self.settle()

    def until(self, code, value=None):
        assert pages.soon(lambda: self.js(code, value), bool), f"not within its time: {code}"

    def point(self, selector, nth=0):
        """The mouse to its middle."""
        at = self.js(
            """([selector, nth]) => {
            const one = document.querySelectorAll(selector)[nth];
            one.scrollIntoView({ block: 'nearest' });
            const box = one.getBoundingClientRect();
            return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];
        }""",
            [selector, nth],
        )
        self.act("pointer", [{"type": "pointerMove", "x": at[0], "y": at[1]}])

    def click(self, selector, nth=0, holding=None):
        """holding: a key, or None."""
        key = {"value": KEYS.get(holding, holding)}
        self.point(selector, nth)
        if holding:
            self.act("key", [{"type": "keyDown", **key}])
        self.act("pointer", [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}])
        if holding:
            self.act("key", [{"type": "keyUp", **key}])
        self.settle()

    def hover(self, selector):
        self.point(selector)
        self.settle()

    def clipboard(self):
        """Pasted: reading asks the user. What was copied has no line ends, which pasting would change."""
        self.js(browser.PASTE)
        self.press("Control+v")
        return self.js(browser.PASTED)

    def forget(self):
        """Nothing: writing to the clipboard takes a click."""

    def wait_clipboard(self, expected):
        return pages.soon(self.clipboard, lambda found: found == expected)

    @property
    def requests(self):
        return [
            event["params"]["request"]["url"]
            for event in self.firefox.events
            if event.get("method") == "network.beforeRequestSent"
            and event["params"].get("context") == self.tab
        ]

    def check(self):
        self.js("() => 0")
        for event in self.firefox.events:
            method, params = event.get("method"), event.get("params", {})
            if (
                method == "log.entryAdded"
                and params.get("level") == "error"
                and params.get("source", {}).get("context") == self.tab
            ):
                self.failures.append(params.get("text"))
            elif method == "browsingContext.userPromptOpened":
                self.failures.append("dialog")
        super().check()

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.check()
        finally:
            self.firefox.send("browsingContext.close", context=self.tab)
            self.firefox.send("browser.removeUserContext", userContext=self.user)
