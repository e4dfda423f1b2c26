#!/usr/bin/env bash
# Counts the instructions of bench/instructions.cpp and compares them with the figure that is kept for this architecture.
# Usage: instructions.sh VALGRIND PROGRAM FIGURES. FIGURES has lines "architecture count"; without one for this machine
# the test is skipped (77).
set -euo pipefail

valgrind=$1 program=$2 figures=$3
architecture=$(uname -m)
kept=$(awk -v name="$architecture" '$1 == name {print $2}' "$figures")
if [[ -z "$kept" ]]; then
  echo "no figure for $architecture in $figures"
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
report=$("$valgrind" --tool=callgrind --toggle-collect='workload*' --callgrind-out-file="$folder/callgrind.out" \
  "$program" "$folder/dump" 2>&1) || {
  echo "$report"
  exit 1
}
counted=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<<"$report")
echo "counted $counted instructions; kept is $kept ($((100 * counted / kept)) %)"
if ((counted * 10 > kept * 11)); then
  echo "The workload costs over 10 % more than it did. Find out why (callgrind_annotate), or tell why it must and write"
  echo "the new figure to $figures."
  exit 1
fi
if ((counted * 10 < kept * 9)); then
  echo "The workload costs over 10 % less than it did: write the new figure to $figures, so that it stays so."
fi
