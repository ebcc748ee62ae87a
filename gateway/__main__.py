"""`python -m gateway` is the program `gatehouse`."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()
