#!/bin/sh
# The browser that tests/web drives. Installs Debian's chromium if there is none.
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
echo "no chromium found; installing it for the browser tests"
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 && exit 0
  apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 && exit 0
fi
echo "chromium cannot be installed here; install it (for example: sudo apt-get install chromium) and try again" >&2
exit 1
