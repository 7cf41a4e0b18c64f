package spec

import (
	"slices"
)

// Reduced returns a small version of the study for estimating the cost of the whole: at most the
// given number of samples of each data set, the first transformation with its first value, and one
// trial. Of data that are Stratified it takes random samples.
func (s *Study) Reduced(samples int) *Study {
	out := *s
	out.Data = slices.Clone(s.Data)
	for i := range out.Data {
		d := &out.Data[i]
		if d.Limit == 0 || d.Limit > samples { // 0: all samples
			d.Limit, d.Shuffle, d.Stratified = samples, d.Shuffle || d.Stratified, false
		}
		d.Fingerprint = "" // that of s is a hash of all its samples
	}
	if len(s.Transforms) > 0 {
		t := s.Transforms[0]
		t.Cells = t.Cells[:1] // Cells has an element for each value
		out.Transforms = []Transform{t}
	}
	out.Trials = 1
	// Batch is 0 where the memory decides.
	if largest := max(1, samples/4); out.Batch == 0 || out.Batch > largest {
		out.Batch = largest // at least four batches, because the first includes one-time initialisation
	}
	return &out
}
