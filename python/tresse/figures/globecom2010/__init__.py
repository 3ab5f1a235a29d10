"""The figures of "On the Use of Concurrent Multipath Transfer over Asymmetric Paths" (GLOBECOM 2010)."""
