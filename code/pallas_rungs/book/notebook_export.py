"""Every chapter as a notebook to download: executed, complete, and able to run on its own."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from pallas_rungs import extras
from pallas_rungs.book import plain_markdown
from pallas_rungs.book.execute import book_of, chapter_docnames, executed_notebook
from pallas_rungs.book.history import history

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_v4: Any = nbformat.v4
_from_dict: Any = nbformat.from_dict
_writes: Any = nbformat.writes

FOLDER = "notebooks"
PINNED = ("jax", "jaxlib", "libtpu")
_OURS = "application/vnd.pallas"


def notebook_path(app: Sphinx, docname: str) -> str:
    """Return where a chapter's notebook lies in the site, such as ``notebooks/start/x.ipynb``."""
    base = posixpath.dirname(app.config.root_doc)
    inside = posixpath.relpath(docname, base) if base else docname
    return f"{FOLDER}/{inside}.ipynb"


def colab_address(app: Sphinx, docname: str) -> str:
    """Return the address that opens a chapter in Colab; empty when none is configured.

    Colab opens files of GitHub branches only, so the notebooks must be pushed to one.
    """
    repository = _repository(app)
    branch = app.config.pallas_rungs_notebook_branch
    if not repository or not branch:
        return ""
    owner_and_name = repository.removeprefix("https://github.com/")
    inside = notebook_path(app, docname).removeprefix(f"{FOLDER}/")
    return f"https://colab.research.google.com/github/{owner_and_name}/blob/{branch}/{inside}"


def install_cell(
    pins: Mapping[str, str],
    repository: str,
    commit: str,
    beside: Mapping[str, str] | None = None,
) -> str:
    """Write the first cell: it installs what the page was verified with.

    Args:
        pins: versions by package.
        repository: address of the book's repository; the package comes from it.
        commit: the commit to take; the newest when it is empty.
        beside: versions of what the page's optional extras are made of, installed without what
            they ask for beyond that.
    """
    wanted = []
    for name, number in pins.items():
        marker = ""
        if name == "libtpu":
            marker = '; sys_platform == "linux" and platform_machine == "x86_64"'
        wanted.append(f"'{name}=={number}{marker}'")
    if repository:
        at = f"@{commit}" if commit else ""
        wanted.append(f"'pallas-rungs @ git+{repository}{at}'")
    extra = " ".join(f"'{name}=={number}'" for name, number in (beside or {}).items())
    return (
        "# Installs what this page was verified with, on a CPU. Asked to restart, do, and run this "
        "cell again.\n"
        f"%pip install -q {' '.join(wanted)}\n"
        f"{f'%pip install -q --no-deps {extra}{chr(10)}' if extra else ''}"
        "%env JAX_PLATFORMS=cpu"
    )


def export(
    notebook: Mapping[str, Any], *, first: str, page: plain_markdown.Surroundings
) -> nbformat.NotebookNode:
    """Turn an executed chapter into the notebook that readers get.

    Args:
        notebook: the executed chapter, drawn cells expanded.
        first: source of the first cell.
        page: what references on the page point at.

    Returns:
        a valid notebook of format 4.5 with fixed cell ids and the outputs of the execution.
    """
    made: nbformat.NotebookNode = _v4.new_notebook()
    made.metadata = _from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        }
    )
    install = _v4.new_code_cell(first, id="install", metadata={"tags": ["install"]})
    cells = [install]
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            new = _v4.new_code_cell(
                cell["source"],
                id=f"cell-{number}",
                execution_count=cell.get("execution_count"),
                outputs=[_plain(output) for output in cell.get("outputs", [])],
                metadata=_code_metadata(cell.get("metadata", {})),
            )
        else:
            text = plain_markdown.convert(cell["source"], page).strip()
            if not text:
                continue
            new = _v4.new_markdown_cell(text, id=f"cell-{number}")
        cells.append(new)
    made.cells = cells
    nbformat.validate(made)
    return made


def _code_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    tags = list(metadata.get("tags", []))
    found: dict[str, Any] = {"tags": tags} if tags else {}
    if {"hide-input", "remove-input"} & set(tags):
        found["jupyter"] = {"source_hidden": True}
    return found


def _plain(output: Mapping[str, Any]) -> nbformat.NotebookNode:
    """Copy an output without our machine-readable form and without volatile metadata."""
    copy: nbformat.NotebookNode = _from_dict(json.loads(json.dumps(output)))
    for mime in [mime for mime in copy.get("data", {}) if mime.startswith(_OURS)]:
        del copy["data"][mime]
    return copy


def _repository(app: Sphinx) -> str:
    options: Mapping[str, Any] = app.config.html_theme_options or {}
    return str(options.get("repository_url", "")).rstrip("/")


def _pins() -> dict[str, str]:
    found = {}
    for name in PINNED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _site_address(app: Sphinx) -> str:
    return str(app.config.html_baseurl or "").rstrip("/")


def _write(app: Sphinx, exception: Exception | None) -> None:
    """Write the notebooks of all chapters, and drop those of chapters that are gone."""
    if exception is not None or app.builder.format != "html":
        return
    pins, home, commit = _pins(), _repository(app), history(Path(app.srcdir)).commit
    folder = Path(app.outdir) / FOLDER
    kept = set()
    titles = {name: node.astext() for name, node in app.env.titles.items()}
    for docname in chapter_docnames(app):
        uri = app.builder.get_target_uri(docname)
        page = plain_markdown.Surroundings(
            docname=docname,
            address=f"{_site_address(app)}/{uri}" if _site_address(app) else "",
            titles=titles,
            labels=plain_markdown.labels_of(app),
            site=_site_address(app),
        )
        needed = book_of(app).chapters[docname].extras
        beside = {name: at for extra in needed for name, at in extras.pins(extra).items()}
        first = install_cell(pins, home, commit, beside)
        made = export(executed_notebook(app, docname), first=first, page=page)
        path = Path(app.outdir) / notebook_path(app, docname)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_writes(made) + "\n", "utf8")
        kept.add(path)
    for path in folder.rglob("*.ipynb"):
        if path not in kept:
            path.unlink()


def setup(app: Sphinx) -> None:
    """Write the notebooks when the pages are written."""
    app.add_config_value("pallas_rungs_notebook_branch", "notebooks", "html")
    app.connect("build-finished", _write)
