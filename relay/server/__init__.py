"""The broker: listeners, durable state, admission, its own figures, and its configuration."""
