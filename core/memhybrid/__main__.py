"""`python -m memhybrid`: the command line."""

from memhybrid.cli import main

main()
