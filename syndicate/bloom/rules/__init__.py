"""What a rule is made of: expressions and their joins, folds and functions, and terms over lattices.

The rows of an expression are described in the relational algebra of :mod:`syndicate.plan`; nothing here is evaluated.
"""
