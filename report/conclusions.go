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

// Conclusions returns sentences that answer common questions: which model is more invariant and is
// the difference significant, at what depth do models lose equivariance, and which layer suits
// localisation. Like Findings, they follow from the scores by fixed rules.
func Conclusions(rows []scores.Row, known []measure.Descriptor) []string {
	shown := Overview(rows)
	return nonEmpty(ranking(shown, Describe(shown, known)), equivarianceLoss(shown), bestLocaliser(shown))
}

// rankedBy lists the statistics by which models are ranked for invariance, as measure and
// statistic. The first one present is used.
var rankedBy = [][2]string{{"effective-invariance", "ei"}, {"prediction-divergence", "js"}, {"accuracy", "drop"}}

// An advantage is the lead of the best model over the next one, under one transformation on one
// data set.
type advantage struct {
	best, next  Series
	significant bool // the difference exceeds their intervals
	gap         float64
}

// ranking returns a sentence on the most invariant model, or "" if there are fewer than two models.
func ranking(shown []scores.Row, measures Measures) string {
	for _, by := range rankedBy {
		var leads []advantage
		models := 0
		about := measures.Statistic(&scores.Row{Measure: by[0], Statistic: by[1]})
		for _, group := range byCase(SeriesOf(shown, measure.Descriptor{Name: by[0]}, by[1])) {
			if len(group) > 1 && group[0].Transform != "" {
				leads, models = append(leads, leadOf(group, about.Direction)), max(models, len(group))
			}
		}
		if len(leads) > 0 {
			return rankingSentence(leads, models, about.Title)
		}
	}
	return ""
}

func leadOf(group []Series, d measure.Direction) advantage {
	group = slices.Clone(group)
	slices.SortStableFunc(group, func(a, b Series) int {
		if d == measure.Lower {
			a, b = b, a
		}
		return cmp.Compare(b.Rows[0].Value, a.Rows[0].Value)
	})
	l := advantage{best: group[0], next: group[1]}
	l.gap = math.Abs(l.best.Rows[0].Value - l.next.Rows[0].Value)
	l.significant = differSignificantly(l.best.Rows[0], l.next.Rows[0])
	return l
}

// differSignificantly reports whether two scores differ by more than their intervals, taken as independent: half
// widths add in quadrature. For scores on the same samples this is conservative; noether diff pairs
// them. Without intervals it returns false.
func differSignificantly(a, b scores.Row) bool {
	return math.Abs(a.Value-b.Value) > math.Hypot((a.High-a.Low)/2, (b.High-b.Low)/2)
}

// rankingSentence returns a sentence on the model that leads most often.
func rankingSentence(leads []advantage, models int, title string) string {
	leads = slices.DeleteFunc(leads, func(l advantage) bool { return l.gap == 0 }) // ties are no lead
	if len(leads) == 0 {
		return ""
	}
	wins := make(map[string]int)
	for _, l := range leads {
		wins[l.best.Model]++
	}
	first := leads[0]
	for _, l := range leads {
		if wins[l.best.Model] > wins[first.best.Model] || l.best.Model == first.best.Model && l.gap > first.gap {
			first = l
		}
	}
	significant := 0
	for _, l := range leads {
		if l.best.Model == first.best.Model && l.significant {
			significant++
		}
	}
	name, won := Shorten(first.best.Model, maxNameWidth), wins[first.best.Model]
	than := "is the most invariant of " + Plural(models, "model")
	if models == 2 {
		than = "is more invariant than " + Shorten(first.next.Model, maxNameWidth)
	}
	example := fmt.Sprintf("%s %s against %s", title, Number(first.best.Rows[0].Value), Number(first.next.Rows[0].Value))
	if models > 2 {
		example += " of " + Shorten(first.next.Model, maxNameWidth)
	}
	under := "under " + Shorten(first.best.Transform, maxNameWidth)
	if len(leads) == 1 && significant == 0 {
		return fmt.Sprintf("Which of %s is the more invariant %s is open: %s leads with %s, a difference within their intervals.", Plural(models, "model"), under, name, example)
	}
	if len(leads) == 1 {
		return fmt.Sprintf("%s %s %s: %s, more than their intervals.", name, than, under, example)
	}
	if significant == 0 {
		return fmt.Sprintf("Which of %s is the most invariant is open: %s leads in %d of %s, in none of them by more than their intervals.",
			Plural(models, "model"), name, won, Plural(len(leads), "case"))
	}
	return fmt.Sprintf("%s %s in %d of %s, in %s by more than their intervals; %s it has %s.",
		name, than, won, Plural(len(leads), "case"), Count(significant), under, example)
}

const (
	maxNamed = 3   // maximum number of models in a sentence
	minLoss  = 0.1 // smallest loss of equivariance that is reported
)

// equivarianceLoss returns a sentence on the layer by which each model has lost half of its total loss of
// equivariance, under the transformation with the largest loss.
func equivarianceLoss(shown []scores.Row) string {
	var worst []loss
	for _, models := range byCase(SeriesOf(shown, measure.Descriptor{Name: "seis"}, "equivariance")) {
		var losses []loss
		for _, s := range models {
			if l, ok := lossOf(s); ok {
				losses = append(losses, l)
			}
		}
		if largest(losses) > largest(worst) {
			worst = losses
		}
	}
	if len(worst) == 0 {
		return ""
	}
	several := len(distinct(shown, byModel)) > 1
	var parts []string
	for _, l := range worst[:min(len(worst), maxNamed)] {
		text := "by " + layer(l.half)
		if several {
			text += " in " + Shorten(l.half.Model, maxNameWidth)
		}
		parts = append(parts, fmt.Sprintf("%s (depth %d; %s to %s)", text, l.half.Depth, Number(l.from), Number(l.to)))
	}
	return fmt.Sprintf("Half of the loss of equivariance under %s has happened %s.", Shorten(transformLabel(&worst[0].half), maxNameWidth), joinAnd(parts))
}

type loss struct {
	half     scores.Row // first layer at which at least half is lost
	from, to float64
}

func largest(losses []loss) float64 {
	most := 0.0
	for _, l := range losses {
		most = max(most, l.from-l.to)
	}
	return most
}

// lossOf returns the drop from the highest score over depth to the lowest score after it.
func lossOf(s Series) (loss, bool) {
	top := 0
	for i, r := range s.Rows {
		if r.Value > s.Rows[top].Value {
			top = i
		}
	}
	after := s.Rows[top:]
	low := slices.MinFunc(after, func(a, b scores.Row) int { return cmp.Compare(a.Value, b.Value) }).Value
	l := loss{from: after[0].Value, to: low}
	if l.from-l.to < minLoss {
		return l, false
	}
	at := slices.IndexFunc(after, func(r scores.Row) bool { return r.Value <= (l.from+l.to)/2 })
	l.half = after[at]
	return l, true
}

// bestLocaliser returns a sentence on the layer of each model whose equivariance exceeds its
// invariance most, on average over transformations. Such a layer preserves position.
func bestLocaliser(shown []scores.Row) string {
	best := make(map[string]*candidate)
	layers := make(map[string]int)
	for _, c := range candidates(shown) {
		layers[c.row.Model]++
		if known := best[c.row.Model]; !c.chance && c.gap() > 0 && (known == nil || c.gap() > known.gap()) {
			best[c.row.Model] = c
		}
	}
	var found []*candidate
	for _, model := range distinct(shown, byModel) {
		if best[model] != nil && layers[model] > 1 {
			found = append(found, best[model])
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.SortStableFunc(found, func(a, b *candidate) int { return cmp.Compare(b.gap(), a.gap()) })
	var parts []string
	for _, c := range found[:min(len(found), maxNamed)] {
		text := layer(c.row)
		if len(found) > 1 {
			text += " of " + Shorten(c.row.Model, maxNameWidth)
		}
		parts = append(parts, fmt.Sprintf("%s (equivariance %s, invariance %s)", text, Number(c.equivariance/c.n), Number(c.invariance/c.n)))
	}
	return "To localise, take " + strings.Join(parts, " or ") + ": there equivariance is furthest above invariance, on average over the transformations."
}

// candidates returns the layers that have both scores, in order of appearance.
func candidates(shown []scores.Row) []*candidate {
	type view struct{ model, layer, data, transform, parameter, variant string }
	viewOf := func(r scores.Row) view { return view{r.Model, r.Layer, r.Data, r.Transform, r.Parameter, r.Variant} }
	is := func(r scores.Row, statistic string) bool {
		return r.Measure == "seis" && r.Statistic == statistic && r.Factor == "" && finite(r.Value)
	}
	invariance := make(map[view]float64)
	for _, r := range shown {
		if is(r, "invariance") {
			invariance[viewOf(r)] = r.Value
		}
	}
	type place struct{ model, layer string }
	at := make(map[place]*candidate)
	var all []*candidate
	for _, r := range shown {
		still, known := invariance[viewOf(r)]
		if !is(r, "equivariance") || !known {
			continue
		}
		p := place{r.Model, r.Layer}
		if at[p] == nil {
			at[p] = &candidate{row: r}
			all = append(all, at[p])
		}
		at[p].add(r, still)
	}
	return all
}

// A candidate is a layer with the sums of its scores over transformations.
type candidate struct {
	row                         scores.Row
	equivariance, invariance, n float64
	chance                      bool // no better than chance under some transformation
}

func (c *candidate) add(r scores.Row, invariance float64) {
	c.equivariance, c.invariance, c.n = c.equivariance+r.Value, c.invariance+invariance, c.n+1
	c.chance = c.chance || !math.IsNaN(r.Null) && atChance(r, measure.Higher)
}

func (c *candidate) gap() float64 { return (c.equivariance - c.invariance) / c.n }

// joinAnd joins items as "a", "a and b" or "a, b and c".
func joinAnd(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}
