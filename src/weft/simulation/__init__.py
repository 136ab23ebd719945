"""The real mesh on a clock and a network that are made up: every run can be had again."""
