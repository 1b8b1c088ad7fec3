"""A real browser, and what a judge's hands do in it."""

import shutil
import time

import pytest

from tests.patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
SETTLED = 320  # ms of the page's clock after which it takes a click for the new pair


def launch(playwright):
    found = next((place for place in map(shutil.which, NAMES) if place), None)
    if found is None:
        pytest.fail("no chromium here: run tests/web/chromium.sh, or apt-get install chromium", pytrace=False)
    return playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])


def until(page, true, arg=None):
    """Waits until an expression is true. Playwright's own way would need eval, which our pages forbid."""
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(true, arg):
        assert time.monotonic() < deadline, f"never came true: {true}"
        page.wait_for_timeout(10)


def settle(page):
    """Moves the page's clock on, so that the next click is meant for the pair on the screen."""
    page.clock.fast_forward(SETTLED)


def stop_clock(page):
    """The same, and the page's clock stands still from then on."""
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)


class Hands:
    """One judge at one page. `how` is keyboard, mouse or phone."""

    def __init__(self, page, link, how="keyboard"):
        self.page, self.how = page, how
        self.said = []  # question, outcome from the first item's side
        page.goto(link)

    def ready(self):
        """Waits for a pair, or the end; returns the question's id or None."""
        self.page.wait_for_selector("#pair:not([hidden]), body:has(#end:not([hidden])):has(progress[value='1'])")
        return self.question

    @property
    def question(self):
        pair = self.page.locator("#pair")
        return pair.get_attribute("data-question") if pair.is_visible() else None

    def titles(self):
        return [self.page.inner_text(f"#{side} .title") for side in ("first", "second")]

    def answer(self, outcome, question=None):
        """Answers the pair on the screen; waits for one unless `question` names it."""
        question = question or self.ready()
        settle(self.page)
        if self.how == "keyboard":
            self.page.keyboard.press({1: "ArrowLeft", 0: "2", 0.5: "t"}[outcome])
        elif self.how == "mouse":
            self.page.click("#first" if outcome else "#second")
        else:
            self.page.tap(f".choose[data-outcome='{outcome}']")
        self.said.append((question, outcome))
        self.moved(question)
        return question

    def moved(self, question):
        """Waits until another pair, or the end, is on the screen."""
        until(self.page, "old => { const pair = document.querySelector('#pair'); return pair.hidden || "
              "pair.dataset.question !== old }", question)  # fmt: skip

    def judge_all(self):
        """Prefers what comes first in the alphabet until the study ends."""
        while self.ready():
            self.prefer()

    def prefer(self):
        """What comes first in the alphabet, unless the study has just ended."""
        self.sent()
        question = self.question
        if question is not None:
            first, second = self.titles()
            self.answer(1 if first < second else 0, question)

    def sent(self):
        """Waits until every answer has reached the service."""
        until(self.page, "() => Object.keys(localStorage).every((name) => !name.includes(' outbox '))")
