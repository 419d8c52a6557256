"""What people read: one page about predictions, and the tables of the terminal."""
