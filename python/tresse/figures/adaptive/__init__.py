"""The adaptive stream map beside round-robin and the mapping made by hand, in the setups of the PFLDNeT 2010 paper."""
