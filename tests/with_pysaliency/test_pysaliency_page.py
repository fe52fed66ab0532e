"""The page about pysaliency is true; `make test` leaves its Python blocks out, as they need it."""

import test_docs


def test_python_blocks_run_as_pasted_and_print_what_is_shown(tmp_path):
    page = test_docs.ROOT / "docs" / "pysaliency.md"
    found = test_docs.blocks(page.read_text())
    assert len(found) == 4
    assert all(block.needs == "pysaliency" for block in found)
    test_docs.run_blocks(page, found, tmp_path)
