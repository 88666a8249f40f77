"""What a study says: figures beside published ones, plots, one HTML file."""
