"""A channel with a password, blocking: `python examples/channel.py` beside `weft serve`.

Only members who know the password can publish in it and receive its messages.
"""

import sys

import weft

GATEWAY = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7411"
NAME = "games.chess"
# Both players agreed on it by other means than the gateway.
TOLD = "correct horse"


def main() -> None:
    """Open a channel, join it, publish moves in it, and try to join with a wrong password."""
    with (
        weft.Connection(GATEWAY, service="games", name="example.white") as white,
        weft.Connection(GATEWAY, service="games", name="example.black") as black,
        white.open_channel(NAME, password=TOLD) as board,
        black.join_channel(NAME, password=TOLD) as table,
    ):
        moves = table.subscribe("moves.*")
        for move in ("e4", "Nf3"):
            board.publish("moves.white", weft.Message(move=move))
        for _ in range(2):
            message = next(moves)
            print(f"{table.subject_of(message)}: {message['move']}")
        with weft.Connection(GATEWAY, service="games", name="example.guest") as guest:
            try:
                guest.join_channel(NAME, password=TOLD.upper())
            except weft.errors.WrongPassword as error:
                print(f"a guest: {error}")


if __name__ == "__main__":
    try:
        main()
    except weft.errors.Unreachable as error:
        sys.exit(f"{error}; is `weft serve` running there?")
