package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

const (
	minLoss  = 0.1 // smallest change over depth that is reported
	recovery = 0.5 // share of a loss that a curve regains by its end to count as a dip
)

// depthChange returns a sentence on how the first statistic of the curves over depth becomes worse
// in each model, and by which layer. It is of the first transformation of the study under which it
// does, since the first screen shows the curves of the first transformation.
func depthChange(rows []scores.Row, rec scores.Record, replicates *Replicates) Sentence {
	panels := CurvePanels(rows, rec.Measures)
	if len(panels) == 0 {
		return nil
	}
	sections := Sections(rows, rec.Measures)
	section := sections[slices.IndexFunc(sections, func(s Section) bool { return s.Key == panels[0].Section })]
	branch := Branches(rec.Models)
	shown := slices.DeleteFunc(section.Of(Overview(rows)), func(r scores.Row) bool { return branch(&r) })
	about, _ := section.Statistic(panels[0].Statistic)
	if about.Direction == measure.Neutral {
		return nil
	}
	for _, models := range byCase(SeriesOf(shown, section.Descriptor, about.Name)) {
		var lost []loss
		var steady []string // models whose curves do not clearly become worse
		for _, s := range models {
			l, ok := lossOf(s, about.Direction)
			if ok && replicates.evidence(&l.first, &l.worst) != insignificant {
				lost = append(lost, l)
			} else if len(s.Rows) > 1 {
				steady = append(steady, s.Model)
			}
		}
		if len(lost) > 0 {
			several := len(distinct(shown, byModel)) > 1
			return lossSentence(about, lost, steady, several, NewPlaces(section.Of(rows)))
		}
	}
	return nil
}

// lossSentence describes losses under one transformation, at most those of maxNamed models. Models
// without a clear loss are named if there is room for all.
func lossSentence(about measure.StatisticDescriptor, lost []loss, steady []string, several bool, places Places) Sentence {
	falls, dips, extreme := "falls", "dips", "lowest"
	if about.Direction == measure.Lower {
		falls, dips, extreme = "rises", "peaks", "highest"
	}
	start := fmt.Sprintf("%s under %s ", capitalise(about.Title), Shorten(transformLabel(&lost[0].half), maxNameWidth))
	if !several {
		l := lost[0]
		if !l.recovers {
			return Sentence{{Text: fmt.Sprintf("%s%s from %s to %s, halfway by ", start, falls, Number(l.first.Value), Number(l.worst.Value))}, places.phrase(l.half), {Text: "."}}
		}
		return Sentence{{Text: fmt.Sprintf("%s%s at %s at ", start, dips, Number(l.worst.Value))}, places.phrase(l.worst),
			{Text: fmt.Sprintf(", from %s before, and ends at %s.", Number(l.first.Value), Number(l.last.Value))}}
	}
	if len(lost)+len(steady) > maxNamed {
		steady = nil
	}
	if len(lost) > maxNamed {
		bySize := slices.Clone(lost)
		slices.SortStableFunc(bySize, func(a, b loss) int { return cmp.Compare(b.size(), a.size()) })
		smallest := bySize[maxNamed-1].size()
		lost = slices.DeleteFunc(lost, func(l loss) bool { return l.size() < smallest })[:maxNamed]
	}
	out := Sentence{{Text: start}}
	add := func(text string) { out = append(out, Phrase{Text: text}) }
	clauses := 0 // that are written
	list := func(verb string, recovers bool, at func(loss) scores.Row) {
		n := 0
		for _, l := range lost {
			if l.recovers != recovers {
				continue
			}
			switch {
			case n > 0:
				add(" and ")
			case clauses > 0 && len(steady) == 0:
				add(", and " + verb)
			case clauses > 0:
				add(", " + verb)
			default:
				add(verb)
			}
			n++
			end := " at its " + extreme
			if recovers {
				end = ", and back"
			}
			out = append(out, places.phrase(at(l)))
			out = append(out, Phrase{Text: " in " + Shorten(l.half.Model, maxNameWidth), Aside: fmt.Sprintf(" (from %s to %s%s)", Number(l.first.Value), Number(l.worst.Value), end)})
		}
		if n > 0 {
			clauses++
		}
	}
	list(falls+" halfway by ", false, func(l loss) scores.Row { return l.half })
	list(dips+" at ", true, func(l loss) scores.Row { return l.worst })
	for i, model := range steady {
		joint := ", and does not clearly " + falls[:len(falls)-1] + " in "
		if i > 0 {
			joint = " or "
		}
		add(joint + Shorten(model, maxNameWidth))
	}
	add(".")
	return out
}

// phrase returns the place of the layer of a row, or its name if it has no place.
func (p Places) phrase(r scores.Row) Phrase {
	place, module, inModule := strings.Cut(cmp.Or(p.Of(r.Model, r.Layer), layer(r)), " (")
	if inModule {
		module = " (" + module
	}
	return Phrase{Text: place, Aside: module, Full: r.Layer, Model: r.Model}
}

// A loss is how a curve over depth becomes worse.
type loss struct {
	first, worst scores.Row // the layers between which the curve loses most
	half         scores.Row // first layer at which at least half is lost
	last         scores.Row // the deepest layer
	recovers     bool       // the curve regains at least the share recovery by its end
}

func (l loss) size() float64 { return math.Abs(l.first.Value - l.worst.Value) }

// lossOf returns the largest loss from one layer to a deeper one.
func lossOf(s Series, d measure.Direction) (loss, bool) {
	sign := 1.0
	if d == measure.Lower {
		sign = -1
	}
	quality := func(i int) float64 { return sign * s.Rows[i].Value }
	top, from, to := 0, 0, 0 // top: the best layer so far
	for i := range s.Rows {
		if quality(i) > quality(top) {
			top = i
		}
		if quality(top)-quality(i) > quality(from)-quality(to) {
			from, to = top, i
		}
	}
	size, end := quality(from)-quality(to), len(s.Rows)-1
	l := loss{first: s.Rows[from], worst: s.Rows[to], last: s.Rows[end], recovers: quality(end)-quality(to) >= recovery*size}
	if size < minLoss {
		return l, false
	}
	at := from
	for quality(at) > (quality(from)+quality(to))/2 {
		at++
	}
	l.half = s.Rows[at]
	return l, true
}
