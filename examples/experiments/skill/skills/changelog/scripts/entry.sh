#!/bin/sh
# Prints the entry of a version: `sh entry.sh 1.2.0 'Fix the loop'`.
printf '## %s\n\n- %s\n' "$1" "$2"
