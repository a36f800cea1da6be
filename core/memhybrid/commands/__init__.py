"""The commands of `memhybrid`, one file for each kind of work. Nothing heavy is imported before a command runs."""
