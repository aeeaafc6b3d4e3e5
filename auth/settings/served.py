"""The settings of the gunicorn master, which its workers inherit.

A worker that is replaced gets the keys that its siblings have, whatever the files contain by then.
"""

from auth.settings import Settings

# None in other processes, which load their own.
current: Settings | None = None
# Of the development inbox: new at each start, and kept at a reload. Without a master there is none.
inbox_key = ""
