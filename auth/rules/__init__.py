"""The rules: who is refused, and why. Read them first.

Each function decides from facts, which a statement has read with their `now`, and returns a refusal, a key of
the table of errors, or a value. It imports the standard library alone and knows no clock, request or
database. Statements that read ask `tokens`; elsewhere SQL decides. tests/rules compares both over rows.

    users, sessions, policy   the facts about a user, a session and the settings
    tokens, levels, clients   what gives a token now
    refreshing, deciding      which refresh token is good, and what must not change while a hook is asked
    admission                 whose an address may become
    sign_in, devices          who may sign in
    consent, providers        what an application's request lacks, and a customer's provider may
    identities                whom a provider signs in
    proofs                    which proof an act takes
    links, first_proof        which link or code is good, and what the first proof of an address keeps
    factors                   which may be verified, which are trusted, and which may be copies
    remaining                 what must remain
    ends                      what ends, by reason and size
    counts, messages          verdicts, known networks, windows and totals; when a notice is due
"""
