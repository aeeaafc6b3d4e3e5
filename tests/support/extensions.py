"""The settings with which every extension is on, and with which each is off that can be."""

import base64

EVERY_EXTENSION = {
    "AUTH_CONSOLE": "true",
    "AUTH_API_KEYS": "true",
    "AUTH_SSO": "true",
    "AUTH_ORGANIZATIONS": "users",
    # The extension is on, but no act needs a captcha.
    "AUTH_CAPTCHA": "altcha",
    "AUTH_CAPTCHA_ROUTES": "",
    "AUTH_OAUTH_CLIENT_DOCUMENTS": "*",
    "AUTH_HOOK_SEND_EMAIL": "http://localhost/hook",
    "AUTH_HOOK_SEND_EMAIL_SECRETS": "v1,whsec_" + base64.b64encode(bytes(32)).decode(),
}
EXTENSIONS_OFF = {
    **{f"AUTH_{name}": "false" for name in ("OAUTH_SERVER", "API_KEYS", "SSO", "PAGES", "CONSOLE")},
    "AUTH_ORGANIZATIONS": "off",
}
