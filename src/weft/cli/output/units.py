"""Numbers for people: three digits and a unit. JSON has the exact ones."""

_STEPS = ("", "k", "M", "G", "T", "P", "E")
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def short(value: float, unit: str = "") -> str:
    """Return a number with two or three digits: `0`, `7.5`, `999`, `1.2 k`, `34 MB`."""
    step = 0
    # A value that rounds to 1000 belongs to the next step.
    while abs(value) >= 999.5 and step < len(_STEPS) - 1:
        value /= 1000
        step += 1
    digits = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    return f"{digits.removesuffix('.0')} {_STEPS[step]}{unit}".rstrip()


def rate(value: float, unit: str = "") -> str:
    """Return a rate per second: `1.2 M/s`, `34 MB/s`."""
    text = short(value, unit)
    return f"{text}/s"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: `3 d 4 h`, `2 min 5 s`."""
    left = int(seconds)
    parts: list[tuple[int, str]] = []
    for size, name in _SPANS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, name))
    shown = [f"{count} {name}" for count, name in parts[:2] if count]
    return " ".join(shown) or "0 s"


def latency(seconds: float) -> str:
    """Return a short time: `85 µs`, `1.3 ms`, `2 s`."""
    if seconds >= 0.9995:
        return short(seconds, "s")
    if seconds >= 0.000_999_5:
        return short(seconds * 1e3, "ms")
    return short(seconds * 1e6, "µs")
