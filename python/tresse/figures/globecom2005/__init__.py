"""Receive Buffer Blocking in Concurrent Multipath Transfer (GLOBECOM 2005)."""
