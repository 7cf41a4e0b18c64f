package parity

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
)

// A Verdict says where two models part.
type Verdict struct {
	Begins *Layer // the first layer whose relative l2 distance exceeds the tolerance; nil: none does
	// Worst are the layers with an error of their own, the largest first: the local one or, where it
	// is not known, the accumulated one beyond what the inputs bring.
	Worst []*Layer
	// Leave are the first layers of Worst that make up half the sum of the squared errors; empty if
	// the other model is not quantised.
	Leave []*Layer
	// Nodes are the names of the original's nodes in Leave, as nodes_to_exclude of onnxruntime's
	// quantiser takes them. Unnamed counts those without a name.
	Nodes   []string
	Unnamed int
}

// Value returns the value of a statistic, NaN without one.
func Value(of []measure.Score, statistic string) float64 { return Score(of, statistic).Value }

// Score returns the score of a statistic, NaN without one.
func Score(of []measure.Score, statistic string) measure.Score {
	if i := slices.IndexFunc(of, func(s measure.Score) bool { return s.Statistic == statistic }); i >= 0 {
		return of[i]
	}
	return measure.Plain(statistic, math.NaN(), 0)
}

// Brought returns the largest relative l2 distance of the layers that a layer reads, 0 if it reads
// the model's input alone.
func (r *Result) Brought(l *Layer) float64 {
	brought := 0.
	for _, in := range r.Layers {
		if v := Value(in.Accumulated, RelativeL2); slices.Contains(l.Inputs, in.Original.Name) && !math.IsNaN(v) {
			brought = max(brought, v)
		}
	}
	return brought
}

// Own returns the error that a layer adds: see Verdict.Worst. It is infinite if the other model's
// values are not finite.
func (r *Result) Own(l *Layer) float64 {
	switch {
	case r.NoLocal == "" && l.Local != nil:
		return Value(l.Local, RelativeL2)
	case l.Accumulated != nil:
		return max(0, Value(l.Accumulated, RelativeL2)-r.Brought(l))
	}
	return math.Inf(1)
}

// Judge returns the verdict for a tolerance of relative l2 distances. Quantised says that the other
// model is quantised.
func (r *Result) Judge(tolerance float64, quantised bool) Verdict {
	var v Verdict
	sum := 0.
	for i := range r.Layers {
		l := &r.Layers[i]
		if d := Value(l.Accumulated, RelativeL2); v.Begins == nil && (d > tolerance || l.Accumulated == nil || math.IsNaN(d)) {
			v.Begins = l
		}
		if own := r.Own(l); own > 0 {
			v.Worst = append(v.Worst, l)
			if !math.IsInf(own, 0) {
				sum += own * own
			}
		}
	}
	slices.SortStableFunc(v.Worst, func(a, b *Layer) int { return cmp.Compare(r.Own(b), r.Own(a)) })
	if !quantised {
		return v
	}
	half := 0.
	for _, l := range v.Worst {
		if half >= sum/2 && half > 0 {
			break
		}
		if own := r.Own(l); !math.IsInf(own, 0) {
			half += own * own
		}
		v.Leave = append(v.Leave, l)
		for _, n := range l.Nodes {
			if !slices.Contains(v.Nodes, n) {
				v.Nodes = append(v.Nodes, n)
			}
		}
		v.Unnamed += l.Unnamed
	}
	return v
}
