package main

import (
	"cmp"
	"fmt"

	"github.com/noether-ml/noether/papers/internal/tablefile"
)

// A finding is a statement of the paper (Nanda et al. 2022): that the first of two scores is
// larger. Their difference is computed for each of several independent pairs of networks; the i-th
// pair of one side, in the order of the seeds, is compared with the i-th of the other.
type finding struct {
	Item, Text   string // the table or figure of the paper, and what it says
	Table        string // the experiment with the scores
	Larger, Less side
	OtherTable   string // the experiment of Less, if that is another; ""
}

// A side is the mean of a column over some groups of a table. A group is a row of the table: the
// kinds of the two networks, and perhaps the layer, by default the penultimate one; or the kind of
// single networks.
type side struct {
	Of     string
	Groups [][]string
}

// penultimate is the name of the penultimate layer of the ResNets and VGGs of package train.
const penultimate = "Flatten"

// maxMissed is the largest fraction of images that an inversion may miss. The scores of one that
// misses more do not have the meaning of STIR (equation 2).
const maxMissed = 0.1

// findingRows returns the differences of the findings, with a verdict: seen if the interval is
// above 0, not seen if it is below 0, and open otherwise, if an inversion missed more than
// maxMissed, or if the two sides have other numbers of images, on which CKA depends. Findings without runs have their stored rows, if any.
func findingRows(runs map[string]groups, stored [][]string) [][]string {
	out := [][]string{{"item", "finding", "statistic", "value", "low", "high"}}
	for _, f := range tables.Findings {
		other := cmp.Or(f.OtherTable, f.Table)
		a, b := f.Larger.values(runs[f.Table]), f.Less.values(runs[other])
		if len(a) == 0 || len(a) != len(b) {
			out = append(out, beginning(stored, f.Item, f.Text)...)
			continue
		}
		for i := range a {
			a[i] -= b[i]
		}
		value, low, high := tablefile.Interval(a)
		verdict := "open"
		switch {
		case f.Larger.missed(runs[f.Table]) > maxMissed || f.Less.missed(runs[other]) > maxMissed:
			verdict = "open: missed"
		case imagesOf(f.Table) != imagesOf(other):
			verdict = "open: other images"
		case low > 0:
			verdict = "seen"
		case high < 0:
			verdict = "not seen"
		}
		cells := tablefile.Cells("%.3f", value, low, high)
		cells[0] = fmt.Sprintf("%+.3f", value)
		out = append(out,
			append([]string{f.Item, f.Text, "difference"}, cells...),
			[]string{f.Item, f.Text, "verdict", verdict, "", ""})
	}
	return out
}

// imagesOf returns the number of images of a trial of an experiment.
func imagesOf(name string) int {
	for _, e := range tables.Experiments {
		if e.Name == name {
			return e.Images
		}
	}
	return 0
}

// values returns the mean over the groups for each pair of networks, nil if a run lacks a group.
func (s side) values(g groups) []float64 {
	var out []float64
	for _, want := range s.Groups {
		other, layer := "", ""
		if len(want) > 1 {
			other, layer = want[1], append(want, penultimate)[2]
		}
		found := false
		for k, p := range g {
			if k.reference != want[0] || k.other != other || k.layer != layer {
				continue
			}
			v := p.values(tables.Columns[s.Of])
			if out == nil {
				out = make([]float64, len(v))
			}
			if len(v) != len(out) {
				return nil
			}
			for i := range v {
				out[i] += v[i] / float64(len(s.Groups))
			}
			found = true
		}
		if !found {
			return nil
		}
	}
	return out
}

// missed returns the largest mean fraction over the groups of the images that the inversion of the
// column missed.
func (s side) missed(g groups) float64 {
	var most float64
	if of := tables.Columns[s.Of].Missed; of != "" {
		for _, k := range s.Groups {
			mean, _, _ := tablefile.Interval(side{of, [][]string{k}}.values(g))
			most = max(most, mean)
		}
	}
	return most
}
