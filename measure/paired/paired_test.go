package paired

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// difference returns a Spec, the description of a measure, with one column: the difference of the
// first values of the two views. The clean view of a sample is the activation for the input, the
// transformed view that for the transformed input. The null, the score that chance gives, is the
// mean over shuffled pairs: views of different samples.
func difference() *Spec {
	return &Spec{
		Descriptor: measure.Descriptor{Name: "difference", Statistics: []measure.StatisticDescriptor{
			{Name: "d", Range: measure.AnyNumber, Null: "shuffled pairs"},
		}},
		StateVersion: 1, PerClass: true,
		Columns: []Column{{Statistic: "d", Sample: "d", Transformed: true}},
		Pair: func(out []float64, _ int, clean, transformed []float32) error {
			out[0] = float64(transformed[0] - clean[0])
			return nil
		},
	}
}

// accumulate returns an accumulator after an update with some samples. A value is 0 in the clean
// view and 10^place in the transformed view, so the decimal digits of a sum tell which samples it
// has. Its class is even or odd, as its place.
func accumulate(t testing.TB, site measure.Site, places ...int) *accumulator {
	t.Helper()
	a := newAccumulator(difference(), site)
	b := &measure.Batch{Clean: tensor.New(len(places), 1), Transformed: tensor.New(len(places), 1)}
	for i, p := range places {
		b.Place, b.Index, b.Label = append(b.Place, p), append(b.Index, p), append(b.Label, p%2)
		b.Clean.Data[i], b.Transformed.Data[i] = 0, float32(math.Pow10(p))
	}
	if err := a.Update(b); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestNullPairs checks the shuffled pairs. A clean sample is paired with the transformed one that
// comes next in its block, and the last of a block with the first. A pair counts for the class of
// the clean sample. The first score is that of all samples, the others those of the classes.
func TestNullPairs(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layout: measure.Layout{N: 7, Block: 3, Groups: 3}, Classes: []string{"even", "odd"}}
	for _, c := range []struct {
		name      string
		places    []int
		even, odd float64 // sums of the transformed values in the pairs of each class
	}{
		{"all", []int{0, 1, 2, 3, 4, 5, 6}, 1e1 + 1e0 + 1e5, 1e2 + 1e4 + 1e3}, // 6 is alone in its block, so it has no pair
		{"1 and 6 are missing", []int{0, 2, 3, 4, 5}, 1e2 + 1e0 + 1e5, 1e4 + 1e3},
		{"2 and 6 are missing", []int{0, 1, 3, 4, 5}, 1e1 + 1e5, 1e0 + 1e4 + 1e3},
		{"one in each block", []int{1, 5}, 0, 0},
	} {
		scores, err := accumulate(t, site, c.places...).Scores()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{"class=even": c.even, "class=odd": c.odd}
		for _, s := range scores[1:] {
			n := 0 // number of pairs of the class
			for _, p := range c.places {
				if map[int]string{0: "class=even", 1: "class=odd"}[p%2] == s.Factor && (p != 6 && c.name != "one in each block") {
					n++
				}
			}
			if n == 0 {
				if !math.IsNaN(s.Null) {
					t.Errorf("%s, %s: null %v of no pairs, want NaN", c.name, s.Factor, s.Null)
				}
			} else if math.Abs(s.Null*float64(n)-want[s.Factor]) > 1e-6 {
				t.Errorf("%s, %s: the pairs of the null add up to %v, want %v", c.name, s.Factor, s.Null*float64(n), want[s.Factor])
			}
		}
	}
}

// The layout of a site divides the samples into blocks, and these into the groups of a jackknife.
// States (serialised accumulators) with another layout or other classes are refused, and so are
// those without the values of single samples if the site asks for these (KeepSamples).
func TestStatesOfOtherSites(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layout: measure.Layout{N: 7, Block: 3, Groups: 3}, Classes: []string{"even", "odd"}}
	a := accumulate(t, site, 0, 1)
	state, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*measure.Site){
		"groups":  func(s *measure.Site) { s.Layout.Groups = 2 },
		"classes": func(s *measure.Site) { s.Classes = nil },
		"blocks":  func(s *measure.Site) { s.Layout.Block = 1 },
		"samples": func(s *measure.Site) { s.KeepSamples = true },
	} {
		other := site
		change(&other)
		b := newAccumulator(difference(), other)
		if b.UnmarshalBinary(state) == nil {
			t.Errorf("%s: UnmarshalBinary accepted the state of another site", name)
		}
		if name != "samples" && b.Merge(a) == nil {
			t.Errorf("%s: Merge accepted an accumulator of another site", name)
		}
	}
	if accumulate(t, site, 1).Merge(a) == nil {
		t.Error("Merge accepted two states with samples of the same block")
	}
}

// TestMergeWithoutNull checks that a merged state has no null, and a warning, if one shard had no
// memory for the null.
func TestMergeWithoutNull(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layout: measure.Layout{N: 7, Block: 3, Groups: 3}, Classes: []string{"even", "odd"}}
	small := site
	small.Budget = 1 // byte
	a, b := accumulate(t, site, 0, 1, 2), accumulate(t, small, 3, 4, 5)
	if err := a.Merge(b); err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	if s := scores[0]; s.N != 6 || !math.IsNaN(s.Null) || len(s.Warnings) != 1 {
		t.Errorf("%+v, want the mean of 6 samples without a null, and a warning", s)
	}
}

// FuzzState checks that no state causes a panic. The fuzzer changes the payload. The test adds a
// valid checksum, without which every state would be refused.
func FuzzState(f *testing.F) {
	site := measure.Site{Layout: measure.Layout{N: 7, Block: 3, Groups: 3}, Classes: []string{"even", "odd"}, KeepSamples: true}
	state, err := accumulate(f, site, 0, 1, 2, 3).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state[:len(state)-crc32.Size])
	f.Fuzz(func(t *testing.T, body []byte) {
		data := binary.LittleEndian.AppendUint32(body[:len(body):len(body)], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		a := newAccumulator(difference(), site)
		if a.UnmarshalBinary(data) != nil {
			return
		}
		a.Scores()
		a.Samples()
		if err := a.Merge(accumulate(t, site, 6)); err == nil {
			a.Scores()
		}
	})
}
