"""What is checked before anything is registered.

Owns the way from what Pulumi's config holds to values that fit together: the reading of raw values (`decode`),
the field types (`fields`), the rules that join sections (`rules_…`) and the JSON Schema (`schema`). It stands
beside `settings.py` and not inside it, because the models are the contract that components are written against
and the rules are not; and not inside `facts/`, because a rule here reads whole sections and needs pydantic.
Refuses to import Pulumi, to open a file, or to ask anyone: what only Google can answer is a live check.
"""
