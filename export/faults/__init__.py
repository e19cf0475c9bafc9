"""Names for what is wrong with a graph: which parameter, which activation, which length, and where."""
