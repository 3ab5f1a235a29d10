"""Augment SCTP Multi-Streaming with Pluggable Scheduling (INFOCOM 2011 workshops)."""
