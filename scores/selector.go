package scores

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Selector names one score of each model on each data set, as a user writes it:
//
//	MEASURE.STATISTIC[@TRANSFORM[=PARAMETER]][/LAYER]
//
// for instance effective-invariance.ei@rotation, accuracy.clean,
// seis.equivariance@shift=0.25/relu3. What is left out matches everything, as long as that leaves
// one score; where a score was repeated or has several values of a parameter, the mean over them is
// meant.
type Selector struct {
	Measure, Statistic   string
	Transform, Parameter string // "": any
	Layer                string // "": any
}

// ParseSelector reads a selector.
func ParseSelector(text string) (Selector, error) {
	rest, layer, _ := strings.Cut(text, "/")
	rest, where, at := strings.Cut(rest, "@")
	name, statistic, ok := strings.Cut(rest, ".")
	transform, parameter, _ := strings.Cut(where, "=")
	if !ok || name == "" || statistic == "" || at && transform == "" {
		return Selector{}, fmt.Errorf("%q names no score: write MEASURE.STATISTIC, MEASURE.STATISTIC@TRANSFORM or "+
			"MEASURE.STATISTIC@TRANSFORM=PARAMETER, for instance effective-invariance.ei@rotation", text)
	}
	return Selector{Measure: name, Statistic: statistic, Transform: transform, Parameter: parameter, Layer: layer}, nil
}

// String is the selector as ParseSelector reads it.
func (s Selector) String() string {
	text := s.Measure + "." + s.Statistic
	if s.Transform != "" {
		text += "@" + s.Transform
		if s.Parameter != "" {
			text += "=" + s.Parameter
		}
	}
	if s.Layer != "" {
		text += "/" + s.Layer
	}
	return text
}

// Select returns the rows that the selector names, at most one for each model and data set, in the
// order of the rows. Rows that concern a class or a factor are passed over. It fails where nothing
// matches, saying what there is, and where a model and a data set have several different matches,
// saying which.
func (s Selector) Select(rows []Row) ([]Row, error) {
	matching := s.matching(rows)
	if len(matching) == 0 {
		return nil, fmt.Errorf("no score is %s; there are %s", s, strings.Join(available(rows), ", "))
	}
	matching = prefer(matching, func(r Row) bool { return r.Trial == MeanOverTrials })
	if s.Parameter == "" {
		matching = prefer(matching, func(r Row) bool { return r.Parameter == "" })
	}
	var out []Row
	for _, r := range matching {
		i := slices.IndexFunc(out, func(o Row) bool { return sameSubject(o, r) })
		switch {
		case i < 0:
			out = append(out, r)
		case !Nearly(out[i].Value, r.Value): // the clean accuracy stands beside every transformation: that is no conflict
			return nil, fmt.Errorf("%s names several scores of model %s on %s: %s and %s; say which",
				s, r.Model, r.Data, selectorOf(out[i]), selectorOf(r))
		}
	}
	return out, nil
}

func (s Selector) matching(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		if r.Measure == s.Measure && r.Statistic == s.Statistic && r.Variant == "" && r.Factor == "" &&
			(s.Transform == "" || r.Transform == s.Transform) && (s.Parameter == "" || r.Parameter == s.Parameter) &&
			(s.Layer == "" || r.Layer == s.Layer) {
			out = append(out, r)
		}
	}
	return out
}

// prefer keeps, of the rows on one subject and transformation, those that are good, if there are
// any.
func prefer(rows []Row, good func(Row) bool) []Row {
	type group struct{ model, other, data, transform, layer string }
	of := func(r Row) group { return group{r.Model, r.OtherModel, r.Data, r.Transform, r.Layer} }
	better := map[group]bool{}
	for _, r := range rows {
		better[of(r)] = better[of(r)] || good(r)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return better[of(r)] && !good(r) })
}

// Nearly tells equal values whose means were rounded from different ones.
func Nearly(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) || math.IsNaN(a) && math.IsNaN(b)
}

func sameSubject(a, b Row) bool {
	return a.Model == b.Model && a.OtherModel == b.OtherModel && a.Data == b.Data
}

func selectorOf(r Row) Selector {
	return Selector{Measure: r.Measure, Statistic: r.Statistic, Transform: r.Transform, Parameter: r.Parameter, Layer: r.Layer}
}

// available lists the scores without their transformations and layers.
func available(rows []Row) []string {
	var out []string
	for _, r := range rows {
		if name := r.Measure + "." + r.Statistic; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
