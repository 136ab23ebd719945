#!/bin/sh
# Installs the browser and the Node that the tests of weft.js run in, as far as Debian supplies them;
# about 300 MB. Usage: tools/chromium.sh
set -eu

fail() {
    echo "weft: $1" >&2
    exit 1
}

missing=""
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
command -v apt-get >/dev/null 2>&1 || fail "please install:$missing"
[ "$(id -u)" = 0 ] || fail "this machine lacks$missing; run: sudo $install"
echo "== installing$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
