"""The middleman protocol on a WebSocket: `python examples/middleman_client.py` beside `weft serve`.

A service answers a client's request. Neither uses Weft's library: any WebSocket library works.
"""

import re
import sys

from websockets.sync.client import ClientConnection, connect

GATEWAY = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7411"
KEY = sys.argv[2] if len(sys.argv) > 2 else "MyServerKey"
WAIT_S = 10


def enter(socket: ClientConnection) -> None:
    """Authenticate; the gateway closes the connection if it does not accept the key."""
    socket.send(KEY)
    if socket.recv(WAIT_S) != "MM OK":
        raise SystemExit("this is not middleman")


def say(socket: ClientConnection, command: str, target: str, body: str, request_id: str) -> None:
    """Send one message; a line that begins with a dot gets a second one."""
    header = f"ReqID:{request_id}\n" if request_id else ""
    stuffed = re.sub(r"^\.", "..", body, flags=re.MULTILINE)
    socket.send(f"{command} {target}\n{header}\n{stuffed}\n.\n")


def told(socket: ClientConnection) -> tuple[str, str, str]:
    """Return the next message: command, ReqID and body."""
    head, _, rest = str(socket.recv(WAIT_S)).partition("\n\n")
    command = head.partition(" ")[0]
    found = re.search(r"^ReqID:(.*)$", head, flags=re.MULTILINE)
    body = re.sub(r"^\.", "", rest.removesuffix("\n.\n"), flags=re.MULTILINE)
    return command, found[1] if found else "", body


def main() -> None:
    """Send a request for a forecast, and answer it as the service."""
    url = f"ws://{GATEWAY}/weather/middleman"
    with connect(url) as service, connect(url) as client:
        enter(service)
        enter(client)
        say(service, "SUB", "forecast.london", "", "")
        # It receives its own messages once it is subscribed.
        say(service, "PUB", "forecast.london", "ready", "")
        command, _, body = told(service)
        print(command, body)
        say(client, "REQ", "forecast.london", "tomorrow?", "1")
        command, request_id, body = told(service)
        print(command, body)
        say(service, "RES", "forecast.london", "...rain", request_id)
        command, request_id, body = told(client)
        print(command, request_id, body)


if __name__ == "__main__":
    try:
        main()
    except ConnectionRefusedError:
        sys.exit(f"cannot connect to {GATEWAY}; is `weft serve` running there?")
