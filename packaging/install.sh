#!/bin/sh
# Installs the program evals from the archives of a release.
#
#   install.sh [VERSION]
#
# EVALS_RELEASES     where the archives and SHA256SUMS of the version are: an address, or a folder. Required.
# EVALS_INSTALL_DIR  where the program goes. Default: ~/.local/bin
set -eu

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

version=${1:-${EVALS_VERSION:-}}
from=${EVALS_RELEASES:-}
into=${EVALS_INSTALL_DIR:-${HOME:?HOME is not set}/.local/bin}
[ -n "$version" ] || fail "name a version: install.sh 0.1.0"
[ -n "$from" ] || fail "set EVALS_RELEASES to the address, or the folder, of the release's files"

case "$(uname -s)" in
  Linux)
    # The loader of musl says its name; that of glibc has another.
    if ldd --version 2>&1 | grep -qi musl; then system=unknown-linux-musl; else system=unknown-linux-gnu; fi ;;
  Darwin) system=apple-darwin ;;
  *) fail "there is no archive for $(uname -s)" ;;
esac
case "$(uname -m)" in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) fail "there is no archive for $(uname -m)" ;;
esac

name=evals-$version-$machine-$system
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

get() {
  case "$from" in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl -fsSL "$from/$1" -o "$work/$1"
      else
        wget -q "$from/$1" -O "$work/$1"
      fi ;;
    *) cp "$from/$1" "$work/$1" ;;
  esac || fail "$from/$1 could not be read"
}
get "$name.tar.gz"
get SHA256SUMS

wanted=$(grep " $name.tar.gz\$" "$work/SHA256SUMS" | cut -d ' ' -f 1)
[ -n "$wanted" ] || fail "SHA256SUMS does not list $name.tar.gz"
if command -v sha256sum >/dev/null; then
  found=$(sha256sum "$work/$name.tar.gz" | cut -d ' ' -f 1)
else
  found=$(shasum -a 256 "$work/$name.tar.gz" | cut -d ' ' -f 1)
fi
[ "$wanted" = "$found" ] || fail "$name.tar.gz has the checksum $found, and SHA256SUMS says $wanted; nothing was installed"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$into"
# A program that runs keeps its file: the new one takes its place whole.
cp "$work/$name/evals" "$into/.evals.new"
chmod 755 "$into/.evals.new"
mv "$into/.evals.new" "$into/evals"
"$into/evals" --version
echo "installed in $into; completions and manual pages are in $from/$name.tar.gz"
case ":$PATH:" in
  *":$into:"*) ;;
  *) echo "note: $into is not on PATH" >&2 ;;
esac
