"""`python -m memsift`."""

from memsift.cli import main

main()
