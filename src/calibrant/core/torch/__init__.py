"""Code that rooms with networks share. Only here may core load torch, and only they load it."""
