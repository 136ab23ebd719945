#!/bin/sh
# Installs the brokers that Weft is measured against, as far as Debian supplies them. None of them is
# started, now or at the next boot: the benchmark starts its own. Usage: tools/peers.sh
set -eu
# Only the system's: .venv has a nats-server too, and a user's path leaves out where servers are.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

fail() {
    echo "weft: $1" >&2
    exit 1
}

missing=""
for package in nats-server redis-server mosquitto; do
    command -v "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends$missing"
command -v apt-get >/dev/null 2>&1 || fail "please install:$missing"
[ "$(id -u)" = 0 ] || fail "this machine lacks$missing; run: sudo $install"

# Debian asks this file before it starts a service; 101 says no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
echo "== installing$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
for package in $missing; do
    systemctl disable --quiet "$package" 2>/dev/null || true
done
