"""Capabilities: who may reach what, and with which caveats."""
