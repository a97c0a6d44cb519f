"""What people measured, as the commands that they would type."""
