package report

import (
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Section is a part of a report: a measure, or one of the two questions of a measure that
// compares representations: of x and T(x), or of two models.
type Section struct {
	measure.Descriptor
	Key string // the name of the measure, with "-between" for the second of two sections

	divided bool // the measure has two sections
	between bool // of those, the one that compares two models
}

// Has reports whether a row belongs to the section.
func (s Section) Has(r *scores.Row) bool {
	return r.Measure == s.Name && (!s.divided || s.between == (r.OtherModel != ""))
}

// Of returns the rows of the section. If all rows belong to the section, they are not copied, since
// a study may have hundreds of thousands.
func (s Section) Of(rows []scores.Row) []scores.Row {
	n := 0
	for i := range rows {
		if s.Has(&rows[i]) {
			n++
		}
	}
	if n == len(rows) {
		return rows[:n:n]
	}
	out := slices.Grow([]scores.Row(nil), n)
	for i := range rows {
		if s.Has(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	return out
}

// Sections returns the sections of a report of the rows, in display order. known holds the
// descriptors of the measures that the run recorded.
func Sections(rows []scores.Row, known []measure.Descriptor) []Section {
	type kinds struct{ alone, between bool } // the measure has rows of one model, of two models
	kindsOf := map[string]kinds{}
	var last *scores.Row
	for i := range rows {
		r := &rows[i]
		if last != nil && r.Measure == last.Measure && r.OtherModel == last.OtherModel {
			continue
		}
		k := kindsOf[r.Measure]
		kindsOf[r.Measure] = kinds{k.alone || r.OtherModel == "", k.between || r.OtherModel != ""}
		last = r
	}
	var out []Section
	for _, d := range Describe(rows, known) {
		if kindsOf[d.Name] != (kinds{true, true}) {
			s := Section{Descriptor: d, Key: d.Name}
			if kindsOf[d.Name].between && d.Between != "" {
				s.ofModels(rows)
			}
			out = append(out, s)
			continue
		}
		alone, between := Section{d, d.Name, true, false}, Section{d, d.Name + "-between", true, true}
		alone.Title += ": x against T(x)"
		if d.Between != "" {
			between.ofModels(rows)
		} else {
			between.Title += ": between models"
		}
		for _, s := range []Section{alone, between} {
			own := s.Of(rows)
			s.Statistics = slices.DeleteFunc(slices.Clone(s.Statistics), func(t measure.StatisticDescriptor) bool {
				return !slices.ContainsFunc(own, func(r scores.Row) bool { return r.Statistic == t.Name })
			})
			out = append(out, s)
		}
	}
	return out
}

// ofModels words a section for a measure that also compares x with T(x): its texts say that the two
// vectors are of two models, and which, if there is one pair with short names.
func (s *Section) ofModels(rows []scores.Row) {
	const longest = 24 // characters of both names, which stand on axes
	s.Title, s.Question = s.Title+": between models", s.Between
	pairs := scores.DistinctValues(slices.DeleteFunc(slices.Clone(s.Of(rows)), func(r scores.Row) bool { return r.Measure != s.Name || r.OtherModel == "" }),
		func(r *scores.Row) string { return r.Model + " and " + r.OtherModel })
	of := " between models"
	if len(pairs) == 1 && len(pairs[0]) <= longest {
		of = " between " + pairs[0]
	}
	s.Statistics = slices.Clone(s.Statistics)
	for i := range s.Statistics {
		s.Statistics[i].Title += of
	}
}
