"""Expected maxima of Gaussian lines, and mean lengths of Gaussian vectors."""
