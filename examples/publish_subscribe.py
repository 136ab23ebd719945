"""Publish and subscribe, blocking: `python examples/publish_subscribe.py` beside `weft serve`."""

import sys

import weft

GATEWAY = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7411"


def main() -> None:
    """Subscribe to temperatures, publish readings of two stations, and print the temperatures."""
    with weft.Connection(GATEWAY, service="weather", name="example.listener") as listener:
        readings = listener.subscribe("sensors.*.temp")
        with weft.Connection(GATEWAY, service="weather", name="example.station") as station:
            station.publish("sensors.london.temp", weft.Message(value=21.5, unit="C"))
            station.publish("sensors.paris.wind", weft.Message(value=7.0))
            station.publish("sensors.paris.temp", weft.Message(value=24.0, unit="C"))
            station.flush()
        for _ in range(2):
            reading = next(readings)
            print(f"{reading.subject}: {reading['value']} {reading['unit']}")


if __name__ == "__main__":
    try:
        main()
    except weft.errors.Unreachable as error:
        sys.exit(f"{error}; is `weft serve` running there?")
