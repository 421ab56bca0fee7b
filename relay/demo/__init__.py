"""The demo, "who is in the air?": a year of flights, streamed by Spark into a dataspace and watched by actors.

Files in reading order: :mod:`~relay.demo.flights` (what Spark does), :mod:`~relay.demo.tower` (the actors),
:mod:`~relay.demo.replay` (both together, a broker and a console beside them), :mod:`~relay.demo.command` (what one
sees).
"""

from relay.demo.command import demo_command

__all__ = ["demo_command"]
