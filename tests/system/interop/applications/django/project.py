"""A Django project of one page, whose users sign in by mozilla-django-oidc. The test writes its settings before this."""

import os
import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import include, path

settings.configure(
    SECRET_KEY=os.urandom(32).hex(),
    ALLOWED_HOSTS=["localhost", "127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "database"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "mozilla_django_oidc",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    AUTHENTICATION_BACKENDS=["mozilla_django_oidc.auth.OIDCAuthenticationBackend"],
    LOGIN_REDIRECT_URL="/",
    LOGIN_REDIRECT_URL_FAILURE="/failed",
    **{name: value for name, value in globals().items() if name.startswith("OIDC_")},
)
django.setup()
urlpatterns = [
    path("oidc/", include("mozilla_django_oidc.urls")),
    path("", lambda request: HttpResponse(getattr(request.user, "email", "") or "Nobody")),
]
execute_from_command_line([sys.argv[0], "migrate", "--verbosity=0"])
execute_from_command_line([sys.argv[0], "runserver", "--noreload", os.environ["PORT"]])
