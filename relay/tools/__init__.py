"""Tools: the console and its printer, recordings, and the load generator."""
