"""The command `qd` itself: its verbs by name, loaded when one is called, and its ending.

`qd --help` and completion must be quick, so the short helps stand here and no verb is imported
for them. May import: the other modules of cli.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from qd.cli import ending
from qd.cli.context import Cli
from qd.errors import QdError
from qd.version import __version__

VERBS: dict[str, tuple[str, str]] = {
    "run": ("qd.cli.work:run", "Run the daemon."),
    "work": ("qd.cli.work:work", "Run jobs in the foreground."),
    "enqueue": ("qd.cli.enqueue:enqueue", "Put a job into a queue; prints its id."),
    "status": ("qd.cli.status:status", "Queues, daemons and database at a glance."),
    "jobs": ("qd.cli.jobs:jobs", "List, show, release or delete waiting and running jobs."),
    "failed": ("qd.cli.failed:failed", "List, show, retry, delete or purge dead letters."),
    "queues": ("qd.cli.queues:queues", "List, pause or resume queues."),
    "explain": ("qd.cli.explain:explain", "Say why a job isn't running."),
    "recover": ("qd.cli.recover:recover", "Take back stale jobs now."),
    "migrate": ("qd.cli.migrate:migrate", "Bring the schema up to date."),
    "check": ("qd.cli.check:check", "Check config, server, schema and handlers."),
    "console": ("qd.cli.console:console", "Users of the web console."),
    "bench": ("qd.cli.bench:bench", "Measure qd on the configured database."),
    "demo": ("qd.cli.demo:demo", "See qd work on real files, without a server."),
}
"""Verb to (module:attribute, short help), in the order that `qd --help` shows."""


class Root(click.Group):
    """The group of all verbs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of VERBS."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads one verb."""
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the verb; an unknown one is answered with the nearest."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], VERBS, n=1)
            raise click.UsageError(f"no such verb {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the verbs without importing one of them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, short) for name, (_, short) in VERBS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Completes a verb's name without importing one of them."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(name, help=short) for name, (_, short) in VERBS.items() if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a verb; a reader of its output that has gone (`| head`) ends it without a word."""
        try:
            result = super().invoke(ctx)
            with suppress(AttributeError, ValueError):  # a handler has closed it, or taken it away
                sys.stdout.flush()
            return result
        except BrokenPipeError:
            ending.silence()
            return ending.PIPE_CLOSED

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Runs a verb and ends the process with its exit code, whatever happened."""
        extra["standalone_mode"] = False
        sys.exit(end(lambda: super(Root, self).main(args, prog_name, **extra)))


def end(run: Callable[[], object]) -> int:
    """Runs the command line; its exit code, everything that a user can cause having been said."""
    try:
        code = run()
        return code if isinstance(code, int) else ending.DONE
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ending.INTERRUPTED
    except QdError as error:
        ending.say(error)
        return ending.exit_code(error)
    except OSError as error:
        if error.errno not in ending.UNWRITABLE:
            raise
        return ending.unwritable(error)


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--config", "config_path", metavar="FILE", help="Else $QD_CONFIG, ./qd.yaml, /etc/qd/qd.yaml.")
@click.version_option(__version__, prog_name="qd")
@click.pass_context
def cli(ctx: click.Context, config_path: str | None) -> None:
    """A job queue in the MySQL or MariaDB that you already run.

    Exit codes: 0 done, 1 it could not (not found, refused), 2 usage, 69 database out of reach,
    78 configuration or schema wrong.
    """
    ctx.obj = Cli(config_path)
    ctx.call_on_close(ctx.obj.close)
