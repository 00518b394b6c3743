import pathlib, re, sys
how, path, *wanted = sys.argv[1:]
ignored = @IGNORED@
# As in the source, `*` has a meaning only at one end of a pattern.
def fits(part, glob):
    if glob.startswith("*"):
        return part.endswith(glob[1:])
    return part.startswith(glob[:-1]) if glob.endswith("*") else part == glob
named = [part for part in path.split("/") if not any(sign in part for sign in "*?[")]
is_ignored = lambda part: part not in named and any(fits(part, glob) for glob in ignored)
files = [pathlib.Path(path)]
if not files[0].exists():
    # The files of the task's folder are not the agent's.
    files = [f for f in pathlib.Path(".").glob(path) if f.is_file() and f.parts[0] != ".evals-task"]
    files = [f for f in files if not any(is_ignored(part) for part in f.parts)]
# What a link leads to outside of the workspace does not exist for the source.
root = pathlib.Path.cwd().resolve()
files = [f for f in files if f.resolve().is_relative_to(root)]
if how == "exists":
    sys.exit(0 if files else 1)
# The source refuses to guess which of several files is meant.
if len(files) != 1:
    sys.exit(1)
text = files[0].read_text(encoding="utf-8")
has = re.search if how.endswith("matches") else lambda part, whole: part in whole
expected = not how.startswith("not")
sys.exit(0 if all(bool(has(part, text)) == expected for part in wanted) else 1)
