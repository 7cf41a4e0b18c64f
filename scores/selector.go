package scores

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Selector selects one score for each model and data set. A user writes it as
//
//	MEASURE.STATISTIC[@TRANSFORM[=PARAMETER]][/LAYER]
//
// for instance effective-invariance.ei@rotation, accuracy.clean,
// seis.equivariance@shift=0.25/relu3. An omitted part matches everything, provided that one score
// remains; of several trials or parameter values it is the mean.
type Selector struct {
	Measure, Statistic   string
	Transform, Parameter string // any if ""
	Layer                string // any if ""
}

// ParseSelector parses a selector.
func ParseSelector(text string) (Selector, error) {
	rest, layer, _ := strings.Cut(text, "/")
	rest, transformPart, hasTransform := strings.Cut(rest, "@")
	name, statistic, ok := strings.Cut(rest, ".")
	transform, parameter, _ := strings.Cut(transformPart, "=")
	if !ok || name == "" || statistic == "" || hasTransform && transform == "" {
		return Selector{}, fmt.Errorf("invalid score %q: write MEASURE.STATISTIC, MEASURE.STATISTIC@TRANSFORM or "+
			"MEASURE.STATISTIC@TRANSFORM=PARAMETER, for instance effective-invariance.ei@rotation", text)
	}
	return Selector{Measure: name, Statistic: statistic, Transform: transform, Parameter: parameter, Layer: layer}, nil
}

// String returns the selector in the form that ParseSelector reads.
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

// Select returns the selected rows in order, at most one for each model (or pair) and data set,
// without variants and factors. No match, and several for one model and data set, are errors.
func (s Selector) Select(rows []Row) ([]Row, error) {
	matching := s.matching(rows)
	if len(matching) == 0 {
		return nil, s.noMatch(rows)
	}
	matching = prefer(matching, func(r Row) bool { return r.Trial == MeanOverTrials })
	if s.Parameter == "" {
		matching = prefer(matching, func(r Row) bool { return r.Parameter == "" })
	}
	var out []Row
	for _, r := range matching {
		i := slices.IndexFunc(out, func(o Row) bool {
			return o.Model == r.Model && o.OtherModel == r.OtherModel && o.Data == r.Data
		})
		switch {
		case i < 0:
			out = append(out, r)
		case !ApproxEqual(out[i].Value, r.Value) && selectorOf(out[i]) == selectorOf(r):
			return nil, fmt.Errorf("model %s on %s has two values of %s: %.4g in study %q and %.4g in study %q; leave one run out, "+
				"or measure the models under different names", r.Model, r.Data, s, out[i].Value, out[i].Study, r.Value, r.Study)
		case !ApproxEqual(out[i].Value, r.Value): // equal values do not conflict: the clean accuracy is repeated for every transformation
			return nil, fmt.Errorf("%s matches several scores of model %s on %s: %s and %s; add what distinguishes them",
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

// noMatch returns the error that no row matches, with the scores that match up to the first part
// that none has.
func (s Selector) noMatch(rows []Row) error {
	known := available(rows)
	wider := Selector{Measure: s.Measure, Statistic: s.Statistic}
	for _, copyPart := range []func(to *Selector, from Selector){
		func(to *Selector, from Selector) { to.Transform = from.Transform },
		func(to *Selector, from Selector) { to.Parameter = from.Parameter },
		func(to *Selector, from Selector) { to.Layer = from.Layer },
	} {
		found := wider.matching(rows)
		if len(found) == 0 {
			break
		}
		known = DistinctValues(found, func(r *Row) string {
			one := wider
			copyPart(&one, selectorOf(*r))
			return one.String()
		})
		copyPart(&wider, s)
	}
	return fmt.Errorf("no score matches %s; available: %s", s, firstNames(known))
}

// prefer returns the preferred rows and, where a model, data set, transformation and layer has
// none, all.
func prefer(rows []Row, preferred func(Row) bool) []Row {
	type group struct{ model, other, data, transform, layer string }
	groupOf := func(r Row) group { return group{r.Model, r.OtherModel, r.Data, r.Transform, r.Layer} }
	hasPreferred := map[group]bool{}
	for _, r := range rows {
		hasPreferred[groupOf(r)] = hasPreferred[groupOf(r)] || preferred(r)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return hasPreferred[groupOf(r)] && !preferred(r) })
}

// ApproxEqual reports whether two values are equal up to rounding, 1e-12 of the larger; NaN equals
// NaN.
func ApproxEqual(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) || math.IsNaN(a) && math.IsNaN(b)
}

func selectorOf(r Row) Selector {
	return Selector{Measure: r.Measure, Statistic: r.Statistic, Transform: r.Transform, Parameter: r.Parameter, Layer: r.Layer}
}

// available returns the names of the scores as MEASURE.STATISTIC.
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
