"""gunicorn's lines, such as those about killed workers, in the format of the log."""

import logging

from gunicorn import glogging
from gunicorn.config import Config

from auth.core import event_lines, logs
from auth.core.settings import served


class Logger(glogging.Logger):
    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        if served.current and logs.is_json(served.current):
            for handler in self.error_log.handlers:
                handler.setFormatter(_Events())


class _Events(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        exception = {"exception": self.formatException(record.exc_info)} if record.exc_info else {}
        return event_lines.event(record.getMessage(), record.levelname.lower(), **exception)
