"""Why a conclusion of rules is there, and why another is not: one form for all languages of rules."""
