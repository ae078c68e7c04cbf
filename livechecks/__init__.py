"""Live checks: what only Google knows, asked before the first resource.

Owns the questions (the provider's own functions, and Google's REST APIs where it has none), the judging of the
answers and the report. A check that gets no answer is a manual item, never a refusal: whoever may not look may still
be right. Refuses to change anything, to look for credentials of its own, and to take longer than its deadline.
"""
