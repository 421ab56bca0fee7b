"""Storage: what survives a process: one format with checksums, one lock, one order of writes."""
