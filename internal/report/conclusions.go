package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Sentence is a sentence in parts. A part may stand for a longer name, such as that of a tensor.
type Sentence []Phrase

// A Phrase is a part of a sentence.
type Phrase struct {
	Text  string
	Aside string // follows Text; narrow screens leave it out
	// Full is the name of the tensor if Text is the place of a layer, and Model is its model.
	Full, Model string
}

// String returns the text of the sentence.
func (s Sentence) String() string {
	var b strings.Builder
	for _, p := range s {
		b.WriteString(p.Text + p.Aside)
	}
	return b.String()
}

func plainSentence(format string, args ...any) Sentence {
	return Sentence{{Text: fmt.Sprintf(format, args...)}}
}

// Conclusions returns the sentences for the first screen of a report: alarms, and at most six that
// say which of two models is right more often, which model is the most robust, under which
// transformation scores are worst, for which group of samples, of which groups a model has fewer right
// than another, and at which depth those of layers fall. layers are one sentence for each of the first
// models on which of its layers is the best one for retrieval, localisation and linear probing. All
// follow from the scores by fixed rules. What they claim is one family: if nothing differed, they
// would claim anything with a probability of at most 5 %. The group is of the models that are judged
// by a policy, if any.
func Conclusions(rows []scores.Row, rec scores.Record, replicates *Replicates, judged ...string) (found, layers []Sentence) {
	alarms := Alarms(rows, rec)
	rows = Sound(rows, rec)
	all := Matrices(rows, rec.Measures)
	type sentences struct{ found, layers []Sentence }
	made := withClaims(replicates, func(c *claims) sentences {
		out := slices.Clone(alarms)
		if len(all) > 0 {
			out = append(out, cleanDifference(rows, c), all[0].ranking(c), all[0].extremes(c))
		}
		out = append(out, worstGroup(rows, rec, c, judged), lostGroups(rows, c, judged), depthChange(rows, rec, c))
		return sentences{slices.DeleteFunc(out, func(s Sentence) bool { return s == nil }), bestLayers(rows, rec, c)}
	})
	return made.found, made.layers
}

const (
	maxNamed = 3    // maximum number of models in a sentence
	minLead  = 0.01 // smallest lead of a model that is reported, as a fraction of the range
)

// byQuality returns cells of the matrix in order, the best first.
func (m Matrix) byQuality(cells []MatrixCell) []MatrixCell {
	cells = slices.Clone(cells)
	slices.SortStableFunc(cells, func(a, b MatrixCell) int {
		if m.about.Direction == measure.Lower {
			a, b = b, a
		}
		return cmp.Compare(m.rows[b.Row].Value, m.rows[a.Row].Value)
	})
	return cells
}

// cleanDifference returns a sentence on which of two models is right more often without a
// transformation, by accuracy, mAP or mean IoU, on the first data set with both; nil without
// intervals, or of more models.
func cleanDifference(rows []scores.Row, c *claims) Sentence {
	for _, name := range slices.Sorted(maps.Values(cleanStatistics)) {
		ofData := map[string][]scores.Row{}
		for of, r := range cleanScores(rows, name) {
			ofData[of[1]] = append(ofData[of[1]], r)
		}
		for _, data := range scores.DistinctValues(rows, byData) {
			of := ofData[data]
			if len(of) != 2 { // of more, the matrix says enough
				continue
			}
			slices.SortFunc(of, func(a, b scores.Row) int {
				return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Model, b.Model))
			})
			best, worst := &of[0], &of[1]
			where := "Without a transformation"
			if len(ofData) > 1 {
				where += " on " + Shorten(data, maxNameWidth)
			}
			text := func(r *scores.Row) string {
				return strings.Join(nonEmpty(Number(r.Value), Interval(r.Low, r.High)), " ")
			}
			low, high := Shorten(worst.Model, maxNameWidth), Shorten(best.Model, maxNameWidth)
			switch c.evidence(best, worst, 1) {
			case certain:
				return Sentence{{Text: fmt.Sprintf("%s, %s has a lower %s than %s, by more than chance: %s against %s", where, low, name, high, text(worst), text(best)),
					Aside: " (p < 0.05 after correction for the number of comparisons)"}, {Text: "."}}
			case insignificant:
				return plainSentence("%s, the %s of %s and %s differs by no more than chance: %s and %s.", where, name, high, low, text(best), text(worst))
			}
		}
	}
	return nil
}

// adjective is what a model with better scores is: accurate, if these are right where labels are.
func (m Matrix) adjective() string {
	if isMovedAccuracy(m.Statistic) {
		return "accurate"
	}
	return "robust"
}

// isMovedAccuracy reports whether a statistic says how often a model is right under a
// transformation.
func isMovedAccuracy(statistic string) bool {
	return slices.Contains([]string{"moved", "moved-map", "moved-miou"}, statistic)
}

// ranking returns a sentence on the model that is best, or worst, under most transformations, or
// nil if there is nothing to compare.
func (m Matrix) ranking(c *claims) Sentence {
	if m.Across != "name" || m.about.Direction == measure.Neutral {
		return nil // columns are not transformations, or neither end of the range is better
	}
	type lead struct{ a, b MatrixCell } // a is the best or the worst of a column; b, the next, clearly differs
	compared, intervals := 0, false
	leads, lags := map[int][]lead{}, map[int][]lead{} // by model: where it is the best, the worst
	for column := range m.Columns {
		cells := m.byQuality(slices.DeleteFunc(slices.Clone(m.Cells), func(c MatrixCell) bool { return c.Column != column }))
		n := len(cells)
		if n < 2 {
			continue
		}
		compared++
		add := func(to map[int][]lead, a, b MatrixCell) {
			switch e := c.evidence(&m.rows[a.Row], &m.rows[b.Row], pairs(n)); {
			case e == certain && !a.Chance && math.Abs(m.rows[a.Row].Value-m.rows[b.Row].Value) >= minLead*(m.High-m.Low):
				to[a.Model] = append(to[a.Model], lead{a, b})
				fallthrough
			case e != unknown:
				intervals = true
			}
		}
		add(leads, cells[0], cells[1])
		if n > 2 {
			b, a := cells[n-2], cells[n-1]
			a.Chance = false // the worst may be at chance, that is, no better than the null
			add(lags, a, b)
		}
	}
	if compared == 0 {
		return nil
	}
	mostFrequent := func(models map[int][]lead) (model int, found []lead) {
		for i := range m.Models {
			if len(models[i]) > len(found) {
				model, found = i, models[i]
			}
		}
		return model, found
	}
	gap := func(l lead) float64 { return math.Abs(m.rows[l.a.Row].Value - m.rows[l.b.Row].Value) }
	example := func(l lead) string { // "rotation (0.998; next: plain, 0.828)"
		return fmt.Sprintf("%s (%s)", Shorten(m.Columns[l.a.Column], maxNameWidth), m.values(l.a, l.b))
	}
	if len(leads) > 1 { // different models lead under different transformations
		var largest []lead // of each model
		for _, found := range leads {
			largest = append(largest, slices.MaxFunc(found, func(a, b lead) int { return cmp.Compare(gap(a), gap(b)) }))
		}
		slices.SortFunc(largest, func(a, b lead) int { return cmp.Or(cmp.Compare(gap(b), gap(a)), cmp.Compare(a.a.Model, b.a.Model)) })
		a, b := largest[0], largest[1]
		if b.a.Column < a.a.Column { // in the order of the study
			a, b = b, a
		}
		return Sentence{{Text: fmt.Sprintf("%s is the most %s under %s, and %s under %s; both leads are more than chance",
			Shorten(m.Models[a.a.Model], maxNameWidth), m.adjective(), example(a), Shorten(m.Models[b.a.Model], maxNameWidth), example(b)),
			Aside: " (p < 0.05 after correction for the number of comparisons)"}, {Text: "."}}
	}
	transforms := Plural(compared, "transformation")
	sentence := func(model int, what string, found []lead) Sentence {
		shown := found[0]
		for _, l := range found {
			if gap(l) > gap(shown) {
				shown = l
			}
		}
		column := Shorten(m.Columns[shown.a.Column], maxNameWidth)
		where, under := fmt.Sprintf("under %d of %s", len(found), transforms), column+": "
		if compared == 1 {
			where, under = "under "+column, ""
		}
		return Sentence{{Text: fmt.Sprintf("%s is %s %s (%s%s), which is more than chance",
			Shorten(m.Models[model], maxNameWidth), what, where, under, m.values(shown.a, shown.b)),
			Aside: " (p < 0.05 after correction for the number of comparisons)"}, {Text: "."}}
	}
	best, firsts := mostFrequent(leads)
	worst, lasts := mostFrequent(lags)
	models := Plural(len(m.Models), "model")
	switch {
	case len(firsts) > 0 && len(m.Models) == 2:
		return sentence(best, "more "+m.adjective()+" than the other model", firsts)
	case len(firsts) > 0:
		return sentence(best, "the most "+m.adjective()+" of "+models, firsts)
	case len(lasts) > 0:
		return sentence(worst, "the least "+m.adjective()+" of "+models, lasts)
	case !intervals:
		return plainSentence("Whether one of %s is more %s cannot be said: the scores have no intervals.", models, m.adjective())
	}
	return plainSentence("None of %s is clearly more %s: the differences in %s are small or may be chance.", models, m.adjective(), m.Title)
}

// extremes returns a sentence on the transformations with the worst and the best scores, and on how
// many scores are at chance.
func (m Matrix) extremes(claimed *claims) Sentence {
	if m.Across != "name" || m.about.Direction == measure.Neutral || len(m.Cells) < 2 {
		return nil
	}
	chance, withNull := 0, 0
	worst, best := map[int]int{}, map[int]int{} // by column, the number of models that score worst, or best, there
	differ := 0                                 // number of models whose two scores differ by more than chance, or lack intervals
	for model := range m.Models {
		cells := m.byQuality(slices.DeleteFunc(slices.Clone(m.Cells), func(c MatrixCell) bool { return c.Model != model }))
		for _, c := range cells {
			if finite(m.rows[c.Row].Null) {
				withNull++
			}
			if c.Chance {
				chance++
			}
		}
		if n := len(cells); n > 1 {
			worst[cells[n-1].Column]++
			best[cells[0].Column]++
			if claimed.evidence(&m.rows[cells[0].Row], &m.rows[cells[n-1].Row], pairs(n)) != insignificant {
				differ++
			}
		}
	}
	end := ""
	switch {
	case withNull == 0:
	case chance == 0 && m.Null != "":
		end = " All scores are better than chance."
	case chance > 0:
		end = fmt.Sprintf(" %s of %s %s no better than chance.", Count(chance), Plural(withNull, "score"), isOrAre(chance))
	}
	if len(m.Columns) < 2 || differ == 0 {
		if end == "" {
			return nil
		}
		return plainSentence("%s", strings.TrimPrefix(end, " "))
	}
	common := func(of map[int]int) (column int) {
		for i := range m.Columns {
			if of[i] > of[column] {
				column = i
			}
		}
		return column
	}
	span := func(column int) (text, average string) {
		low, high := math.Inf(1), math.Inf(-1)
		for _, c := range m.Cells {
			if c.Column == column {
				low, high = min(low, m.rows[c.Row].Value), max(high, m.rows[c.Row].Value)
			}
		}
		text = Number(low)
		if text != Number(high) {
			text += " to " + Number(high)
		}
		for _, c := range m.Cells {
			if c.Column == column && len(c.Curve) > 0 {
				average = fmt.Sprintf(", on average over %d values", len(c.Curve))
			}
		}
		return text, average
	}
	lower, upper := "lowest", "highest"
	if m.about.Direction == measure.Lower {
		lower, upper = upper, lower
	}
	w, b := common(worst), common(best)
	worstSpan, worstAverage := span(w)
	bestSpan, bestAverage := span(b)
	return Sentence{
		{Text: fmt.Sprintf("%s is %s under %s (%s", capitalise(m.Title), lower, Shorten(m.Columns[w], maxNameWidth), worstSpan), Aside: worstAverage},
		{Text: fmt.Sprintf(") and %s under %s (%s", upper, Shorten(m.Columns[b], maxNameWidth), bestSpan), Aside: bestAverage},
		{Text: ")." + end},
	}
}

// values returns the value of a cell and that of the next one, such as "0.998; next: plain, 0.828".
func (m Matrix) values(a, next MatrixCell) string {
	return fmt.Sprintf("%s; next: %s, %s", Number(m.rows[a.Row].Value), Shorten(m.Models[next.Model], maxNameWidth), Number(m.rows[next.Row].Value))
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// SectionNote returns a sentence that a section shows beside its charts, or nil. Only scores of
// SEIS give one: it names the layer of each model whose equivariance exceeds its invariance most,
// on average over transformations. Such a layer preserves position.
func SectionNote(s Section, rows []scores.Row) Sentence {
	shown := s.Of(Overview(rows))
	best := make(map[string]*candidate)
	layers := make(map[string]int)
	for _, c := range candidates(shown) {
		layers[c.row.Model]++
		if known := best[c.row.Model]; !c.chance && c.gap() > 0 && (known == nil || c.gap() > known.gap()) {
			best[c.row.Model] = c
		}
	}
	var found []*candidate
	layerPlaces := NewPlaces(s.Of(rows))
	for _, model := range scores.DistinctValues(shown, byModel) {
		if best[model] != nil && layers[model] > 1 {
			found = append(found, best[model])
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b *candidate) int { return cmp.Compare(b.gap(), a.gap()) })
	out := Sentence{{Text: "For tasks that need positions, such as detection, take "}}
	named := found[:min(len(found), maxNamed)]
	for i, c := range named {
		if i > 0 {
			out = append(out, Phrase{Text: " or "})
		}
		out = append(out, layerPlaces.phrase(c.row))
		text := ""
		if len(found) > 1 {
			text = " of " + Shorten(c.row.Model, maxNameWidth)
		}
		out = append(out, Phrase{Text: fmt.Sprintf("%s (equivariance %s, invariance %s)", text, Number(c.equivariance/c.n), Number(c.invariance/c.n))})
	}
	return append(out, Phrase{Text: ": there equivariance is furthest above invariance, on average over the transformations."})
}

// candidates returns the layers that have both scores of SEIS, in order of appearance.
func candidates(shown []scores.Row) []*candidate {
	// A view has what invariance and equivariance of the same layer under a transformation share.
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
	byLayer := make(map[place]*candidate)
	var out []*candidate
	for _, r := range shown {
		value, known := invariance[viewOf(r)]
		if !is(r, "equivariance") || !known {
			continue
		}
		p := place{r.Model, r.Layer}
		if byLayer[p] == nil {
			byLayer[p] = &candidate{row: r}
			out = append(out, byLayer[p])
		}
		byLayer[p].add(r, value)
	}
	return out
}

// A candidate is a layer with the sums of its scores over transformations.
type candidate struct {
	row                         scores.Row // the first score of its equivariance
	equivariance, invariance, n float64    // the sums, and their number of terms
	chance                      bool       // no better than chance under some transformation
}

func (c *candidate) add(r scores.Row, invariance float64) {
	c.equivariance, c.invariance, c.n = c.equivariance+r.Value, c.invariance+invariance, c.n+1
	c.chance = c.chance || !math.IsNaN(r.Null) && isAtChance(r, measure.Higher)
}

func (c *candidate) gap() float64 { return (c.equivariance - c.invariance) / c.n }
