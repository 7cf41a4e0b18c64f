package measuretest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/tensor"
)

// A Case is a measure with data to test it. The sample at place p is row p. If the site has a
// transform, an Op is drawn for each sample.
type Case struct {
	Measure     measure.Measure
	Site        measure.Site
	Clean       tensor.Tensor    // activations on the untransformed samples: Layout.N x ...
	Transformed tensor.Tensor    // those on the transformed samples, of the same shape, or empty
	Label       []int            // nil: no labels
	Truth       []*decoded.Truth // labelled boxes or masks; nil: none
	// Tolerance is the largest difference of two scores, relative beyond 1; 0: 1e-9.
	Tolerance float64
}

// Run checks the case. The layout should have several blocks, the last of them incomplete. A pass
// should take milliseconds, since Run makes some hundreds.
func Run(t *testing.T, c Case) {
	t.Helper()
	contract{layout: c.Site.Layout, cost: c.Measure.Cost(c.Site), tolerance: c.Tolerance, open: func() (subject, error) {
		acc, err := c.Measure.New(c.Site)
		return &siteSubject{acc, c}, err
	}}.check(t)
}

type siteSubject struct {
	measure.Accumulator
	c Case
}

func (s *siteSubject) update(places []int) error {
	b := &measure.Batch{Clean: rows(s.c.Clean, places), Transformed: rows(s.c.Transformed, places)}
	b.Place, b.Index, b.Label = identify(s.c.Site.Layout, s.c.Label, places)
	if t := s.c.Site.Motion; t != nil {
		for _, p := range places {
			b.Motions = append(b.Motions, t(rand.New(rand.NewPCG(uint64(p), 1))))
		}
	}
	for _, p := range places {
		if s.c.Truth != nil {
			b.Truth = append(b.Truth, s.c.Truth[p])
		}
	}
	err := s.Update(b)
	overwrite([][]int{b.Place, b.Index, b.Label}, b.Clean, b.Transformed)
	return err
}

func (s *siteSubject) merge(other subject) error {
	return s.Merge(other.(*siteSubject).Accumulator)
}

func (s *siteSubject) scores() ([]measure.PairScore, error) {
	scores, err := s.Scores()
	var out []measure.PairScore
	for _, one := range scores {
		out = append(out, measure.PairScore{Score: one})
	}
	return out, err
}

func (s *siteSubject) samples() []measure.SampleScore {
	if sampler, ok := s.Accumulator.(measure.Sampler); ok {
		return sampler.Samples()
	}
	return nil
}

func identify(l measure.Layout, labels, places []int) (place, index, label []int) {
	for _, p := range places {
		// Any one-to-one map of places to indices will do.
		index = append(index, 2*(l.N-p))
		if labels == nil {
			label = append(label, measure.NoLabel)
		} else {
			label = append(label, labels[p])
		}
	}
	return slices.Clone(places), index, label
}

func rows(t tensor.Tensor, places []int) tensor.Tensor {
	if t.Len() == 0 {
		return tensor.Tensor{}
	}
	shape := slices.Clone(t.Shape)
	shape[0] = len(places)
	out := tensor.New(shape...)
	for i, p := range places {
		copy(out.At(i).Data, t.At(p).Data)
	}
	return out
}

// overwrite overwrites a batch, whose memory is valid during Update only.
func overwrite(ints [][]int, tensors ...tensor.Tensor) {
	for _, t := range tensors {
		for i := range t.Data {
			t.Data[i] = 1e30
		}
	}
	for _, list := range ints {
		for i := range list {
			list[i] = -12345
		}
	}
}
