"""Drawing: one look for every figure, and the parts that several figures share."""
