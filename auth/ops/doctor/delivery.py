"""Checks of delivery: the process, waiting and failed messages, webhooks, and the backup."""

from auth.core import constants
from auth.core.checks import NOT_PUBLIC, Context, Failure, NotChecked, check, span
from sql import queries


@check("delivery", "A delivery process is running")
def _running(context: Context) -> Failure | None:
    last = queries.select_last_done(context.db, task="delivery")
    if last and last.seconds_ago < constants.HEARTBEAT_LIMIT:
        return None
    since = f"for {span(last.seconds_ago)}" if last else "yet"
    remedy = "Set AUTH_DELIVER=true, or run: latchkey deliver"
    if context.settings.deliver:
        remedy = "Fix what journalctl -u latchkey says of it, then run: systemctl restart latchkey"
    return Failure(f"No delivery process has run {since}, so no messages are sent.", remedy)


@check("waiting-messages", "No messages are stuck")
def _waiting(context: Context) -> Failure | None:
    backlog = queries.select_late_messages(context.db, late=constants.LATE)
    if not backlog.total:
        return None
    reason = f": {backlog.reason}" if backlog.reason else ""
    return Failure(
        f"{backlog.total:,} messages are waiting to be sent, the oldest for {span(backlog.oldest or 0)}"
        f"{reason}.",
        "For SMS, correct AUTH_SMS_PROVIDER. For email, find the cause by: latchkey mail-test ADDRESS",
    )


@check("failed-messages", "Messages are delivered")
def _failed(context: Context) -> Failure | None:
    outcomes = queries.count_outcomes_of_a_day(context.db)
    if outcomes.failed * 10 <= outcomes.total:
        return None
    reason = f", most often: {outcomes.reason}" if outcomes.reason else ""
    return Failure(
        f"{outcomes.failed:,} of {outcomes.total:,} messages in the last day were not sent{reason}.",
        "Use a sender (AUTH_MAIL_FROM) and a mail server (AUTH_SMTP_URL) that the recipients' servers"
        " accept.",
    )


@check("message-totals", "A quarter of each total of messages is left")
def _totals(context: Context) -> Failure | None:
    if not context.settings.rate_limits_enabled:
        raise NotChecked("rate limits are off")
    totals = context.settings.message_totals
    seconds = [limit.get_expiry() for limit in totals.values()]
    for total in queries.measure_totals(context.db, names=[*totals], seconds=seconds):
        limit, setting = totals[total.name], f"AUTH_RATE_LIMIT_{total.name.upper()}_TOTAL"
        if total.count * 4 >= limit.amount * 3:
            return Failure(
                f"{total.count:,} of {limit.amount:,} messages that {setting} allows have been requested."
                " Beyond it, messages are held back.",
                f"If your own users requested them, raise {setting}. Otherwise, see docs/security.md.",
            )
    return None


@check("webhooks", "No webhook has failed for a day")
def _webhooks(context: Context) -> Failure | None:
    failing = queries.list_failing_webhooks(context.db, failing=constants.DAY)
    if not failing:
        return None
    first = failing[0]
    state = f"has failed for {first.days} days" if first.days else "fails"
    remedy = f"Run: latchkey webhooks test {first.id}"
    if first.disabled_reason:
        state = f"was disabled ({first.disabled_reason}), so its events wait"
        remedy = f"Fix its server, then run: latchkey webhooks enable {first.id}"
    others = f" Others that fail: {len(failing) - 1}." if len(failing) > 1 else ""
    return Failure(f"The webhook {first.id} at {first.origin} {state}.{others}", remedy)


@check("backup", "There is a recent backup")
def _backup(context: Context) -> Failure | None:
    if context.settings.is_local:
        raise NotChecked(NOT_PUBLIC)
    last = queries.select_last_done(context.db, task="backup")
    if last and last.seconds_ago < constants.BACKUP_LIMIT:
        return None
    sentence = f"The last backup is {span(last.seconds_ago)} old." if last else "No backup has been made."
    restored = queries.select_last_done(context.db, task="restore")
    if restored and not last:
        # The backup of another machine does not count here.
        sentence = f"No backup has been made since the restore {span(restored.seconds_ago)} ago."
    remedy = "Run latchkey backup FILE --keep 7 in a timer."
    if not context.settings.backup_recipients:
        remedy = "Set AUTH_BACKUP_RECIPIENTS to what latchkey backup-key prints on another machine."
    return Failure(sentence, f"{remedy} If you back up another way: latchkey doctor --skip backup")


CHECKS = (_running, _waiting, _failed, _totals, _webhooks, _backup)
