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
	minSpan  = 0.05 // share of a statistic's range; a curve that varies no more "stays between" values
	minTrend = 0.6  // smallest size of Spearman's correlation with depth at which a curve rises or falls

	maxNameWidth = 48 // of a name in a sentence, see Shorten
)

// A finding is a sentence that follows from the scores by a rule.
type finding struct {
	text     string
	weight   float64  // size of the effect relative to the statistic's range
	evidence evidence // whether the scores differ: insignificant, unknown or certain
	rank     int      // by evidence and weight, among the findings on one statistic
}

// Findings returns sentences on the most notable scores: for each measure, the curve or the
// comparison with the largest differences. The rules are fixed, so the same scores give the same
// sentences. Differences beyond chance come first. They are one family of claims.
func Findings(rows []scores.Row, known []measure.Descriptor, replicates *Replicates) []string {
	shown := Overview(rows)
	key := withClaims(replicates, func(c *claims) (key []finding) {
		for _, s := range Sections(shown, known) {
			if f := findingsOf(s.Of(shown), s.Descriptor, c); len(f) > 0 {
				key = append(key, f[0])
			}
		}
		return key
	})
	slices.SortStableFunc(key, func(a, b finding) int { return cmp.Compare(b.evidence, a.evidence) })
	var sentences []string
	for _, f := range key {
		sentences = append(sentences, f.text)
	}
	return sentences
}

// findingsOf returns the findings on one measure, the clearest and largest first for each
// statistic. The rows are those of an overview.
func findingsOf(rows []scores.Row, m measure.Descriptor, c *claims) []finding {
	w := wording{models: len(scores.DistinctValues(rows, Measures{m}.ModelLabel)) > 1, data: len(scores.DistinctValues(rows, byData)) > 1, claims: c}
	var found []finding
	switch {
	case Layered(rows, m.Name):
		// Headline returns the statistics of which higher or lower is better, or all if there are
		// none.
		for _, s := range AcrossLayers(Headline(m)) {
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
		s := Headline(m)[0] // the other statistics say much the same
		found = ranked(w.predictions(SeriesOf(rows, m, s.Name), s))
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.evidence, a.evidence), cmp.Compare(a.rank, b.rank), cmp.Compare(b.weight, a.weight))
	})
	return found
}

// ranked sets the ranks of findings by weight.
func ranked(found []finding) []finding {
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.evidence, a.evidence), cmp.Compare(b.weight, a.weight))
	})
	for i := range found {
		found[i].rank = i
	}
	return found
}

// AcrossLayers returns the statistics that can be compared across layers: those that do not depend
// on the scale of activations or factors, or all if each does. Baselines are excluded.
func AcrossLayers(all []measure.StatisticDescriptor) []measure.StatisticDescriptor {
	var free []measure.StatisticDescriptor
	for _, s := range all {
		if !s.HasScale() && !strings.HasPrefix(s.Name, "baseline-") {
			free = append(free, s)
		}
	}
	if free == nil {
		return all
	}
	return free
}

// A wording specifies which names a sentence must contain to be unambiguous.
type wording struct {
	models bool   // name models, because there are several
	data   bool   // name data sets, because there are several
	points string // noun for the points of a curve: "layers" (default) or "values"
	claims *claims
}

func (w wording) noun() string { return cmp.Or(w.points, "layers") }

// where returns, for instance, "for hue of resnet20 under quarter on cifar10", with only the parts
// that are needed: factor, model, transformation, data and variant.
func (w wording) where(s Series) string {
	var parts []string
	if s.Factor != "" {
		parts = append(parts, "for "+Shorten(strings.Replace(s.Factor, "=", " ", 1), maxNameWidth))
	}
	if w.models {
		parts = append(parts, "of "+Shorten(s.Model, maxNameWidth))
	}
	if s.Transform != "" {
		parts = append(parts, "under "+Shorten(s.Transform, maxNameWidth))
	}
	if w.data && s.Data != "" {
		parts = append(parts, "on "+Shorten(s.Data, maxNameWidth))
	}
	if s.Variant != "" {
		parts = append(parts, "("+Shorten(s.Variant, maxNameWidth)+")")
	}
	return strings.Join(parts, " ")
}

// steepest describes the model whose curve over depth changes most; models holds one curve of each
// model. If every model has a single layer, it compares the models instead.
func (w wording) steepest(models []Series, about measure.StatisticDescriptor) finding {
	if len(models) > 1 && !slices.ContainsFunc(models, func(s Series) bool { return len(s.Rows) > 1 || s.IsGrid() }) {
		return w.comparison(models, about)
	}
	best := w.depth(models[0], about)
	for _, s := range models[1:] {
		if f := w.depth(s, about); f.evidence > best.evidence || f.evidence == best.evidence && f.weight > best.weight {
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
	// If higher is better, highest leaves out scores at the level of shuffled pairs.
	low, high := s.lowest(), s.highest(about.Direction)
	first, last := s.Rows[0], s.Rows[len(s.Rows)-1]
	span := high.Value - low.Value
	differ := w.claims.evidence(&low, &high, pairs(len(s.Rows)))
	subject := capitalise(strings.Join(nonEmpty(about.Title, w.where(s)), " "))
	depths := make(map[int]bool)
	for _, r := range s.Rows {
		depths[r.Depth] = true
	}
	// With two or more layers at a depth, on average, the points do not form a line.
	joined := len(s.Rows) < 2*len(depths)
	var predicate string
	switch rho := s.trend(); { // Spearman's correlation of depth and value
	case len(s.Rows) == 1:
		predicate = fmt.Sprintf("is %s at %s", Number(first.Value), layer(first))
	case Number(low.Value) == Number(high.Value):
		predicate = fmt.Sprintf("is %s at all %d %s", Number(low.Value), len(s.Rows), w.noun())
	case span <= minSpan*width(about, low.Value, high.Value):
		predicate = fmt.Sprintf("stays between %s and %s at all %d %s", Number(low.Value), Number(high.Value), len(s.Rows), w.noun())
	case differ == insignificant:
		span = 0
		predicate = fmt.Sprintf("is %s to %s at %d %s, a difference that may be chance", Number(low.Value), Number(high.Value), len(s.Rows), w.noun())
	case joined && rho <= -minTrend && first.Value > last.Value:
		predicate = fmt.Sprintf("falls from %s at %s to %s at %s", Number(first.Value), layer(first), Number(last.Value), layer(last))
	case joined && rho >= minTrend && first.Value < last.Value:
		predicate = fmt.Sprintf("rises from %s at %s to %s at %s", Number(first.Value), layer(first), Number(last.Value), layer(last))
	default:
		predicate = fmt.Sprintf("is highest at %s (%s) and lowest at %s (%s)", layer(high), Number(high.Value), layer(low), Number(low.Value))
	}
	f := finding{text: subject + " " + predicate + chance(s, about.Direction, w.noun()) + ".", weight: span / width(about, low.Value, high.Value)}
	f.evidence = differ
	if !slices.ContainsFunc(s.Rows, func(r scores.Row) bool {
		return !(finite(r.Null) && about.Direction != measure.Neutral && isAtChance(r, about.Direction))
	}) {
		f.weight, f.evidence = 0, insignificant // all are at their null
	}
	return f
}

// width returns the length of a statistic's range, which starts at 0 if only the maximum is known.
// Without a range it returns the larger magnitude of two values.
func width(s measure.StatisticDescriptor, low, high float64) float64 {
	switch {
	case s.Range.Bounded():
		return s.Range.High - s.Range.Low
	case s.Range.High > 0 && !math.IsInf(s.Range.High, 1):
		return s.Range.High
	}
	return max(math.Abs(low), math.Abs(high), math.SmallestNonzeroFloat64)
}

// chance returns a clause on the number of layers at which a score is no better than chance. That
// is so if the null lies within the interval or on its better side; without an interval, if the
// null is at least as good as the value. noun is the noun for the points of a curve.
func chance(s Series, d measure.Direction, noun string) string {
	var atNull, withNull int
	for _, r := range s.Rows {
		if math.IsNaN(r.Null) || d == measure.Neutral {
			continue
		}
		withNull++
		if isAtChance(r, d) {
			atNull++
		}
	}
	switch {
	case atNull == 0:
		return ""
	case withNull == 1:
		return "; that is no better than chance"
	case atNull == len(s.Rows):
		return "; none of them does better than chance"
	default:
		if s.IsGrid() {
			noun = "pairs"
		}
		return fmt.Sprintf("; at %d of %d %s it is no better than chance", atNull, withNull, noun)
	}
}

// isAtChance reports whether a score with a null is no better than chance; see chance.
func isAtChance(r scores.Row, d measure.Direction) bool {
	near := r.Value // the worse end of the interval, if there is one
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

// accuracy describes the effect of transformations on accuracy: the change for a single model,
// otherwise the models with the largest and the smallest loss.
func (w wording) accuracy(rows []scores.Row, m measure.Descriptor) []finding {
	type key struct{ model, data, transform, factor string }
	keyOf := func(s Series) key { return key{s.Model, s.Data, s.Transform, s.Factor} }
	clean, drop := make(map[key]float64), make(map[key]scores.Row)
	for _, s := range SeriesOf(rows, m, "clean") {
		k := keyOf(s)
		k.transform = ""
		clean[k] = s.Rows[0].Value
	}
	for _, s := range SeriesOf(rows, m, "drop") {
		drop[keyOf(s)] = s.Rows[0]
	}
	cleanOf := func(s Series) (float64, bool) { // accuracy without the transformation
		k := keyOf(s)
		k.transform = ""
		v, known := clean[k]
		return v, known
	}
	changeOf := func(s Series) string {
		from, _ := cleanOf(s)
		to := s.Rows[0].Value
		if d := drop[keyOf(s)]; Number(from) != Number(to) && d.Low <= 0 && d.High >= 0 && d.Low < d.High {
			return fmt.Sprintf("is %s in place of %s, a difference within its interval", Number(to), Number(from))
		}
		return change(from, to)
	}
	lost := func(s Series) float64 {
		from, _ := cleanOf(s)
		return from - s.Rows[0].Value
	}
	var found []finding
	for _, models := range byCase(SeriesOf(rows, m, "moved")) { // differ in the model only
		models = slices.DeleteFunc(models, func(s Series) bool { _, known := cleanOf(s); return !known })
		if len(models) == 0 {
			continue
		}
		slices.SortStableFunc(models, func(a, b Series) int { return cmp.Compare(lost(b), lost(a)) })
		most, least := models[0], models[len(models)-1]
		var text string
		certainty := certain
		switch where := (wording{data: w.data}).where(most); {
		case len(models) == 1:
			text = strings.Join(nonEmpty("Accuracy", w.where(most)), " ") + " " + changeOf(most)
		case Number(lost(most)) == Number(lost(least)):
			text = fmt.Sprintf("%s falls by %s in each of %d models", strings.Join(nonEmpty("Accuracy", where), " "), Number(lost(most)), len(models))
		case drop[keyOf(most)].Measure != "" && w.evidence(drop[keyOf(least)], drop[keyOf(most)], pairs(len(models))) == insignificant:
			certainty = insignificant
			text = fmt.Sprintf("%s falls by %s to %s in %d models, a difference that may be chance",
				strings.Join(nonEmpty("Accuracy", where), " "), Number(lost(least)), Number(lost(most)), len(models))
		default:
			text = fmt.Sprintf("%s suffers most in %s, where it %s, and least in %s, where it %s",
				strings.Join(nonEmpty("Accuracy", where), " "),
				Shorten(most.Model, maxNameWidth), changeOf(most),
				Shorten(least.Model, maxNameWidth), changeOf(least))
		}
		if d, known := drop[keyOf(most)]; len(models) == 1 && known && d.Low <= 0 && d.High >= 0 {
			certainty = insignificant
		}
		found = append(found, finding{text: text + ".", weight: math.Abs(lost(most)), evidence: certainty})
	}
	return found
}

// change returns, for instance, "falls from 0.810 to 0.290".
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

// predictions compares one statistic of the predictions: between models under each transformation,
// or between transformations if there is one model.
func (w wording) predictions(all []Series, about measure.StatisticDescriptor) []finding {
	groups := byCase(all)
	if !w.models {
		groups = groupedBy(all, func(s Series) seriesCase { return seriesCase{"", s.Factor, s.Variant, s.Data} })
	}
	var found []finding
	for _, g := range groups {
		found = append(found, w.comparison(g, about))
	}
	return found
}

// comparison returns a sentence on the highest and the lowest series of a group.
func (w wording) comparison(group []Series, about measure.StatisticDescriptor) finding {
	if len(group) == 1 {
		s := group[0]
		r := s.Rows[0]
		text := fmt.Sprintf("%s is %s%s.", capitalise(strings.Join(nonEmpty(about.Title, w.where(s)), " ")), Number(r.Value), intervalClause(r))
		return finding{text: text, evidence: unknown}
	}
	high := slices.MaxFunc(group, func(a, b Series) int { return cmp.Compare(a.Rows[0].Value, b.Rows[0].Value) })
	low := slices.MinFunc(group, func(a, b Series) int { return cmp.Compare(a.Rows[0].Value, b.Rows[0].Value) })
	h, l := high.Rows[0], low.Rows[0]
	name, common, all := func(s Series) string { return "for " + Shorten(s.Model, maxNameWidth) }, group[0], "for each of %d models"
	if w.models {
		common = Series{Transform: common.Transform, Factor: common.Factor, Data: common.Data, Variant: common.Variant}
	} else {
		name, all = func(s Series) string { return "under " + Shorten(s.Transform, maxNameWidth) }, "under each of %d transformations"
		common = Series{Factor: common.Factor, Data: common.Data}
	}
	subject := capitalise(strings.Join(nonEmpty(about.Title, wording{data: w.data}.where(common)), " "))
	if Number(h.Value) == Number(l.Value) {
		return finding{text: fmt.Sprintf("%s is %s "+all+".", subject, Number(h.Value), len(group))}
	}
	certainty := w.evidence(l, h, pairs(len(group)))
	if certainty == insignificant {
		return finding{text: fmt.Sprintf("%s is %s to %s "+all+", a difference that may be chance.", subject, Number(l.Value), Number(h.Value), len(group))}
	}
	text := fmt.Sprintf("%s is highest %s (%s) and lowest %s (%s)", subject, name(high), Number(h.Value), name(low), Number(l.Value))
	if d := about.Direction; d != measure.Neutral && finite(h.Null) && finite(l.Null) && isAtChance(h, d) && isAtChance(l, d) {
		return finding{text: text + "; neither is better than chance."}
	}
	return finding{text: text + ".", weight: (h.Value - l.Value) / width(about, l.Value, h.Value), evidence: certainty}
}

// evidence returns how certain it is that two scores differ, the most different of among pairs.
func (w wording) evidence(a, b scores.Row, among int) evidence {
	return w.claims.evidence(&a, &b, among)
}

// intervalClause returns, for instance, " (95 % interval 0.60 to 0.62)", or "" without an interval.
func intervalClause(r scores.Row) string {
	if math.IsNaN(r.Low) || math.IsNaN(r.High) {
		return ""
	}
	return fmt.Sprintf(" (95 %% interval %s to %s)", Number(r.Low), Number(r.High))
}

// layer returns the name of a layer without exportSuffix.
func layer(r scores.Row) string {
	return Shorten(strings.TrimSuffix(r.Layer, exportSuffix), maxNameWidth)
}

// capitalise leaves names such as mAP as they are.
func capitalise(s string) string {
	if s == "" || len(s) > 1 && s[1] >= 'A' && s[1] <= 'Z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func nonEmpty(items ...string) []string {
	return slices.DeleteFunc(items, func(s string) bool { return s == "" })
}
