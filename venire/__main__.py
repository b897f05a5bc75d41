"""`python -m venire` is the command `venire`."""

from venire.commands import main

if __name__ == "__main__":  # a worker process reads this file under another name
    main()
