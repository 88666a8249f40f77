"""Commands for whoever runs a tracker."""
