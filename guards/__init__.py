"""What is watched while and after the model writes: memory, breakdown, numbers, names; and the extract."""
