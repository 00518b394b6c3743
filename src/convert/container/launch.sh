# Runs a command in the trial's container, which the first command starts. Written by `evals convert`.
w=$1 h=$2
shift 2
n=evals-$(printf %s "$w" | cksum | tr ' ' -)
if ! docker inspect "$n" >/dev/null 2>&1; then
  if ! docker image inspect @IMAGE@ >/dev/null 2>&1; then
    echo "the image @IMAGE@ was not found; build it: docker build -t @IMAGE@ @FOLDER@" >&2
    exit 125
  fi
  docker run -d --rm --init --name "$n" -v "$w:$w" -v "$h:$h" @OPTIONS@ --entrypoint sleep @IMAGE@ @SECONDS@ >/dev/null || exit 125
fi
d=@WORKDIR@ s= i=$#
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
