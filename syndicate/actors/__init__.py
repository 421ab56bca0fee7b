"""The actors: turns, facets, fields and blocks, dataspaces, and the verbs that handlers use."""
