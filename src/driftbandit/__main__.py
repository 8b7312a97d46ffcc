"""`python -m driftbandit` is the command `driftbandit`."""

from driftbandit.cli import main

if __name__ == "__main__":
    main()
