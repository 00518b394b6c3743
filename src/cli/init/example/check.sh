#!/bin/sh
for name in Ada Grace "Mary Ann"; do
  said=$(sh greet.sh "$name")
  if [ "$said" != "Hello, $name!" ]; then
    echo "sh greet.sh '$name' printed '$said'"
    exit 1
  fi
done
