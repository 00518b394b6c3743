#!/bin/sh
echo "Hello, !"
