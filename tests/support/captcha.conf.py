"""The service's gunicorn configuration, with more patience, and a server on this machine that verifies captchas
instead of their providers.
"""

import os as _os

from tests.support.gunicorn_settings import settings_of

globals().update(settings_of("tests/support/long_timeouts.conf.py"))

_initialise = globals().get("post_worker_init", lambda _worker: None)


def post_worker_init(worker):
    _initialise(worker)
    from auth.extensions.captcha import siteverify

    siteverify.URLS.update(dict.fromkeys(siteverify.URLS, _os.environ["SITEVERIFY_URL"]))
