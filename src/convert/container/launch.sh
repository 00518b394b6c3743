# Runs a command in the trial's container, which the first command starts. Written by `evals convert`.
w=$1 h=$2
shift 2
n=evals-$(printf %s "$w" | cksum | tr ' ' -)
# The workspace is mounted at the working directory of the image.
if ! d=$(docker image inspect -f '{{.Config.WorkingDir}}' @IMAGE@ 2>/dev/null); then
  echo "the image @IMAGE@ was not found; build it: docker build -t @IMAGE@ @FOLDER@" >&2
  exit 125
fi
# The root folder cannot be a mount.
if [ "$d" = / ]; then d=; fi
if ! docker inspect "$n" >/dev/null 2>&1; then
  docker run -d --rm --init --name "$n" -v "$w:$w" -v "$h:$h" ${d:+-v "$w:$d"} @OPTIONS@ --entrypoint sleep @IMAGE@ @SECONDS@ >/dev/null || exit 125
fi
s= i=$#
while [ "$i" -gt 0 ]; do
  a=$1 i=$((i - 1))
  shift
  if [ "$a" = -- ] && [ -z "$s" ]; then
    s=1
    set -- "$@" -w "${d:-$w}" "$n" /bin/sh -c 'unset TMPDIR TMP TEMP; PATH=$(cat /.evals/path); export PATH; exec "$@"' sh
  else
    set -- "$@" "$a"
  fi
done
exec docker exec -i "$@"
