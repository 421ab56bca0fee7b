"""Programs that run by themselves: in a thread, or as an actor of a dataspace, with ports, channels and a terminal."""
