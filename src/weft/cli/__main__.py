"""`python -m weft.cli` runs the command `weft`."""

from weft.cli.main import main

if __name__ == "__main__":
    main()
