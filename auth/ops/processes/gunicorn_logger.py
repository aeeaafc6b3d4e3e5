"""gunicorn's lines, such as those about killed workers, in the format of the log."""

import logging

from gunicorn import glogging
from gunicorn.config import Config

from auth.core import event_lines, logs
from auth.core.settings import served


class Logger(glogging.Logger):
    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        if served.current:
            formatter = _Events() if logs.is_json(served.current) else _Texts(self.error_fmt, self.datefmt)
            for handler in self.error_log.handlers:
                handler.setFormatter(formatter)


class _Texts(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return event_lines.line(super().format(record), record.levelname.lower(), is_json=False)


class _Events(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        exception = {"exception": self.formatException(record.exc_info)} if record.exc_info else {}
        level = record.levelname.lower()
        return event_lines.line(record.getMessage(), level, is_json=True, **exception)
