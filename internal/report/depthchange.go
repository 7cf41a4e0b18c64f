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
	minLoss  = 0.1 // smallest change over depth that is reported, in units of the statistic
	recovery = 0.5 // smallest share of a loss regained by a curve's end that the sentence mentions
)

// depthChange returns a sentence on how the first statistic of the curves over depth becomes worse
// in each model, and at which depth. Transformations are tried in the order of the study, and the
// sentence is about the first under which some model clearly becomes worse. Without one it is nil.
func depthChange(rows []scores.Row, rec scores.Record, c *claims) Sentence {
	panels := CurvePanels(rows, rec.Measures)
	if len(panels) == 0 {
		return nil
	}
	sections := Sections(rows, rec.Measures)
	section := sections[slices.IndexFunc(sections, func(s Section) bool { return s.Key == panels[0].Section })]
	// branch reports whether a shortcut passes by a row's layer, as in a residual block.
	branch := Branches(rec.Models)
	shown := slices.DeleteFunc(section.Of(Overview(rows)), func(r scores.Row) bool { return branch(&r) })
	about, _ := section.Statistic(panels[0].Statistic)
	if about.Direction == measure.Neutral { // neither end of its range is better
		return nil
	}
	// The series of models differ only in their model.
	for _, models := range byCase(SeriesOf(shown, section.Descriptor, about.Name)) {
		var lost []loss
		var steady []string // models whose curves do not clearly become worse
		for _, s := range models {
			l, ok := lossOf(s, about.Direction)
			if ok && c.evidence(&l.first, &l.worst, pairs(len(s.Rows))) != insignificant {
				lost = append(lost, l)
			} else if len(s.Rows) > 1 {
				steady = append(steady, s.Model)
			}
		}
		if len(lost) > 0 {
			several := len(scores.DistinctValues(shown, byModel)) > 1
			return lossSentence(about, lost, steady, several, depths{RelativeDepth(rows)})
		}
	}
	return nil
}

// lossSentence describes losses under one transformation, at most those of maxNamed models. Models
// without a clear loss are named if there is room for all. several says that the run has several
// models, so that each is named.
func lossSentence(about measure.StatisticDescriptor, lost []loss, steady []string, several bool, depth depths) Sentence {
	falls, again := "falls", "rises"
	if about.Direction == measure.Lower {
		falls, again = again, falls
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
	out := plainSentence("%s under %s %s ", capitalise(about.Title), Shorten(transformLabel(&lost[0].half), maxNameWidth), falls)
	add := func(format string, args ...any) { out = append(out, Phrase{Text: fmt.Sprintf(format, args...)}) }
	for i, l := range lost {
		switch {
		case i > 0 && i == len(lost)-1 && len(steady) == 0:
			add("; and ")
		case i > 0:
			add("; ")
		}
		numbers := Phrase{Text: fmt.Sprintf("from %s to %s", Number(l.first.Value), Number(l.worst.Value))}
		model := ""
		if several {
			numbers = Phrase{Aside: numbers.Text + " "}
			model = "in " + Shorten(l.half.Model, maxNameWidth)
		}
		out = append(out, numbers)
		add("%s, half of the %s by ", model, strings.TrimSuffix(falls, "s"))
		out = append(out, depth.phrases(l.half)...)
		if l.recovers {
			add(", and %s again", again)
			out = append(out, Phrase{Aside: " to " + Number(l.last.Value)})
		}
	}
	for i, model := range steady {
		joint := "; and does not clearly " + strings.TrimSuffix(falls, "s") + " in "
		if i > 0 {
			joint = " or "
		}
		add("%s%s", joint, Shorten(model, maxNameWidth))
	}
	add(".")
	return out
}

// depths gives the places of layers as the charts over depth do: 0 % is the first measured layer of
// a model, 100 % the last.
type depths struct{ of func(*scores.Row) float64 }

// phrases returns the place of the layer of a row with its module, such as "36 % of depth
// (stage2)".
func (d depths) phrases(r scores.Row) []Phrase {
	out := []Phrase{{Text: fmt.Sprintf("%.0f %% of depth", 100*d.of(&r)), Full: r.Layer, Model: r.Model}}
	if m := moduleOf(r.Layer); m != "" {
		out = append(out, Phrase{Aside: " (" + m + ")"})
	}
	return out
}

// phrase returns the place of the layer of a row, such as "layer 7 of 20 (layer2.1)", or its name
// if it has no place.
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

// size returns how much the curve loses.
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
