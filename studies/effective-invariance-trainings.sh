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

# Table 1: accuracy against EI (effective invariance) and JS (Jensen-Shannon divergence) over the
# networks that are trained here, over those of few and of more steps, and with the published ones.
correlate() { go run ./cmd/noether correlate "$run" "$@" > /dev/null; }
few=(--model 'data/*' --model 'augmentation/*')
more=(--model 'steps/*')
for t in rotation grayscale; do
  ei=effective-invariance.ei@$t js=prediction-divergence.js@$t
  correlate --x $ei --x $js "${few[@]}" "${more[@]}" --csv "$temp/own.csv"
  correlate --x $ei "${few[@]}" --csv "$temp/few.csv"
  correlate --x $ei "${more[@]}" --csv "$temp/more.csv"
  correlate --x $ei "${few[@]}" "${more[@]}" --above-null --csv "$temp/null.csv"
  correlate --x $ei --csv "$temp/all.csv"
  go run ./studies/seeds correlations \
    -name "$ei=EI,$js=JS,$ei above its null=EI above its null,blurred=defocus blur" \
    -name "corrupted/gaussian-noise-4=gaussian noise,corrupted/contrast-4=contrast,corrupted/jpeg-compression-4=JPEG" \
    "$temp/own.csv" "of 375 or 750 steps=$temp/few.csv" "of more steps=$temp/more.csv" "$temp/null.csv" \
    "with the three ResNets=$temp/all.csv" > $to/effective-invariance-$t.csv
done

# Figure 7: means over networks, and differences from 1,000 images without augmentation.
table() {
  go run ./studies/seeds table -row network -column score "$@" \
    -series data,augmentation \
    -name "augment-crop=crop and flip,augment-affine=affine,augment-turn=turn,augment-colour=colour" \
    -name "augment-trivial=TrivialAugment" "$run/scores.csv"
}
images() { sed -E 's/^limit-([0-9]+)(000)-epochs-[0-9]+,/"\1,\2 images",/; s/^limit-500-epochs-[0-9]+,/500 images,/'; }
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
plain=limit-1000-epochs-12
minus=(-digits 3 -unpaired -minus $plain)
minus+=(-of augment-crop,augment-affine,augment-turn,augment-colour,augment-trivial)
minus+=(-of limit-500-epochs-48,limit-2000-epochs-6,limit-4000-epochs-3,limit-12000-epochs-1)
{
  echo "trained with,statistic,value,low,high"
  for c in "rotation clean accuracy" "rotation ei EI to rotation" "grayscale ei EI to grayscale"; do
    read -r transform score name <<< "$c"
    of "$transform" "$score" "$name" "${minus[@]}" | sed -n "s/ - $plain//p"
  done
} | images > $to/effective-invariance-differences.csv
