"""What a program has between two ticks: the contents of collections, what waits for the next tick, what is stored."""
