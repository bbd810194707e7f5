#!/usr/bin/env python3
"""Opens the built site in headless Chromium: tools/site/browser.py build/site/html [--pages N] [--picture FILE.png PAGE]

Every page (or N spread over them) must load without an error on the console and without a request to another host, and must
not be wider than a screen of 360 points. The search must find names of pages, options and the reference. Exits 1 if not.
"""

import argparse
import base64
import functools
import http.server
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

NARROW, WIDE = 360, 1280
SEARCHES = ("early_stopping", "safetensors", "vmap")  # a result must name what was searched


class Browser:
    """Chromium's DevTools protocol through a pair of pipes: messages are JSON that a zero byte ends."""

    def __init__(self, program, folder):
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def descriptors():  # the browser reads 3 and writes 4
            first, second = os.dup(to_read), os.dup(to_write)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={folder}", "--remote-debugging-pipe"], preexec_fn=descriptors, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.numbers, self.session, self.rest, self.events = itertools.count(1), None, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.rest:
            got = os.read(self.from_browser, 1 << 16)
            if not got:
                raise RuntimeError("the browser ended")
            self.rest += got
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def call(self, method, **parameters):
        number = next(self.numbers)
        request = {"id": number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.to_browser, json.dumps(request).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") == number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']['message']}")
                return got["result"]
            self.events.append(got)

    def value(self, expression):
        """Of a JavaScript expression, awaited."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{expression}: {got['exceptionDetails']['text']}")
        return got["result"].get("value")

    def until(self, expression, seconds=30):
        """Whether the expression becomes true in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(expression):
                return True
            time.sleep(0.05)
        return False

    def open(self, url):
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())
        self.events = [event for event in self.events if event.get("method") != "Page.loadEventFired"]

    def width(self, points):
        self.call("Emulation.setDeviceMetricsOverride", width=points, height=800, deviceScaleFactor=1, mobile=points < 600)

    def complaints(self, host):
        """What the console and the network said since the last call."""
        said = []
        for event in self.events:
            method, what = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                said.append(what["exceptionDetails"].get("exception", {}).get("description", what["exceptionDetails"]["text"]))
            elif method == "Runtime.consoleAPICalled" and what["type"] in {"error", "warning"}:
                said.append(" ".join(str(each.get("value", each.get("description"))) for each in what["args"]))
            elif method == "Log.entryAdded" and what["entry"]["level"] in {"error", "warning"}:
                said.append(what["entry"]["text"] + " " + what["entry"].get("url", ""))
            elif method == "Network.requestWillBeSent":
                url = what["request"]["url"]
                if not url.startswith((host, "data:", "blob:")):
                    said.append(f"asks another host: {url}")
        self.events = []
        return said

    def close(self):
        self.process.terminate()
        self.process.wait()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def check_search(browser, host, query):
    # The theme keeps its search dialog in an open shadow root below the body.
    within = "[...document.body.children].map(each => each.shadowRoot).find(each => each)"
    browser.open(f"{host}/index.html")
    if not browser.until(f"{within} !== undefined"):
        return ["search: the page has none"]
    browser.value("document.querySelector('button.md-search__button').click()")
    if not browser.until(f"{within}.querySelector('input[role=combobox]') !== null"):
        return [f"search: no field opens for {query}"]
    browser.value(f"{within}.querySelector('input[role=combobox]').focus()")
    browser.call("Input.insertText", text=query)
    found = f"[...{within}.querySelectorAll('a')].some(each => each.textContent.includes({json.dumps(query)}))"
    return [] if browser.until(found) else [f"search: {query} finds nothing that has its name"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pages", type=int, default=0, help="how many, spread evenly; 0: all")
    parser.add_argument("--picture", nargs=2, metavar=("FILE", "PAGE"), help="a picture of a page on a narrow screen, no checks")
    parser.add_argument("--browser", default="chromium")
    arguments = parser.parse_args()
    pages = sorted(path.relative_to(arguments.folder).as_posix() for path in arguments.folder.rglob("*.html")
                   if path.name != "404.html")
    if arguments.pages:
        pages = pages[::max(1, len(pages) // arguments.pages)]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=arguments.folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host, errors, start = f"http://127.0.0.1:{server.server_port}", [], time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(arguments.browser, folder)
        try:
            browser.width(NARROW)
            if arguments.picture:
                browser.open(f"{host}/{arguments.picture[1]}")
                picture = browser.call("Page.captureScreenshot")["data"]
                pathlib.Path(arguments.picture[0]).write_bytes(base64.b64decode(picture))
                return
            for page in pages:
                browser.open(f"{host}/{page}")
                wide = browser.value("document.documentElement.scrollWidth")
                if wide > NARROW:
                    errors.append(f"{page}: {wide} points wide on a screen of {NARROW}")
                errors += [f"{page}: {said}" for said in browser.complaints(host)]
            browser.width(WIDE)
            for query in SEARCHES:
                errors += check_search(browser, host, query)
                errors += [f"search: {said}" for said in browser.complaints(host)]
        finally:
            browser.close()
    print("\n".join([*errors, f"browser: {len(pages)} pages, {len(SEARCHES)} searches, {time.monotonic() - start:.1f} s, "
                              f"{len(errors)} errors"]))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
