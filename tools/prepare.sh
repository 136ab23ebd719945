#!/bin/sh
# Checks that this machine can build Weft, installs what Debian can supply, and makes the virtual
# environment. Usage: tools/prepare.sh PYTHON VENV
set -eu
python=$1
venv=$2

fail() {
    echo "weft: $1" >&2
    exit 1
}

missing=""
command -v "$python" >/dev/null 2>&1 || missing="$missing python3 python3-venv python3-dev"
echo '#include <stdlib.h>
int main(void) { return 0; }' | gcc -x c - -o /dev/null 2>/dev/null || missing="$missing gcc libc6-dev"
if command -v "$python" >/dev/null 2>&1; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "Python 3.11 or newer is needed, $python is $("$python" --version 2>&1); set PYTHON=…"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
        missing="$missing python3-dev"
fi

if [ -n "$missing" ]; then
    install="apt-get install -y --no-install-recommends$missing"
    command -v apt-get >/dev/null 2>&1 || fail "please install:$missing"
    [ "$(id -u)" = 0 ] || fail "this machine lacks$missing; run: sudo $install"
    echo "== installing$missing"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
fi

# An environment that was interrupted half-way, moved, or made by another Python is made again; its
# stamps go with it, so everything is installed again. An intact one is not touched.
place="$(cd "$(dirname "$venv")" && pwd)/$(basename "$venv")"
now="$place $("$python" -c 'import sys; print(sys.version.replace("\n", " "))')"
works() {
    "$venv/bin/python" -c 'import pip' 2>/dev/null && "$venv/bin/pip" --version >/dev/null 2>&1
}
if [ "$(cat "$venv/.python" 2>/dev/null)" = "$now" ] && works; then
    exit 0
fi
[ ! -e "$venv/.python" ] || echo "== making $venv again: it was moved, or its Python changed"
"$python" -m venv --clear "$venv"
echo "$now" >"$venv/.python"
