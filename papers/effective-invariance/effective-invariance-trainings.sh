#!/usr/bin/env bash
# Makes the tables of the sections "Many trainings" and "Augmentation, or more data" of
# docs/results/effective-invariance.md from a run of
# papers/effective-invariance/effective-invariance-trainings.yaml:
#
#   papers/effective-invariance/effective-invariance-trainings.sh runs/trainings
#   go generate ./papers/internal/results
set -euo pipefail
run=$(realpath "$1")
cd "$(dirname "$0")/../.."
results=papers/results
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# Table 1 of Deng, Gould and Zheng 2022: correlations of accuracy with EI (effective invariance) and
# JS (Jensen-Shannon divergence). trained: over all networks that are trained here; few: over those
# of 375 or 750 steps; more: over those of more steps; null: of EI minus its null, the value for
# shuffled pairs of images and transformed images; all: with the three published ResNets too.
correlate() { go run ./cmd/noether correlate "$run" "$@" > /dev/null; }
few=(--model 'data/*' --model 'augmentation/*')
more=(--model 'steps/*')
for t in rotation grayscale; do
  ei=effective-invariance.ei@$t js=prediction-divergence.js@$t
  correlate --x $ei --x $js "${few[@]}" "${more[@]}" --csv "$temp/trained.csv"
  correlate --x $ei "${few[@]}" --csv "$temp/few.csv"
  correlate --x $ei "${more[@]}" --csv "$temp/more.csv"
  correlate --x $ei "${few[@]}" "${more[@]}" --above-null --csv "$temp/null.csv"
  correlate --x $ei --csv "$temp/all.csv"
  go run ./papers/internal/seeds correlations \
    -name "$ei=EI,$js=JS,$ei above its null=EI above its null,blurred=defocus blur" \
    -name "corrupted/gaussian-noise-4=gaussian noise,corrupted/contrast-4=contrast,corrupted/jpeg-compression-4=JPEG" \
    "$temp/trained.csv" "of 375 or 750 steps=$temp/few.csv" "of more steps=$temp/more.csv" "$temp/null.csv" \
    "with the three ResNets=$temp/all.csv" > $results/effective-invariance-$t.csv
done

# Figure 7: means over networks, and differences from networks trained on 1,000 images without
# augmentation. The names of networks, such as limit-1000-epochs-12, give the images and epochs.
table() { # the scores that the arguments select, by network
  go run ./papers/internal/seeds table -row network -column score "$@" \
    -series data,augmentation \
    -name "augment-crop=crop and flip,augment-affine=affine,augment-turn=turn,augment-colour=colour" \
    -name "augment-trivial=TrivialAugment" "$run/scores.csv"
}
# name_images replaces the names of networks: limit-1000-epochs-12 becomes 1,000 images.
name_images() { sed -E 's/^limit-([0-9]+)(000)-epochs-[0-9]+,/"\1,\2 images",/; s/^limit-500-epochs-[0-9]+,/500 images,/'; }
scores_of() { # transformation, statistic, title of its column
  table -data clean -transform "$1" -score "$2" "${@:4}" -name "score:$2=$3"
}
blurred_scores_of() { # statistic, title of its column
  table -data blurred -transform rotation -score "$1" -name "score:$1=$2"
}
without_header() { grep -v ^network,; }
{
  scores_of rotation clean accuracy
  scores_of rotation ei "EI to rotation" | without_header
  scores_of grayscale ei "EI to grayscale" | without_header
  blurred_scores_of clean "accuracy on blurred images" | without_header
  blurred_scores_of ei "EI to rotation on blurred images" | without_header
} | name_images > $results/effective-invariance-augmentation.csv
baseline=limit-1000-epochs-12
differences=(-digits 3 -unpaired -minus $baseline)
differences+=(-of augment-crop,augment-affine,augment-turn,augment-colour,augment-trivial)
differences+=(-of limit-500-epochs-48,limit-2000-epochs-6,limit-4000-epochs-3,limit-12000-epochs-1)
{
  echo "trained with,statistic,value,low,high"
  for c in "rotation clean accuracy" "rotation ei EI to rotation" "grayscale ei EI to grayscale"; do
    read -r transform score name <<< "$c"
    scores_of "$transform" "$score" "$name" "${differences[@]}" | sed -n "s/ - $baseline//p"
  done
} | name_images > $results/effective-invariance-differences.csv

# Figure 7: how far networks with augmentation are above the trend of accuracy over EI of those
# without, on clean and on blurred images.
apart() { # data, transformation
  go run ./cmd/noether correlate "$run" --data $1 --x effective-invariance.ei@$2 "${few[@]}" \
    --apart 'augmentation/*' --json > "$temp/$1-$2.json"
}
trends=()
for d in clean blurred; do
  for t in rotation grayscale; do
    apart $d $t
    trends+=("EI to $t, $d images=$temp/$d-$t.json")
  done
done
go run ./papers/internal/seeds deviations -digits 3 \
  -name "augment-crop=crop and flip,augment-affine=affine,augment-turn=turn,augment-colour=colour" \
  -name "augment-trivial=TrivialAugment" "${trends[@]}" > $results/effective-invariance-deviations.csv
