"""A verb of ``syndicate rules``: what it does for a program in each language, and what to use where it does nothing.

The command of one language is the same under both names, ``syndicate rules check`` and ``syndicate bloom check``.
Under the first, the program that is named says which language it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from itertools import repeat
from typing import Final

import click

from relay.cli.exit_codes import SETTINGS, Command, ending, fail, interruptible
from syndicate.errors import SyndicateError

FAMILY: Final = "rules"
LANGUAGES: Final = {"bloom": "Bloom", "dedalus": "Dedalus"}

_DEBUG: Final = click.Option(["--debug"], is_flag=True, help="Show tracebacks.")


class Verb(Command):
    """A verb for programs in several languages; *instead* says what to use for those in another."""

    def __init__(self, name: str, does: str, **instead: str) -> None:
        super().__init__(name, help=does, context_settings=SETTINGS)
        self.instead = instead
        self.commands: dict[str, dict[str, Command]] = {FAMILY: {}, **{language: {} for language in LANGUAGES}}

    def program(self, language: str, examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Decorate what the verb does for programs in *language*, with its options, under each of its names."""

        def register(function: Callable[..., None]) -> Callable[..., None]:
            params = [*click.command()(function).params, _DEBUG]
            for group in (FAMILY, language):
                self.commands[group][language] = Command(
                    self.name,
                    callback=ending(f"syndicate {group} {self.name}")(function),
                    params=params,
                    help=function.__doc__,
                    epilog=examples.replace(f"syndicate {FAMILY} ", f"syndicate {group} "),
                    context_settings=SETTINGS,
                )
            self.params = list({tuple(one.opts): one for _, one in self._all()}.values())
            return function

        return register

    @property
    def languages(self) -> dict[str, Command]:
        """What it is for a program in each of the languages that have it."""
        return self.commands[FAMILY]

    def _all(self) -> Iterator[tuple[str, click.Parameter]]:
        for language, command in self.languages.items():
            yield from ((language, param) for param in command.params)

    # ------------------------------------------------------------------------------------------------ the language

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Read the arguments, as the command does that this is for the language of the program."""
        with interruptible():
            ctx = click.Context(self, parent, info_name)
            word = self._program_of(ctx, args)
            if word is None:
                only = [one for one in self.languages.values() if not any(param.required for param in one.params)]
                if only and not set(args) & set(ctx.help_option_names or ["--help"]):
                    return only[0].make_context(info_name, args, parent, **extra)
                return super().make_context(info_name, args, parent, **extra)
            try:
                language = _language(word, ctx.meta)
            except SyndicateError as error:
                if "--debug" in args:
                    raise
                fail(f"syndicate {FAMILY} {self.name}", error)
            if language not in self.languages:
                raise click.UsageError(
                    f"{word} is a program in {LANGUAGES[language]}, for which there is no {self.name}: "
                    f"{self.instead[language]}",
                    ctx,
                )
            try:
                return self.languages[language].make_context(info_name, args, parent, **extra)
            except click.NoSuchOption as error:
                others = [LANGUAGES[other] for other, param in self._all() if error.option_name in param.opts]
                if not others:
                    raise
                raise click.UsageError(
                    f"{error.option_name} is for programs in {others[0]}, and {word} is one in {LANGUAGES[language]}",
                    error.ctx,
                ) from None

    def _program_of(self, ctx: click.Context, args: list[str]) -> str | None:
        """The program that arguments name, whatever else is wrong with them."""
        ctx.ignore_unknown_options = True
        try:
            options, _, _ = self.make_parser(ctx).parse_args(list(args))
        except click.UsageError:
            return None
        word = options.get("program")
        return word if isinstance(word, str) and not word.startswith("-") else None

    # ------------------------------------------------------------------------------------------------ the help

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of all languages; a program has to be named."""
        named = click.Argument(["program"], metavar="PROGRAM")
        return [named if one.name == "program" else one for one in super().get_params(ctx)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those that are the same for all, then those for each language."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and all(map(self._has, self.languages, repeat(record), repeat(ctx))):
                sections["Options"].append(record)
        for language, command in self.languages.items():
            records = [record for one in command.params if (record := one.get_help_record(ctx)) is not None]
            rest = [record for record in records if record not in sections["Options"]]
            sections[f"For programs in {LANGUAGES[language]}"] = rest
        for title, rows in filter(lambda section: section[1], sections.items()):
            with formatter.section(title):
                formatter.write_dl(rows)

    def _has(self, language: str, record: tuple[str, str], ctx: click.Context) -> bool:
        params = self.languages[language].get_params(ctx)
        return record in [one.get_help_record(ctx) for one in params if isinstance(one, click.Option)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples of all languages, and what to use in the others."""
        for language, command in self.languages.items():
            formatter.write_paragraph()
            formatter.write_text(f"{LANGUAGES[language]}: {(command.help or '').strip().partition(chr(10))[0]}")
            command.format_epilog(ctx, formatter)
        for language, instead in self.instead.items():
            formatter.write_paragraph()
            formatter.write_text(f"{LANGUAGES[language]} has no {self.name}: {instead}.")


def _language(program: str, meta: MutableMapping[str, object]) -> str:
    """The language of a program; a file in Dedalus says it by its name, and needs nothing of Bloom."""
    if program.endswith(".ded"):
        return "dedalus"
    from relay.cli.rules.bloom_program import language_of

    return language_of(program, meta)
