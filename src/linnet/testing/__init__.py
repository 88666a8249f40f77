"""What tests of Linnet and of programs on it may use. No part that ships imports it."""
