command=$1
shift
away=$(mktemp -d) || exit 127
for file; do
  mkdir -p "$away/$(dirname "$file")" && mv "$file" "$away/$file" || exit 127
done
sh -c "$command"
code=$?
for file; do
  mkdir -p "$(dirname "$file")" && mv "$away/$file" "$file" || exit 127
done
rm -rf "$away"
exit "$code"
