// Package equivariance measures whether a layer's feature maps move as the input does.
//
// Let f(x) be the feature maps of a layer and T a transformation of the input. T also acts on the
// maps, as tau: a translation by a tenth of the image is a translation by a tenth of the map, and
// angles stay. Per sample, with norms over channels and positions,
//
//	relative-error  |f(Tx) - tau f(x)| / |tau f(x)|        0: the maps move as the input does
//	cosine          <f(Tx), tau f(x)> / (|f(Tx)| |tau f(x)|)
//	floor           |tau^-1 tau f(x) - f(x)| / |f(x)|      what resampling alone costs
//
// and the scores are means over samples. The statistics are of the family of Kvinge et al. 2022
// (G-empirical equivariance deviation). The tests of the libraries escnn and e3nn use them too.
//
// Quarter turns of square maps, flips and translations by whole positions are exact: tau copies
// single values, and the floor is 0. Otherwise tau interpolates as the transformation of the input
// did. For a sequence of transformations tau composes their moves of positions, and interpolates
// once. For a transformation that moves no positions, such as a change of colour or a corruption,
// tau is the identity; the error is then one of invariance.
//
// The sums are over the positions that count, the same for all three statistics. A position p
// counts if three positions lie inside the map without its margin: p, the position from which tau
// reads p, and the position to which tau moves p. So no value from outside the map enters tau f(x).
// For the floor, tau^-1 may read values of tau f(x) that would come from outside the map; the
// nearest value inside is used instead. A translation with the setting outside: wrap is a circular
// shift, for which every position counts.
//
// A sample with tau f(x) = 0 has error 0 and cosine 1 if f(Tx) = 0 too, else error 1 and cosine 0.
// The null pairs tau f(x) with f(Tx) of another sample.
//
// Between returns the statistics of one sample:
//
//	maps, _ := layer.Maps()
//	e, err := equivariance.Between(maps, move, equivariance.Settings{}, clean, transformed)
package equivariance

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/action"
	"github.com/noether-ml/noether/measure/paired"
	"github.com/noether-ml/noether/tensor"
)

// Settings configure the measure.
type Settings struct {
	Margin   float64  `key:"margin" json:"margin" default:"0" min:"0" max:"0.45" doc:"fraction of the sides of a map that is left out at its border"`
	Channels Channels `key:"channels" json:"channels" doc:"how the channels of group convolutions are permuted; by default they stay"`
	PerClass bool     `key:"per-class" json:"per-class" default:"false" doc:"also compute scores for each class of labels"`
}

// Channels is the action of rotations by multiples of 360 / n degrees on channels, their regular
// representation. Channels form fields of n (as in escnn), and one step moves channel c of a field
// to c + 1.
type Channels struct {
	Cyclic int    `key:"cyclic" json:"cyclic" default:"1" min:"1" max:"360" doc:"number n of rotations of the group; 1: channels stay. Layers whose channels are not a multiple of n keep them"`
	Order  string `key:"order" json:"order" default:"inner" enum:"inner|outer" doc:"inner: the n channels of a field follow each other, as in escnn; outer: all fields of one rotation follow each other"`
	Sense  string `key:"sense" json:"sense" default:"forward" enum:"forward|backward" doc:"forward: a counter-clockwise rotation moves channel c to c + 1; backward: to c - 1"`
}

const (
	relativeError = iota
	cosine
	floor
	columns // number of the columns above
)

// New returns the measure equivariance-error. Its per-sample values have the names of its
// statistics.
func New(s Settings) measure.Measure {
	s.Channels.Cyclic = cmp.Or(s.Channels.Cyclic, 1)
	column := func(name string) paired.Column {
		return paired.Column{Statistic: name, Sample: name, Transformed: true}
	}
	fields := &action.Cache{} // of moves of positions; not the fields of Channels
	return paired.New(paired.Spec{
		Descriptor: Descriptor(), Version: 1, StateVersion: 1, Settings: s, PerClass: s.PerClass, Needs: measure.Needs{Transformed: true},
		Columns: []paired.Column{relativeError: column("relative-error"), cosine: column("cosine"), floor: column("floor")},
		Skip:    func(site measure.Site) string { return skip(site, s) },
		Action:  func(site measure.Site) (paired.Action, error) { return newAction(site.Layer, s, fields) },
		LeftOut: "no position lies inside the map before and after the transformation",
	})
}

// skip returns why tau is not known at a site, or "". It judges T by one draw.
func skip(site measure.Site, s Settings) string {
	maps, why := site.Layer.Maps()
	if why != "" {
		return why
	}
	if site.Motion == nil {
		return "how positions move from x to T(x) is not known where the data are pairs"
	}
	h, w, plane := maps.Size()
	p, ok := measure.PointMapOf(site.Motion(rand.New(rand.NewPCG(1, 1))), h, w)
	switch {
	case !ok:
		return "the transformation stretches time, and its action on maps is not defined"
	case p.Fixed():
		return ""
	case !plane:
		return "its positions are not on a grid of rows and columns"
	}
	if _, err := s.Channels.shift(p); err != nil {
		return err.Error()
	}
	return ""
}

// shift returns the number of steps of the channels, within 0 to Cyclic - 1. It is an error if p
// does not rotate by an angle of the group.
func (c Channels) shift(p measure.PointMap) (int, error) {
	if c.Cyclic <= 1 || p.Fixed() {
		return 0, nil
	}
	degrees, ok := p.Turn()
	steps := degrees * float64(c.Cyclic) / 360
	if !ok || math.Abs(steps-math.Round(steps)) > 1e-6 {
		return 0, fmt.Errorf("channels: {cyclic: %d} is defined for rotations by multiples of %.4g degrees and for translations, not for this transformation", c.Cyclic, 360/float64(c.Cyclic))
	}
	n := int(math.Round(steps)) % c.Cyclic
	if c.Sense == "backward" {
		n = (c.Cyclic - n) % c.Cyclic
	}
	return n, nil
}

// destinations returns where n channels are moved by some steps, nil if all stay.
func (c Channels) destinations(n, steps int) []int32 {
	if steps == 0 || n%c.Cyclic != 0 {
		return nil
	}
	out := make([]int32, n)
	fields := n / c.Cyclic
	for i := range out {
		field, member := i/c.Cyclic, i%c.Cyclic
		if c.Order == "outer" {
			field, member = i%fields, i/fields
		}
		member = (member + steps) % c.Cyclic
		if c.Order == "outer" {
			out[i] = int32(member*fields + field)
		} else {
			out[i] = int32(field*c.Cyclic + member)
		}
	}
	return out
}

// An Errors holds the statistics of one sample.
type Errors struct {
	RelativeError, Cosine, Floor float64
}

// Between returns the statistics of one sample: f(x) and f(Tx) are the values of a layer with the
// given maps. It is an error if no position counts.
func Between(maps tensor.Maps, move measure.Motion, s Settings, clean, transformed []float32) (Errors, error) {
	s.Channels.Cyclic = cmp.Or(s.Channels.Cyclic, 1)
	a := &layerAction{maps: maps, settings: s, fields: &action.Cache{}}
	row, out := make([]float32, a.Len()), make([]float64, columns)
	if err := a.Act(row, out, clean, move); err != nil {
		return Errors{}, err
	}
	err := a.Pair(out, row, transformed)
	return Errors{out[relativeError], out[cosine], out[floor]}, err
}

// Act returns tau f(x) of one sample, for figures: f(x) are the values of a layer with the given
// maps. The result has the values of the positions in the layer's order, without those before the
// first position. counted says which positions count; others may hold values from outside the map.
// It is an error if none does.
func Act(maps tensor.Maps, move measure.Motion, s Settings, clean []float32) (acted []float32, counted []bool, err error) {
	s.Channels.Cyclic = cmp.Or(s.Channels.Cyclic, 1)
	a := &layerAction{maps: maps, settings: s, fields: &action.Cache{}}
	row := make([]float32, a.Len())
	if err := a.Act(row, make([]float64, columns), clean, move); err != nil {
		return nil, nil, err
	}
	n := maps.Channels * maps.Positions()
	counted = make([]bool, maps.Positions())
	for i, v := range row[n:] {
		counted[i] = v != 0
	}
	return row[:n], counted, nil
}
