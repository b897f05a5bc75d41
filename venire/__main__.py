"""`python -m venire` is the command `venire`."""

from venire.commands import main

main()
