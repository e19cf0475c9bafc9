"""Faults put into correct graphs on purpose: the suite that the fault finder is measured with."""
