package report

import (
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Measures holds the descriptors of the measures of some rows, in display order. Each descriptor
// has only the statistics that the rows contain.
type Measures []measure.Descriptor

// Describe returns the descriptors of the measures in rows. known holds the descriptors from the
// run's record. A measure or statistic without a descriptor comes last, with its own name as title,
// no range and no direction.
func Describe(rows []scores.Row, known []measure.Descriptor) Measures {
	statistics := make(map[string][]string)
	var measures, names numbering[string] // numbers by first appearance
	seen := make(map[[2]int]bool)
	for i := range rows {
		r := &rows[i]
		if pair := [2]int{measures.of(r.Measure), names.of(r.Statistic)}; !seen[pair] {
			seen[pair] = true
			statistics[r.Measure] = append(statistics[r.Measure], r.Statistic)
		}
	}
	var found Measures
	for _, d := range known {
		if present := statistics[d.Name]; present != nil {
			found = append(found, restricted(d, present))
			delete(statistics, d.Name)
		}
	}
	for _, name := range scores.DistinctValues(rows, byMeasure) {
		if present := statistics[name]; present != nil {
			found = append(found, restricted(measure.Descriptor{Name: name, Title: name}, present))
		}
	}
	return found
}

// restricted returns a descriptor with only the statistics present: first the described ones, then
// the others.
func restricted(d measure.Descriptor, present []string) measure.Descriptor {
	left := make(map[string]bool, len(present))
	for _, name := range present {
		left[name] = true
	}
	described := d.Statistics
	d.Statistics = nil
	for _, s := range described {
		if left[s.Name] {
			d.Statistics = append(d.Statistics, s)
			delete(left, s.Name)
		}
	}
	for _, name := range present {
		if left[name] {
			d.Statistics = append(d.Statistics, measure.StatisticDescriptor{Name: name, Title: name, Range: measure.AnyNumber})
		}
	}
	return d
}

// Headline returns the statistics of a measure that an overview shows: those with a direction, or
// all if none has one.
func Headline(d measure.Descriptor) []measure.StatisticDescriptor {
	var directed []measure.StatisticDescriptor
	for _, s := range d.Statistics {
		if s.Direction != measure.Neutral {
			directed = append(directed, s)
		}
	}
	if directed == nil {
		return d.Statistics
	}
	return directed
}

// Headlines returns the pairs of measure and statistic that Headline and AcrossLayers select for
// each measure of rows.
func Headlines(rows []scores.Row, known []measure.Descriptor) map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, m := range Describe(rows, known) {
		for _, s := range AcrossLayers(Headline(m)) {
			out[[2]string{m.Name, s.Name}] = true
		}
	}
	return out
}

// Statistic returns the descriptor of the statistic of a row, which has only a name if m does not
// describe it.
func (m Measures) Statistic(r *scores.Row) measure.StatisticDescriptor {
	i := slices.IndexFunc(m, func(d measure.Descriptor) bool { return d.Name == r.Measure })
	if i >= 0 {
		if s, ok := m[i].Statistic(r.Statistic); ok {
			return s
		}
	}
	return measure.StatisticDescriptor{Name: r.Statistic, Title: r.Statistic, Range: measure.AnyNumber}
}

// ModelLabel returns the model of a row, or both models of a comparison: "a → b" if the measure is
// directional (its scores change if the models are exchanged), otherwise "a and b".
func (m Measures) ModelLabel(r *scores.Row) string {
	switch {
	case r.OtherModel == "":
		return r.Model
	case r.OtherModel == r.Model:
		return r.Model + " with itself"
	case slices.ContainsFunc(m, func(d measure.Descriptor) bool { return d.Name == r.Measure && d.Directional() }):
		return r.Model + " → " + r.OtherModel
	}
	return r.Model + " and " + r.OtherModel
}
