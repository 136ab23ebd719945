"""The examples at the end of a command's help."""


def examples(*lines: str) -> str:
    """Examples as click's `epilog`: one a line, not filled into a paragraph."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
