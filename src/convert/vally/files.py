import pathlib, re, sys
how, glob, *wanted = sys.argv[1:]
names = [f for f in pathlib.Path(".").glob(glob) if f.is_file() and ".git" not in f.parts]
# As in the source, line ends stay as they are.
texts = [f.read_bytes().decode(errors="ignore") for f in names]
has = re.search if how.endswith("matches") else lambda text, whole: text in whole
found = all(any(has(text, whole) for whole in texts) for text in wanted)
none = not any(has(text, whole) for text in wanted for whole in texts)
sys.exit(0 if (none if how.startswith("not") else found) else 1)
