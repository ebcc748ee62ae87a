"""The scenarios' own support: a statement is compiled once for all engines of a worker."""

from pathlib import Path

from sqlalchemy import column, create_engine, select, table

from tests.support.compiled_statements import CompiledStatements, shared_statements


def read_with_new_engine(path: Path) -> int:
    """One statement by Core on an engine of its own."""
    engine = create_engine(f"sqlite:///{path}").execution_options(logging_token="scenario")
    with engine.connect() as conn:
        conn.exec_driver_sql("CREATE TABLE IF NOT EXISTS notes (id INTEGER)")
        rows = conn.execute(select(table("notes", column("id")).c.id)).all()
    engine.dispose()
    return len(rows)


def test_a_second_engine_compiles_nothing_again(tmp_path: Path) -> None:
    cache = CompiledStatements()
    with shared_statements(cache):
        read_with_new_engine(tmp_path / "one.db")
        (compiled,) = cache.values()
        read_with_new_engine(tmp_path / "two.db")
    assert list(cache.values()) == [compiled]


def test_outside_of_the_block_an_engine_has_a_cache_of_its_own(tmp_path: Path) -> None:
    cache = CompiledStatements()
    with shared_statements(cache):
        pass
    read_with_new_engine(tmp_path / "one.db")
    assert not cache
