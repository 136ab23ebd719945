"""Simulated sensors: each has a city, a kind, a random walk of values, and a rate."""

import asyncio
import random
from dataclasses import dataclass
from datetime import UTC, datetime

import weft

CITIES = ("berlin", "cairo", "lagos", "lima", "london", "oslo", "tokyo")
KINDS = {"temp": (15.0, "C"), "wind": (20.0, "km/h")}


@dataclass
class Sensor:
    """One sensor."""

    city: str
    kind: str
    per_s: float

    async def run(self, connection: weft.AsyncConnection, chance: random.Random) -> None:
        """Publish readings until cancelled."""
        value, unit = KINDS[self.kind]
        while True:
            value += chance.gauss(0.0, 0.3)
            reading = {"value": round(value, 2), "unit": unit, "sent": datetime.now(UTC)}
            await connection.publish(f"sensors.{self.city}.{self.kind}", reading)
            await asyncio.sleep(chance.expovariate(self.per_s))


async def publish(address: str) -> None:
    """Publish the readings of all sensors until cancelled."""
    chance = random.Random(7)  # noqa: S311  # the same readings in every run
    sensors = [Sensor(city, kind, chance.uniform(5, 80)) for city in CITIES for kind in KINDS]
    async with (
        weft.connect(address, service="weather", name="sensors") as connection,
        asyncio.TaskGroup() as tasks,
    ):
        for sensor in sensors:
            tasks.create_task(sensor.run(connection, chance))
