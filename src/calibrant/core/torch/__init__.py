"""What rooms that work with networks share. Only here may core load torch, and only those rooms load this."""
