"""A command in a real terminal: what it shows, and keys to press."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """`with Terminal(folder, "judge", "fruit") as terminal`: the command `shortlist judge fruit` at work there."""

    def __init__(self, folder, *arguments):
        self.screen, self.seen = "", 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [sys.executable, "-m", "shortlist", *map(str, arguments)])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def wait_for(self, text, seconds=60):
        """Until the text is shown, after what was waited for before."""
        until = time.monotonic() + seconds
        while text not in self.screen[self.seen :]:
            assert time.monotonic() < until, self.screen
            assert self._read(), self.screen
        self.seen = self.screen.index(text, self.seen) + len(text)

    def press(self, keys):
        os.write(self.fd, keys)

    def finish(self):
        """All that is shown until the command ends, and its exit code."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return self.screen, os.waitstatus_to_exitcode(status)

    def _read(self):
        if select.select([self.fd], [], [], 60)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # Linux says so when the other side is gone
                return False
            self.screen += ESCAPES.sub("", data.decode(errors="replace"))
            return bool(data)
        return False
