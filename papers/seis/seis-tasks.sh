#!/usr/bin/env bash
# Makes the tables of figure 4 of the SEIS paper in docs/results/seis.md from the scores of
# papers/seis/seis-tasks.yaml. Networks segment, classify (seis-classification) or do both: λ is the
# weight of the second task, classification, in training. Each value is a mean over trainings.
#
#   papers/seis/seis-tasks.sh runs/seis-tasks/scores.csv
#   go generate ./papers/internal/results
set -euo pipefail
scores=$(realpath "$1")
cd "$(dirname "$0")/../.."
to=papers/results
bottleneck=stage3/block1/Relu_1
decoder=decoder1/conv1/Relu,decoder1/conv2/Relu,decoder2/conv1/Relu,decoder2/conv2/Relu

# Names of networks and scores in the scores, and how the tables call them. The null of a score is
# what it gives for shuffled pairs.
labels=(-name "seis-classification=classification,stage3/block1/Relu_1=bottleneck"
  -name "score:null-equivariance=null of equivariance,score:null-invariance=null of invariance")
for d in fcn=FCN unet=U-Net; do
  n=network-${d%=*}-tasks
  labels+=(-name "$n-segmentation=${d#*=} segmentation,$n-quarter=${d#*=} λ = 0.25"
    -name "$n-half=${d#*=} λ = 0.5,$n-three-quarters=${d#*=} λ = 0.75,$n-one=${d#*=} λ = 1")
done
table() { go run ./papers/internal/seeds table "$@" "${labels[@]}" "$scores"; }
# differences prints rows of a value minus another (-of A -minus B), without the header.
differences() { table "$@" | grep " - "; }

# Left: scores at the bottleneck, which is the last layer of the encoder, and their differences.
table -row network -column score -layer $bottleneck \
  -score equivariance,null-equivariance,invariance,null-invariance > $to/seis-tasks.csv
{
  echo difference,statistic,value,low,high
  for n in network-fcn-tasks network-unet-tasks; do
    for pair in "$n-one $n-segmentation" "$n-one seis-classification" \
      "$n-segmentation seis-classification" "$n-one $n-quarter"; do
      differences -row network -column score -layer $bottleneck -score equivariance,invariance \
        -of ${pair% *} -minus ${pair#* }
    done
  done
} > $to/seis-tasks-differences.csv

# Right: equivariance over the decoder, its differences between networks, and those between layers.
fcn=network-fcn-tasks unet=network-unet-tasks
four=$fcn-segmentation,$fcn-one,$unet-segmentation,$unet-one
table -row score,layer -column network -layer $bottleneck,$decoder -network $four \
  -score equivariance,null-equivariance > $to/seis-decoders.csv
{
  echo layer,statistic,value,low,high
  for pair in "$fcn-one $fcn-segmentation" "$unet-one $unet-segmentation" \
    "$unet-segmentation $fcn-segmentation" "$unet-one $fcn-one"; do
    differences -row layer -column network -layer $bottleneck,$decoder -score equivariance \
      -of ${pair% *} -minus ${pair#* }
  done
} > $to/seis-decoder-differences.csv
# A step is the difference of a layer and the one before it; the last row is the last layer minus
# the bottleneck.
{
  echo step,statistic,value,low,high
  before=$bottleneck
  for layer in ${decoder//,/ } last; do
    [ $layer = last ] && layer=$before before=$bottleneck
    differences -row layer -column network -network $four -score equivariance -by layer \
      -of $layer -minus $before
    before=$layer
  done
} > $to/seis-decoder-steps.csv
