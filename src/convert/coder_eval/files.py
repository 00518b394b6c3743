import fnmatch, pathlib, re, sys
how, path, *wanted = sys.argv[1:]
ignored = """.venv venv ENV env virtualenv .git .svn .hg __pycache__ *.pyc *.pyo *.pyd .pytest_cache .ruff_cache *.egg-info .eggs
dist build .vscode .idea *.swp *.swo *~ .DS_Store Thumbs.db node_modules .npm bower_components .coverage htmlcov .tox .nox *.so
*.dylib *.dll""".split()
is_ignored = lambda part: any(fnmatch.fnmatchcase(part, glob) for glob in ignored)
named = path.split("/")
files = [pathlib.Path(path)]
if not files[0].exists():
    files = [f for f in pathlib.Path(".").glob(path) if f.is_file()]
    files = [f for f in files if not any(part not in named and is_ignored(part) for part in f.parts)]
if how == "exists":
    sys.exit(0 if files else 1)
# The source refuses to guess which of several files is meant.
if len(files) != 1:
    sys.exit(1)
text = files[0].read_text(encoding="utf-8")
has = re.search if how.endswith("matches") else lambda part, whole: part in whole
expected = not how.startswith("not")
sys.exit(0 if all(bool(has(part, text)) == expected for part in wanted) else 1)
