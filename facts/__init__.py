"""Pure facts about the platform: tables, arithmetic, names and versions.

Owns what is true whoever asks: no Pulumi, no provider, no file, no clock, only the standard library.
An independent fact stands here once, with its source and the date it was seen; everything else is computed.
Refuses to know settings or stacks: a rule that needs a whole stack lives in `preflight`.
"""
