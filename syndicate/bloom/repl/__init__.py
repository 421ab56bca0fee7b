"""Programs that are typed line by line, and keep what they have when their rules change."""
