"""The one error class that users see, and the exit codes of every command.

A leaf: it imports nothing of ours, so every room may raise `UserError`.
"""

EXIT_DONE = 0
EXIT_CHECK_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_PARTIAL = 3
EXIT_INTERRUPTED = 130


class UserError(Exception):
    """Bad input or usage, told in one line: what was wrong, what was needed, what to do.

    The command line prints it as `seatrial: <message>` on stderr and exits with 2, without a traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
