"""The entry point. A subcommand's work is imported when it runs, so that help and errors come at once."""

from __future__ import annotations

import io
import sys

import typer

from cli import catalog, check, job, quota, sandbox, sandbox_faults, schema

app = typer.Typer(
    help="Plan, check and run an organisation's training platform on Google Cloud.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("check")(check.check)
app.command("schema")(schema.schema)
app.add_typer(catalog.app, name="catalog")
app.add_typer(job.app, name="job")
app.add_typer(quota.app, name="quota")
app.add_typer(sandbox.app, name="sandbox")
sandbox.app.add_typer(sandbox_faults.app, name="faults")


def main() -> None:
    """Run the command; an interrupt ends it quietly with 130, as shells expect."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an arrow that a terminal of another encoding has not is a "?"
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
