"""The columnar path: large changes that come as arrays are worked on as arrays.  Imported with the first of them.

What makes it small is that a function that only rearranges its arguments' parts (an ``itemgetter``, what is marked with
:func:`~syndicate.flow.element.rearranges`) says all that it does when it is called **once**, on the names of columns in
place of values.  So a projection, a key or the function of a join costs nothing a row, and there is no second language
of expressions; only predicates, which look at values, need one word (:class:`~syndicate.flow.columns.where`).

* ``table``: a batch as columns, and the shape of its elements
* ``sorted_runs``: the columnar part of what a node keeps
* ``joins``, ``sums``: the operators with a state; ``steps``: the others, and how a circuit is made ready

**One trace.**  What a node keeps is a dictionary, the head, and sorted runs.  Before a columnar step the
head is pushed into the runs; before a step by rows, the keys that the rows bring are pulled out of them into the head.
So each step, of either kind, runs as if there were only its own kind of state, and a change costs what it brings (and
what it finds), whichever kind came before.  Moving is no change of what is kept: a failed step need not move back.

**In doubt rows are used**: a function that is not known, columns of other types than those kept, a sum that
could leave 64 bits, a hash collision in a group.  Such a step raises :class:`~.table.ByRows` before it changed
anything, and runs by rows, exactly.

Source: ``docs/design/flow.md``, "Rows, columns and what they cost".
"""
