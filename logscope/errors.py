"""The errors that logscope raises on purpose; the command line turns each into one message and an exit code."""


class LogscopeError(Exception):
    """Something that the user can mend went wrong."""

    exit_code = 2


class UsageError(LogscopeError):
    """A flag or an argument does not make sense."""


class SameLaunchError(UsageError):
    """Two logs that were to be compared are nodes of one launch."""


class PackError(LogscopeError):
    """Pattern files were refused; the message lists every problem with file:line and what to do."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
        super().__init__("\n".join([*problems, f"{count} in the pattern files"]))


class RulesError(LogscopeError):
    """A rules file was refused; the message lists every problem with file:line and what to do."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
        super().__init__("\n".join([*problems, f"{count} in the rules file"]))


class SourceError(LogscopeError):
    """A log cannot be found, opened or decompressed."""

    exit_code = 3


class NoLaunchError(LogscopeError):
    """What was read holds no SGLang launch."""

    exit_code = 3


class MissingExtraError(LogscopeError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package\n  do: pip install 'sglang-logscope[{extra}]'")
