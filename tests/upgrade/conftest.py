"""Empty databases of both kinds, as the contract suites have them."""

from tests.contract.store_support import database_url, dialect

__all__ = ["database_url", "dialect"]
