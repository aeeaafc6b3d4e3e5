"""The file `.env`, whose malformed lines python-dotenv skips."""

from pathlib import Path

from dotenv.parser import parse_stream


def malformed_lines(path: Path) -> list[str]:
    """Return what is wrong with `.env`, without values."""
    name = path.resolve()
    try:
        with path.open(encoding="utf-8") as file:
            lines = list(parse_stream(file))
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        return [f"{name}: Must be text in UTF-8."]
    except OSError as error:
        return [f"{name}: Cannot be read: {error.strerror}."]
    # Comments have neither a name nor a value.
    malformed = [line for line in lines if line.error or (line.key is not None and line.value is None)]
    return [f"{name}: Line {line.original.line} must be NAME=value." for line in malformed]
