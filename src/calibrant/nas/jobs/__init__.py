"""Jobs of the study engine that train or measure one network of a space."""
