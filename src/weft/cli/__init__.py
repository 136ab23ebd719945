"""The command `weft`: one file a command, each using Weft as its users do."""
