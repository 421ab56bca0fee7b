"""The protocol: packets, their encodings, and the limits on what a peer may say."""
