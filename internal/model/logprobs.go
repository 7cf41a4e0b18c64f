package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// logProbs replaces the scores of one sample, of all or of some classes, by natural logarithms of
// probabilities.
func (s scores) logProbs(row []float32) error {
	if len(row) == 0 {
		return errors.New("the list of classes is empty: nothing remains to predict")
	}
	if s.kind == probabilities {
		return logRatio(row, row, s.total)
	}
	logSoftmax(row, row)
	return nil
}

// logSoftmax writes the natural logarithms of the softmax of the logits z to dst:
//
//	dst[k] = z[k] - log sum_j exp(z[j])
//
// computed in float64 relative to the largest logit. dst and z may be the same slice.
func logSoftmax(dst, z []float32) {
	largest := float64(slices.Max(z))
	sum := 0.0
	for _, v := range z {
		sum += math.Exp(float64(v) - largest)
	}
	shift := largest + math.Log(sum)
	for k, v := range z {
		dst[k] = float32(float64(v) - shift)
	}
}

// logRatio writes the natural logarithms of the probabilities p, scaled to the sum 1, to dst, which
// may be p. A zero becomes the smallest positive float32. It returns an error for values below 0 or
// above the total, which is 1 if it is 0.
func logRatio(dst, p []float32, total float64) error {
	const rounding = 1.001
	highest := float32(rounding * cmp.Or(total, 1))
	sum := 0.0
	for _, v := range p {
		if v < 0 || v > highest {
			return fmt.Errorf("the output contains %v, which is not a probability: set scores to logits", v)
		}
		sum += max(float64(v), math.SmallestNonzeroFloat32)
	}
	shift := math.Log(sum)
	for k, v := range p {
		dst[k] = float32(math.Log(max(float64(v), math.SmallestNonzeroFloat32)) - shift)
	}
	return nil
}
