"""The numbers that the documentation promises; tests/source/test_promises.py compares them.

Times are in seconds.
"""

MINUTE, HOUR, DAY = 60, 3600, 86_400

LINK_LIFETIME = HOUR
INVITATION_LIFETIME = 7 * DAY
# Of the links of notices.
UNDO_LIFETIME = 7 * DAY
MAIL_CODE_LIFETIME = HOUR
SMS_CODE_LIFETIME = 10 * MINUTE
# Of any code that a page asks for (ASVS 6.5.5).
PAGE_CODE_LIFETIME = 10 * MINUTE
AUTHORIZATION_CODE_LIFETIME = 5 * MINUTE
# Of a sign-in at a provider, and of a signed message about a completed act.
FLOW_LIFETIME = 10 * MINUTE
# Of an application's authorization request. Its user may sign in by a link.
REQUEST_LIFETIME = LINK_LIFETIME
# Of a device's codes, and between two of its requests. Each earlier request adds the same time.
DEVICE_CODE_LIFETIME = 10 * MINUTE
DEVICE_INTERVAL = 5
ID_TOKEN_LIFETIME = HOUR
LOGOUT_TOKEN_LIFETIME = 2 * MINUTE

# Tries of a network for a mailed code, and of a session for a challenge.
TRIES = 5
# Wrong codes of a network a day, and of all networks that are not known together.
WRONG_CODES_A_DAY = {"code": 20, "totp": 20, "recovery": 10, "device": 20}
RECOVERY_CODES = 10
# Of a session, for each purpose and factor.
MOST_CHALLENGES = 5
CHALLENGE_LIFETIME = 5 * MINUTE
# Of a factor that is not verified.
ENROLMENT_LIFETIME = 5 * MINUTE
MOST_UNVERIFIED_FACTORS = 10

MOST_API_KEYS = 20
MOST_ADMIN_KEYS = 50
# Without a use of an administrative key: a sign that nobody needs it.
UNUSED_ADMIN_KEY = 90 * DAY
API_KEY_TOKEN_LIFETIME = 10 * MINUTE
# Of a user at an application.
MOST_CLIENT_SESSIONS = 10

HOOK_TIMEOUT = 2
# Of a worker.
MOST_CALLS_OF_A_HOOK = 50
# Of a challenge for a proof of work.
CAPTCHA_LIFETIME = 5 * MINUTE
# For a whole request to a webhook or an SMS provider.
HTTP_TIMEOUT = 10
# While a notice waits.
MOST_CODES_IN_A_ROW = 9
# Between attempts to send a message or an event. It doubles after each.
FIRST_PAUSE = 5
LONGEST_PAUSE = 5 * MINUTE
LONGEST_RETRY_AFTER = HOUR
# After which a message without an expiry time is given up, and a failing webhook is disabled.
GIVE_UP = 3 * DAY
# Every act that creates events reads all webhooks.
MOST_WEBHOOKS = 20
# To administrators, when a webhook is disabled.
MOST_MAILS = 10
# For which the previous secret of a webhook also signs, and that of a client can be accepted.
SECRET_OVERLAP = DAY

# Without a run of a delivery process, without a backup, and of a message that waits: a sign of trouble.
HEARTBEAT_LIMIT = 3 * MINUTE
BACKUP_LIMIT = 7 * DAY
LATE = 5 * MINUTE

# Ended sessions, finished messages and expired API keys.
ENDED_KEPT = 30 * DAY
NETWORKS_KEPT = 365 * DAY
