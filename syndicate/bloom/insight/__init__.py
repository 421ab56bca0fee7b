"""What can be said of a program: which outputs depend on order, why a row is there or is not, and a plot of it all."""
