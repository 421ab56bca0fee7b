"""A session: what two peers hold of each other, and the bytes between them."""
