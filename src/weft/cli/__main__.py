"""`python -m weft.cli` is the command `weft`."""

from weft.cli.main import main

if __name__ == "__main__":
    main()
