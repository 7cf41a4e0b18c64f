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
	steady = 0.05 // of a statistic's range: a curve that stays within this much is called steady
	trend  = 0.6  // of Spearman's correlation: from here on a curve is said to rise or to fall

	findingsPerMeasure = 4
	longestName        = 48
)

// A finding is a sentence that follows from the data by a rule.
type finding struct {
	text   string
	weight float64 // how much happens in it, in units of the statistic's range
	rank   int     // by weight, among those of one statistic
}

// Findings returns what stands out in the scores, in sentences: for each measure the curve or the
// comparison in which most happens. The rules are fixed, so the same scores give the same
// sentences.
func Findings(rows []scores.Row, known []measure.Descriptor) []string {
	shown := Overview(rows)
	var key []string
	for _, m := range Describe(shown, known) {
		if f := FindingsOf(shown, m); len(f) > 0 {
			key = append(key, f[0])
		}
	}
	return key
}

// FindingsOf returns the sentences of one measure, each statistic's weightiest first. The rows are
// of an overview.
func FindingsOf(rows []scores.Row, m measure.Descriptor) []string {
	w := wording{models: len(distinct(rows, Measures{m}.ModelLabel)) > 1, data: len(distinct(rows, byData)) > 1}
	var found []finding
	switch {
	case Layered(rows, m.Name):
		for _, s := range acrossLayers(Headline(m)) {
			var curves []finding
			for _, models := range byCase(SeriesOf(rows, m, s.Name)) {
				curves = append(curves, w.steepest(models, s))
			}
			found = append(found, ranked(curves)...)
		}
	case m.Name == "accuracy":
		found = ranked(w.accuracy(rows, m))
	}
	if found == nil {
		s := Headline(m)[0] // stands for the others, which say much the same
		found = ranked(w.predictions(SeriesOf(rows, m, s.Name), s))
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.weight, a.weight))
	})
	var sentences []string
	for _, f := range found[:min(len(found), findingsPerMeasure)] {
		sentences = append(sentences, f.text)
	}
	return sentences
}

// ranked numbers findings by their weight.
func ranked(found []finding) []finding {
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(b.weight, a.weight) })
	for i := range found {
		found[i].rank = i
	}
	return found
}

// acrossLayers returns the statistics that compare across layers. One without an upper bound has
// the scale of each layer's activations, so its curve over depth is of those; it is spoken of only
// where there is nothing else. Baselines are what others are read against.
func acrossLayers(all []measure.StatisticDescriptor) []measure.StatisticDescriptor {
	var bounded []measure.StatisticDescriptor
	for _, s := range all {
		if !math.IsInf(s.Range.High, 1) && !strings.HasPrefix(s.Name, "baseline-") {
			bounded = append(bounded, s)
		}
	}
	if bounded == nil {
		return all
	}
	return bounded
}

// wording says which names a sentence must hold for a reader to know what it is about.
type wording struct {
	models, data bool
	places       string // of a curve: "layers", the default, or "values" of a parameter
}

// along names the places of a curve.
func (w wording) along() string { return cmp.Or(w.places, "layers") }

// where writes "for hue of resnet20 under quarter on cifar10", as far as needed.
func (w wording) where(s Series) string {
	var parts []string
	if s.Factor != "" {
		parts = append(parts, "for "+Shorten(strings.Replace(s.Factor, "class=", "class ", 1), longestName))
	}
	if w.models {
		parts = append(parts, "of "+Shorten(s.Model, longestName))
	}
	if s.Transform != "" {
		parts = append(parts, "under "+Shorten(s.Transform, longestName))
	}
	if w.data && s.Data != "" {
		parts = append(parts, "on "+Shorten(s.Data, longestName))
	}
	if s.Variant != "" {
		parts = append(parts, "("+Shorten(s.Variant, longestName)+")")
	}
	return strings.Join(parts, " ")
}

// steepest describes the model whose curve over depth has most happening in it, or compares models
// of a single layer each.
func (w wording) steepest(models []Series, about measure.StatisticDescriptor) finding {
	if len(models) > 1 && !slices.ContainsFunc(models, func(s Series) bool { return len(s.Rows) > 1 || s.IsGrid() }) {
		return w.comparison(models, about)
	}
	best := w.depth(models[0], about)
	for _, s := range models[1:] {
		if f := w.depth(s, about); f.weight > best.weight {
			best = f
		}
	}
	return best
}

// depth describes a curve over depth.
func (w wording) depth(s Series, about measure.StatisticDescriptor) finding {
	if s.IsGrid() {
		return w.grid(s, about)
	}
	low, high := s.lowest(), s.highest(about.Direction)
	first, last := s.Rows[0], s.Rows[len(s.Rows)-1]
	span := high.Value - low.Value
	subject := capital(strings.Join(nonEmpty(about.Title, w.where(s)), " "))
	depths := make(map[int]bool)
	for _, r := range s.Rows {
		depths[r.Depth] = true
	}
	// Layers beside each other, several at a depth, make no line.
	joined := len(s.Rows) < 2*len(depths)
	var said string
	switch rho := s.trend(); {
	case len(s.Rows) == 1:
		said = fmt.Sprintf("is %s at %s", Number(first.Value), layer(first))
	case Number(low.Value) == Number(high.Value):
		said = fmt.Sprintf("is %s at all %d %s", Number(low.Value), len(s.Rows), w.along())
	case span <= steady*width(about, low.Value, high.Value):
		said = fmt.Sprintf("stays between %s and %s at all %d %s", Number(low.Value), Number(high.Value), len(s.Rows), w.along())
	case joined && rho <= -trend && first.Value > last.Value:
		said = fmt.Sprintf("falls from %s at %s to %s at %s", Number(first.Value), layer(first), Number(last.Value), layer(last))
	case joined && rho >= trend && first.Value < last.Value:
		said = fmt.Sprintf("rises from %s at %s to %s at %s", Number(first.Value), layer(first), Number(last.Value), layer(last))
	default:
		said = fmt.Sprintf("is highest at %s (%s) and lowest at %s (%s)", layer(high), Number(high.Value), layer(low), Number(low.Value))
	}
	return finding{text: subject + " " + said + chance(s, about.Direction, w.along()) + ".", weight: span / width(about, low.Value, high.Value)}
}

// width is the length of a statistic's range, from 0 where only the highest value is known, or the
// larger magnitude of two values where it has none.
func width(s measure.StatisticDescriptor, low, high float64) float64 {
	switch {
	case s.Range.Bounded():
		return s.Range.High - s.Range.Low
	case s.Range.High > 0 && !math.IsInf(s.Range.High, 1):
		return s.Range.High
	}
	return max(math.Abs(low), math.Abs(high), math.SmallestNonzeroFloat64)
}

// chance says at how many layers a score is no better than that of shuffled pairs: the null lies
// within its interval or beyond, or beyond the value where there is no interval.
func chance(s Series, d measure.Direction, what string) string {
	var at, with int
	for _, r := range s.Rows {
		if math.IsNaN(r.Null) || d == measure.Neutral {
			continue
		}
		with++
		if atChance(r, d) {
			at++
		}
	}
	switch {
	case at == 0:
		return ""
	case with == 1:
		return "; that is no better than chance"
	case at == len(s.Rows):
		return "; none of them does better than chance"
	default:
		if s.IsGrid() {
			what = "pairs"
		}
		return fmt.Sprintf("; at %d of %d %s it is no better than chance", at, with, what)
	}
}

func atChance(r scores.Row, d measure.Direction) bool {
	near := r.Value // the end of the interval on the side of the null
	if d == measure.Higher {
		if !math.IsNaN(r.Low) {
			near = r.Low
		}
		return r.Null >= near
	}
	if !math.IsNaN(r.High) {
		near = r.High
	}
	return r.Null <= near
}

// accuracy describes what the transformations cost: for one model from what to what accuracy goes,
// for several the one that loses most and the one that loses least.
func (w wording) accuracy(rows []scores.Row, m measure.Descriptor) []finding {
	subject := func(s Series) [3]string { return [3]string{s.Model, s.Data, s.Factor} }
	clean := make(map[[3]string]float64)
	for _, s := range SeriesOf(rows, m, "clean") {
		clean[subject(s)] = s.Rows[0].Value
	}
	before := func(s Series) float64 { return clean[subject(s)] }
	lost := func(s Series) float64 { return before(s) - s.Rows[0].Value }
	var found []finding
	for _, models := range byCase(SeriesOf(rows, m, "moved")) {
		models = slices.DeleteFunc(models, func(s Series) bool { _, known := clean[subject(s)]; return !known })
		if len(models) == 0 {
			continue
		}
		slices.SortStableFunc(models, func(a, b Series) int { return cmp.Compare(lost(b), lost(a)) })
		most, least := models[0], models[len(models)-1]
		var text string
		if len(models) == 1 {
			text = strings.Join(nonEmpty("Accuracy", w.where(most)), " ") + " " + change(before(most), most.Rows[0].Value)
		} else {
			where := wording{data: w.data}.where(most)
			text = fmt.Sprintf("%s suffers most in %s, where it %s, and least in %s, where it %s",
				strings.Join(nonEmpty("Accuracy", where), " "),
				Shorten(most.Model, longestName), change(before(most), most.Rows[0].Value),
				Shorten(least.Model, longestName), change(before(least), least.Rows[0].Value))
		}
		found = append(found, finding{text: text + ".", weight: math.Abs(lost(most))})
	}
	return found
}

// change writes "falls from 0.810 to 0.290".
func change(from, to float64) string {
	switch {
	case Number(from) == Number(to):
		return "stays at " + Number(to)
	case from > to:
		return "falls from " + Number(from) + " to " + Number(to)
	default:
		return "rises from " + Number(from) + " to " + Number(to)
	}
}

// predictions describes one statistic of the predictions: under each transformation the models
// against each other, or the transformations against each other where there is one model.
func (w wording) predictions(all []Series, about measure.StatisticDescriptor) []finding {
	groups := byCase(all)
	if !w.models {
		groups = grouped(all, func(s Series) string { return s.Factor + "\x00" + s.Variant + "\x00" + s.Data })
	}
	var found []finding
	for _, g := range groups {
		found = append(found, w.comparison(g, about))
	}
	return found
}

// comparison says which series of a group has the highest value and which the lowest.
func (w wording) comparison(group []Series, about measure.StatisticDescriptor) finding {
	if len(group) == 1 {
		s := group[0]
		r := s.Rows[0]
		text := fmt.Sprintf("%s is %s%s.", capital(strings.Join(nonEmpty(about.Title, w.where(s)), " ")), Number(r.Value), between(r))
		return finding{text: text}
	}
	high := slices.MaxFunc(group, func(a, b Series) int { return cmp.Compare(a.Rows[0].Value, b.Rows[0].Value) })
	low := slices.MinFunc(group, func(a, b Series) int { return cmp.Compare(a.Rows[0].Value, b.Rows[0].Value) })
	h, l := high.Rows[0], low.Rows[0]
	name, common, all := func(s Series) string { return "for " + Shorten(s.Model, longestName) }, group[0], "for each of %d models"
	if w.models {
		common = Series{Transform: common.Transform, Factor: common.Factor, Data: common.Data, Variant: common.Variant}
	} else {
		name, all = func(s Series) string { return "under " + Shorten(s.Transform, longestName) }, "under each of %d transformations"
		common = Series{Factor: common.Factor, Data: common.Data}
	}
	subject := capital(strings.Join(nonEmpty(about.Title, wording{data: w.data}.where(common)), " "))
	overlap := h.Low <= l.High
	if overlap && Number(h.Value) == Number(l.Value) {
		return finding{text: fmt.Sprintf("%s is %s "+all+".", subject, Number(h.Value), len(group))}
	}
	text := fmt.Sprintf("%s is highest %s (%s) and lowest %s (%s)", subject, name(high), Number(h.Value), name(low), Number(l.Value))
	if overlap {
		text += "; their intervals overlap"
	}
	return finding{text: text + ".", weight: (h.Value - l.Value) / width(about, l.Value, h.Value)}
}

// between writes " (95 % interval 0.60 to 0.62)", or "".
func between(r scores.Row) string {
	if math.IsNaN(r.Low) || math.IsNaN(r.High) {
		return ""
	}
	return fmt.Sprintf(" (95 %% interval %s to %s)", Number(r.Low), Number(r.High))
}

// layer names a layer in a sentence, without what exporters append.
func layer(r scores.Row) string {
	return Shorten(strings.TrimSuffix(r.Layer, exported), longestName)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func nonEmpty(items ...string) []string {
	return slices.DeleteFunc(items, func(s string) bool { return s == "" })
}
