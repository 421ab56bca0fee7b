"""What happens in a tick: the rules as a circuit (:mod:`~.wiring`), and what grows beside it
(:mod:`~.lattice_fixpoint`).
"""
