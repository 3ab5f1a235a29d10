"""Dreibholz, Seggelmann, Tüxen, Rathgeb: Transmission Scheduling Optimizations for CMT. PFLDNeT 2010."""
