"""The numbers that the documentation promises; tests/source/test_promises.py compares them.

Times are in seconds.
"""

MINUTE, HOUR, DAY = 60, 3600, 86_400

LINK_LIFETIME = HOUR
INVITATION_LIFETIME = 7 * DAY
# Links of notices, which undo a change.
UNDO_LIFETIME = 7 * DAY
MAIL_CODE_LIFETIME = HOUR
SMS_CODE_LIFETIME = 10 * MINUTE
# A page refuses an older code (ASVS 6.5.5).
PAGE_CODE_LIFETIME = 10 * MINUTE
AUTHORIZATION_CODE_LIFETIME = 5 * MINUTE
# Sign-ins at a provider, and signed messages about a completed act.
FLOW_LIFETIME = 10 * MINUTE
# Authorization requests of applications, whose users may sign in by a link.
REQUEST_LIFETIME = LINK_LIFETIME
# Codes of a device, and the interval of its requests, to which each premature request adds as much.
DEVICE_CODE_LIFETIME = 10 * MINUTE
DEVICE_INTERVAL = 5
ID_TOKEN_LIFETIME = HOUR
LOGOUT_TOKEN_LIFETIME = 2 * MINUTE

# Tries of a network for a mailed code, and of a session for a challenge.
TRIES = 5
# Wrong codes a day from a network, and from all unknown networks together.
WRONG_CODES_A_DAY = {"code": 20, "totp": 20, "recovery": 10, "device": 20}
RECOVERY_CODES = 10
# A session may have this number of challenges for each purpose and factor.
MOST_CHALLENGES = 5
CHALLENGE_LIFETIME = 5 * MINUTE
# Factors that are not verified.
ENROLMENT_LIFETIME = 5 * MINUTE
# Of a passkey that a browser made unasked.
UNUSED_PASSKEY_LIFETIME = 30 * DAY
# A browser in which a user has answered the offer of a passkey is asked again.
NEXT_PASSKEY_OFFER = 90 * DAY
MOST_UNVERIFIED_FACTORS = 10

MOST_API_KEYS = 20
MOST_ADMIN_KEYS = 50
# Without a use for this time, an administrative key is probably not needed.
UNUSED_ADMIN_KEY = 90 * DAY
API_KEY_TOKEN_LIFETIME = 10 * MINUTE
# A user may have this number of sessions at an application.
MOST_CLIENT_SESSIONS = 10

HOOK_TIMEOUT = 2
# A worker may make this number of calls at once.
MOST_CALLS_OF_A_HOOK = 50
# Challenges for a proof of work.
CAPTCHA_LIFETIME = 5 * MINUTE
# A whole request to a webhook or an SMS provider, with its answer.
HTTP_TIMEOUT = 10
# After this number of codes, a waiting notice has its turn.
MOST_CODES_IN_A_ROW = 9
# The pause between attempts to send a message or an event doubles after each.
FIRST_PAUSE = 5
LONGEST_PAUSE = 5 * MINUTE
LONGEST_RETRY_AFTER = HOUR
# After this time, a message without an expiry time is given up, and a failing webhook disabled.
GIVE_UP = 3 * DAY
# Every act that creates events reads all webhooks.
MOST_WEBHOOKS = 20
# Mails to administrators when a webhook is disabled.
MOST_MAILS = 10
# For this time, the previous secret of a webhook also signs, and that of a client can be accepted.
SECRET_OVERLAP = DAY

# Signs of trouble: this time without a run of a delivery process, without a backup, of a message's wait.
HEARTBEAT_LIMIT = 3 * MINUTE
BACKUP_LIMIT = 7 * DAY
LATE = 5 * MINUTE

# Ended sessions, finished messages and expired API keys.
ENDED_KEPT = 30 * DAY
NETWORKS_KEPT = 365 * DAY
