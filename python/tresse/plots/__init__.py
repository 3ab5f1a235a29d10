"""Drawing: a common style for all figures, and parts that several figures share."""
