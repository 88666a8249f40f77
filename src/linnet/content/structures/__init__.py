"""What finds, among many conditions of one kind on one attribute, those that accept a value."""
