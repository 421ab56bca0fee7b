"""The demo, "who is in the air?": a year of flights from New York, streamed by Spark into a dataspace, watched by
actors.

Files in reading order: :mod:`~relay.demo.flights` (what Spark does), :mod:`~relay.demo.tower` (the actors),
:mod:`~relay.demo.replay` (both together, a broker and a console beside them), :mod:`~relay.demo.command` (what one
sees).
"""
