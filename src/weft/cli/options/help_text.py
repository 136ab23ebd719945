"""Examples at the end of a command's help."""


def examples(*lines: str) -> str:
    """Return examples as click's `epilog`: one per line, not filled into a paragraph."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
