#!/usr/bin/env bash
# Writes the correlations of the sections "Degraded networks" and "One model, many test sets" of
# docs/results/effective-invariance.md, from the runs models and datasets in a folder:
#
#   papers/effective-invariance/effective-invariance-correlations.sh runs/small
#
# correlations/models.csv and datasets.csv in that folder have the columns of scores.csv; their
# variants are the names of the scores, such as EI above its null.
set -euo pipefail
runs=$(realpath "$1")
cd "$(dirname "$0")/../.."
mkdir -p "$runs/correlations"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
scores() { # the scores for both transformations, as arguments
  for t in rotation grayscale; do
    for s in "$@"; do echo --x "$s@$t"; done
  done
}
names() { sed -E 's/(effective-invariance|prediction-divergence)\.([a-z0-9]+)@[a-z]+(.*) ~ accuracy\.clean/\2\3/; s/,ei( above|,)/,EI\1/; s/,js( above|,)/,JS\1/; s/,kl( above|,)/,KL\1/'; }
correlate() { # run, arguments of correlate
  go run ./cmd/noether correlate "$runs/$1" "${@:2}" --csv "$temp/plain.csv" > /dev/null
  go run ./cmd/noether correlate "$runs/$1" "${@:2}" --above-null --csv "$temp/null.csv" > /dev/null
  { cat "$temp/plain.csv"; tail -n +2 "$temp/null.csv"; } | names > "$runs/correlations/$1.csv"
}
correlate datasets --by data $(scores effective-invariance.ei prediction-divergence.js)
correlate models $(scores effective-invariance.ei prediction-divergence.{js,kl,l2,agreement})
