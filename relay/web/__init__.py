"""The web: a client of dataspaces for browsers and Node, in TypeScript (``client/``), and what serves it.

``dist/`` is what ``make web`` builds from it; it is committed, so that nobody needs Node who does not change it.

Source: ``docs/design/web.md``.
"""
