package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
)

// MaxSyntheticSide bounds the side of a synthetic image, in pixels.
const MaxSyntheticSide = 4096

// checkCanvas checks the size and the number of channels of a synthetic image.
func checkCanvas(size, channels int) error {
	if size < 1 || size > MaxSyntheticSide {
		return fmt.Errorf("size %d is not a side of 1 to %d pixels", size, MaxSyntheticSide)
	}
	if channels != 1 && channels != 3 {
		return fmt.Errorf("channels is %d: use 3 (colour) or 1 (grey)", channels)
	}
	return nil
}

// orRange returns a range, or the default for nil.
func orRange(r []float64, low, high float64) []float64 {
	if r == nil {
		return []float64{low, high}
	}
	return slices.Clone(r)
}

// uniform draws from a range.
func uniform(r *rand.Rand, ends []float64) float64 { return ends[0] + (ends[1]-ends[0])*r.Float64() }

// A factorRange is the range of a factor, and the bounds of its ends.
type factorRange struct {
	name            string
	ends            []float64
	lowest, highest float64
}

// checkRanges returns an error unless each range is one, within its bounds.
func checkRanges(ranges ...factorRange) error {
	for _, r := range ranges {
		if len(r.ends) != 2 || !(r.ends[0] <= r.ends[1]) {
			return fmt.Errorf("%s is %v: a range is [low, high]", r.name, r.ends)
		}
		if r.ends[0] < r.lowest || r.ends[1] > r.highest {
			return fmt.Errorf("%s is %v: it must be within %g to %g", r.name, r.ends, r.lowest, r.highest)
		}
	}
	return nil
}

// checkAccess returns an error if sample i of n does not exist or the context is done.
func checkAccess(ctx context.Context, source string, i, n int) error {
	if i < 0 || i >= n {
		return fmt.Errorf("%s: there is no sample %d: they are numbered 0 to %d", source, i, n-1)
	}
	return ctx.Err()
}

// syntheticFingerprint returns the fingerprint of a synthetic data set: a hash of its name and its
// options, and of the version of the code that draws its samples.
func syntheticFingerprint(source string, version int, options any) string {
	text, err := json.Marshal(options)
	if err != nil {
		// Only NaN and infinities cannot be encoded, and the sources have rejected them.
		panic(fmt.Sprintf("dataset: options of %s do not encode: %v", source, err))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", source, version, text))
	return hex.EncodeToString(sum[:])
}
