"""Programs for operators: commands, processes, the doctor, backups, transfer, the test server."""


class UnusableFile(Exception):
    """A line for the operator: a file is damaged, of another program or release, or needs another key."""
