"""calibrant against its peers. One file a topic; the file name is the name. Private files start with `_`."""
