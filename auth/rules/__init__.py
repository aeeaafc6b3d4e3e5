"""The rules: who is refused, and why. Read them first, in this order.

Each function decides from facts, which a statement has read with their `now`. It returns a value, or a
refusal: a key of the table of errors, or None if nothing is refused. It imports the standard library alone
and knows no clock, request or database. "Rule 13" is that row of docs/rules.md.

    users, sessions, policy   the facts about a user, a session and the settings
    refusals                  the words of all refusals
    levels, clients, tokens   what gives a token now
    refreshing                which refresh token is good
    deciding                  what must not change while a hook is asked
    admission                 whose an address may become
    sign_in, identities       who may sign in, with a password or code, or by a customer's provider
    factors                   which may be verified, which are trusted, and which may be copies
    proofs                    which proof an act takes
    remaining                 what must remain
    links, first_proof        which link or code is good, and what the first proof of an address keeps
    ends                      what ends, by reason and size
    consent, devices          what an application's request or a device's code lacks
    counts, messages          known networks, and the limits of verdicts; what is sent, to whom and when
"""
