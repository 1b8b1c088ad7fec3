"""A command in a real terminal: what it shows, and keys to press."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios

from tests.patience import PATIENCE

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

    def wait_for(self, pattern):
        """Until this is shown, after what was waited for before."""
        while (found := re.compile(pattern).search(self.screen, self.seen)) is None:
            assert self._read(), self.screen
        self.seen = found.end()

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
        """More of the screen; False when the command has ended."""
        assert select.select([self.fd], [], [], PATIENCE)[0], f"hangs:\n{self.screen}"
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # Linux says so when the other side is gone
            return False
        self.screen += ESCAPES.sub("", data.decode(errors="replace"))
        return bool(data)
