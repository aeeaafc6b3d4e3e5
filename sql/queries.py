"""The named statements as functions: `queries.select_user(tx, user_id=…)`. queries.pyi has their types."""

from sql import query_of, shipped

globals().update({name: query_of(statement) for name, statement in shipped().items()})
