from pallas_rungs.book.theme import icon, is_needed, page_contents, wrap_wide_tables

TOC = (
    '<ul>\n<li><a class="reference internal" href="#">Title</a><ul>\n'
    '<li><a class="reference internal" href="#a">A</a></li>\n</ul>\n</li>\n</ul>\n'
)


def test_the_page_contents_leave_the_title_out():
    made = page_contents(TOC)
    assert 'href="#a"' in made
    assert "Title" not in made


def test_a_page_of_one_section_has_no_contents():
    assert page_contents('<ul>\n<li><a href="#">Title</a></li>\n</ul>\n') == ""


def test_each_table_gets_a_box():
    table = '<table class="docutils align-default"><tr><td>1</td></tr></table>'
    assert wrap_wide_tables(f"{table}<p>x</p>{table}").count('<div class="pr-wide"><table') == 2
    assert wrap_wide_tables('<table class="pr-ladder-table"></table>').startswith("<table")


def test_stock_files_are_loaded_where_they_are_used():
    assert not is_needed("_static/basic.css", "")
    assert not is_needed("_static/sphinx-design.min.css", "<p>x</p>")
    assert is_needed("_static/sphinx-design.min.css", '<div class="sd-card"></div>')
    assert is_needed("_static/exhibits.js", "<p>x</p>")


def test_icons_are_hidden_from_screen_readers():
    assert 'aria-hidden="true"' in icon("search")
