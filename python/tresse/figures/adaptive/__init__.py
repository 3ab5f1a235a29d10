"""The adaptive stream map compared with round-robin and the manual mapping, in the setups of the PFLDNeT 2010 paper."""
