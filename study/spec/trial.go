package spec

import (
	"slices"
)

// Trial is the study cut down to so many samples of each data set, the first value of the first
// transformation and one trial: what it takes tells what the whole takes.
func (s *Study) Trial(samples int) *Study {
	out := *s
	out.Data = slices.Clone(s.Data)
	for i := range out.Data {
		d := &out.Data[i]
		if d.Limit == 0 || d.Limit > samples {
			d.Limit, d.Shuffle, d.Stratified = samples, d.Shuffle || d.Stratified, false
		}
		d.Fingerprint = "" // which is that of all samples
	}
	if len(s.Transforms) > 0 {
		t := s.Transforms[0]
		t.Cells = t.Cells[:1]
		out.Transforms = []Transform{t}
	}
	out.Trials = 1
	if most := max(1, samples/4); out.Batch == 0 || out.Batch > most {
		out.Batch = most // so that there are batches to tell apart from the first, which prepares
	}
	return &out
}
