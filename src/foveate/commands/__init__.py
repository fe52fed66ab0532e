"""The commands of the program, one module each: they parse, call and print. Heavy imports stay inside functions."""
