"""The skeleton index: from a value to those who are interested in it.

A *skeleton* is what static analysis finds in a pattern: its shape (which constructors, where), its constant map
(which values, where, and which places must merely exist) and its capture map (which places to hand over).  Shapes lie
along the edges of a trie; constants are keys of tables at its nodes; captures belong to the handlers in those tables.
One walk over a value finds all that match, at a cost that depends on the number of *different skeletons*, not of
observers.

Read in this order: :mod:`.path` (places in a value), :mod:`.skeleton` (what a pattern demands), :mod:`.interest` (an
``Observe`` as a value), :mod:`.matching` (types, constants and captures of a value), :mod:`.compiled` (the same as
generated functions), :mod:`.trie` (nodes, tables, handlers), :mod:`.bulk` (many values at once), :mod:`.index` (the
whole).

Source: Garnock-Jones 2018, "Indexing assertions and patterns"; ``docs/design/skeleton.md``.
"""
