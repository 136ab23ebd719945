"""`weft completion`: completion scripts for shells."""

import click
from click.shell_completion import get_completion_class

from weft.cli.options.help_text import examples
from weft.cli.output import streams


@click.command(
    epilog=examples(
        "weft completion bash > ~/.local/share/bash-completion/completions/weft",
        "weft completion zsh  > ~/.zfunc/_weft",
        "weft completion fish > ~/.config/fish/completions/weft.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"this version of click cannot complete for {shell}")
    script = kind(ctx.find_root().command, {}, "weft", "_WEFT_COMPLETE")
    streams.result(script.source().rstrip())
