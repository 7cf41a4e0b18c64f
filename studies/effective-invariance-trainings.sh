#!/usr/bin/env bash
# Makes the tables of "Many trainings" and "Augmentation, or more data" in docs/results/effective-invariance.md from a run
# of studies/effective-invariance-trainings.yaml:
#
#   studies/effective-invariance-trainings.sh runs/trainings
#   go generate ./studies/results
set -euo pipefail
run=$(realpath "$1")
cd "$(dirname "$0")/.."
to=studies/results
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# Table 1: accuracy against EI and JS over networks, all of them and those trained here.
correlate() { go run ./cmd/noether correlate "$run" "$@" > /dev/null; }
for t in rotation grayscale; do
  ei=effective-invariance.ei@$t js=prediction-divergence.js@$t
  correlate --x $ei --x $js --csv "$temp/all.csv"
  correlate --x $ei --model 'data-*' --model 'augmentation*' --model 'seis-augmentation*' --csv "$temp/own.csv"
  correlate --x $ei --above-null --csv "$temp/null.csv"
  go run ./studies/seeds correlations \
    -name "$ei=EI,$js=JS,$ei above its null=EI above its null,blurred=defocus blur" \
    -name "corrupted/gaussian-noise-4=gaussian noise,corrupted/contrast-4=contrast,corrupted/jpeg-compression-4=JPEG" \
    "$temp/all.csv" "without the three ResNets=$temp/own.csv" "$temp/null.csv" > $to/effective-invariance-$t.csv
done

# Figure 7: means over seeds, and differences from 1,000 images without augmentation.
table() {
  go run ./studies/seeds table -row network -column score "$@" \
    -series data-500,data-1000,data-2000,data-4000,data-12000,augmentation \
    -name "augment-crop=crop and flip,augment-affine=affine,augment-turn=turn,augment-colour=colour" \
    -name "augment-trivial=TrivialAugment" "$run/scores.csv"
}
images() { sed -E 's/^data-([0-9]+)(000),/"\1,\2 images",/; s/^data-500,/500 images,/'; }
of() { table -data clean -transform "$1" -score "$2" "${@:4}" -name "score:$2=$3"; }
blurred() { table -data blurred -transform rotation -score "$1" -name "score:$1=$2"; }
rows() { grep -v ^network,; }
{
  of rotation clean accuracy
  of rotation ei "EI to rotation" | rows
  of grayscale ei "EI to grayscale" | rows
  blurred clean "accuracy on blurred images" | rows
  blurred ei "EI to rotation on blurred images" | rows
} | images > $to/effective-invariance-augmentation.csv
minus=(-digits 3 -minus data-1000)
minus+=(-of augment-crop,augment-affine,augment-turn,augment-colour,augment-trivial)
minus+=(-of data-2000,data-4000,data-12000)
{
  echo "trained with,statistic,value,low,high"
  for c in "rotation clean accuracy" "rotation ei EI to rotation" "grayscale ei EI to grayscale"; do
    read -r transform score name <<< "$c"
    of "$transform" "$score" "$name" "${minus[@]}" | sed -n 's/ - data-1000//p'
  done
} | images > $to/effective-invariance-differences.csv
