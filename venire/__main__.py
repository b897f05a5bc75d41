"""`python -m venire` is the command `venire`."""

from venire.cli import main

if __name__ == "__main__":  # a worker process reads this file under another name
    main()
