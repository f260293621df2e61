"""`penstock completion bash|zsh|fish`: shell completion scripts."""

from __future__ import annotations

from typing import Literal

from penstock.cli.output import Json, emit, out

Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, *, json: Json = False) -> int:
    """Print the completion for a shell: `source <(penstock completion bash)`, or into the shell's
    own folder."""
    from penstock.cli.tree import app

    script = app.generate_completion(shell=shell)
    emit({"shell": shell, "script": script}, as_json=json, render=lambda: out.file.write(script))
    return 0
