#!/bin/sh
# Installs the browser that weft.js is tested in, about 300 MB. Usage: tools/chromium.sh
set -eu

fail() {
    echo "weft: $1" >&2
    exit 1
}

command -v chromium >/dev/null 2>&1 && exit 0

install="apt-get install -y --no-install-recommends chromium"
command -v apt-get >/dev/null 2>&1 || fail "please install chromium"
[ "$(id -u)" = 0 ] || fail "this machine lacks chromium; run: sudo $install"
echo "== installing chromium"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
