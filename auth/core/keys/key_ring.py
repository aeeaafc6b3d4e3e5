"""The keys of a running process, from the settings, reread from their files."""

import dataclasses
import threading
import time
from collections.abc import Sequence

import structlog

from auth.core.settings import Settings, kept_secrets
from auth.core.tokens import derived_keys
from auth.core.tokens.access_tokens import AccessTokens
from auth.core.tokens.api_keys import ApiKeyMacs
from auth.core.tokens.one_time import Codes, RecoveryCodes, SignUpSalts, UserCodes
from auth.core.tokens.refresh_tokens import ClientRefreshTokens, OrganizationRefreshTokens, RefreshTokens
from auth.core.tokens.service_role import ServiceRoleKeys
from auth.core.tokens.signing_keys import all_keys

INTERVAL = 2.0  # seconds between two checks of the files

log = structlog.get_logger()


class KeyRing:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.access_tokens = AccessTokens(settings)
        self.refresh_tokens = RefreshTokens(settings.secret_key)
        self.client_refresh_tokens = ClientRefreshTokens(settings.secret_key)
        self.organization_refresh_tokens = OrganizationRefreshTokens(settings.secret_key)
        self.codes = Codes(settings.secret_key)
        self.recovery_codes = RecoveryCodes(settings.secret_key)
        self.user_codes = UserCodes(settings.secret_key)
        self.sign_up_salts = SignUpSalts(settings.secret_key)
        self.api_keys = ApiKeyMacs(settings.secret_key)
        self.sealer = derived_keys.Sealer(settings.secret_key)
        self.service_role_keys = ServiceRoleKeys(settings.service_role_key)
        self._derived = [each for each in vars(self).values() if isinstance(each, derived_keys.Derived)]
        self._problems: list[str] = []

    def refresh(self) -> None:
        """Reread the files, and sign with the key that is active now. Ignore unusable files."""
        settings, problems = reread(self.settings)
        if problems != self._problems:
            for problem in problems:
                log.error("keys_not_read_again", reason=problem)
        self._problems = problems
        if not problems:
            self.use(settings)

    def use(self, settings: Settings) -> None:
        self.settings = settings
        self.access_tokens.use(settings)
        for derived in self._derived:
            derived.use(settings.secret_key)
        self.service_role_keys.use(settings.service_role_key)

    def watch(self) -> None:
        """Refresh every `INTERVAL` seconds, in a thread or greenlet."""

        def watch() -> None:
            while True:
                time.sleep(INTERVAL)
                try:
                    self.refresh()
                except Exception as error:
                    log.error("keys_not_read_again", exc_info=error)

        threading.Thread(target=watch, name="keys", daemon=True).start()


def reread(settings: Settings) -> tuple[Settings, list[str]]:
    """Return the settings with the current keys of their files, and the problems of the files.

    Unusable files, and files with keys of another deployment, change nothing.
    """
    secrets, problems = kept_secrets.read(settings.key_files, settings.jwt_secret)
    problems = problems or [
        f"{settings.key_files[name]}: Has none of the keys in use. Restore it from a backup, or copy it from"
        " another node."
        for name, value in secrets.items()
        if not _ids(value) & _ids(getattr(settings, name))
    ]
    return settings if problems else dataclasses.replace(settings, **secrets), problems


def _ids(value: str | Sequence[str]) -> set[str | None]:
    """Return the ids of the keys in a JWK Set, or the secrets without their times."""
    if isinstance(value, str):
        return {key.kid for key in all_keys(value, None)}
    return {derived_keys.split_time(secret)[0] for secret in value}
