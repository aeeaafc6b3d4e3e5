from auth.web import audit, targets


def clear(user_id: str) -> bool:
    """Forget a user's wrong passwords and codes, and return whether there were any. Raises `ApiError`."""
    with targets.act() as tx:
        # Counters before the user's row: see docs/decisions.md.
        cleared = tx.run("clear_failures", user_id=user_id) > 0
        user = targets.lock(tx, user_id)
        if cleared:
            audit.record(tx, user_id, user.email, ["lock_cleared"], [])
        return cleared
