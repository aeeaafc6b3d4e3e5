"""The service's gunicorn configuration, with a name server of ours."""

from tests.support.gunicorn_settings import settings_of

_settings = settings_of("tests/support/long_timeouts.conf.py")
globals().update(_settings)


def post_worker_init(worker):
    _settings["post_worker_init"](worker)
    import os

    import dns.resolver

    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], int(os.environ["OWN_NAMES_PORT"])
    dns.resolver.default_resolver = resolver
