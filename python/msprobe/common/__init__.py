"""What the framework adapters share. Imports no framework."""
