package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Statement is a sentence about the rows of scores that a chart shows.
type Statement struct {
	Kind   string  `json:"kind"`   // CurveStatement, GapStatement or ExtremesStatement
	Text   string  `json:"text"`   // one or two sentences
	Weight float64 `json:"weight"` // of a curve, the size of the effect relative to the statistic's range
	Rows   []int   `json:"rows"`   // indices of the rows
}

const (
	CurveStatement = "curve" // how one curve changes; for charts that draw all of its rows
	// Where two curves differ most; for charts that draw only these two.
	GapStatement = "gap"
	// Which rows are highest and lowest; for charts that draw only these rows.
	ExtremesStatement = "extremes"
)

// maxStatementRows limits the total number of rows that statements refer to, and so the size of a
// page. Each section has an equal share, and what the sections before it left of theirs.
const maxStatementRows = 200_000

// Statements returns the sentences for charts of the rows, by fixed rules.
func Statements(rows []scores.Row, known []measure.Descriptor, replicates *Replicates) []Statement {
	b := statementBuilder{rows: rows, measures: Describe(rows, known), levels: Levels(rows)}
	sections := Sections(rows, known)
	for i, s := range sections {
		b.maxUsed = maxStatementRows * (i + 1) / len(sections)
		before := b
		b = withClaims(replicates, func(c *claims) statementBuilder { // a section is a family of claims
			made := before
			made.claims, made.out = c, slices.Clip(before.out)
			made.section(s)
			return made
		})
	}
	return b.out
}

type statementBuilder struct {
	rows     []scores.Row
	measures Measures // of rows
	levels   []Level  // of rows: whether a row summarises others, such as those of single trials
	names    wording  // which names a sentence of the current section must contain

	claims   *claims
	out      []Statement
	rowsUsed int // number of rows that the statements refer to
	maxUsed  int // limit of rowsUsed
}

// add appends a statement unless the rows of all statements would exceed maxUsed.
func (b *statementBuilder) add(kind, text string, weight float64, rows []int) {
	if b.rowsUsed+len(rows) <= b.maxUsed {
		b.out = append(b.out, Statement{kind, text, weight, rows})
		b.rowsUsed += len(rows)
	}
}

// section adds the statements on the rows of a section.
func (b *statementBuilder) section(section Section) {
	m := section.Descriptor
	label := Measures{m}.ModelLabel
	b.names = wording{models: len(scores.DistinctValues(b.rows, label)) > 1, data: len(scores.DistinctValues(b.rows, byData)) > 1, claims: b.claims}
	layers := Layered(section.Of(b.rows), m.Name)
	for _, s := range m.Statistics {
		var indices []int
		for i := range b.rows {
			r := &b.rows[i]
			if b.levels[i] >= OverTrial && section.Has(r) && r.Statistic == s.Name && finite(r.Value) {
				indices = append(indices, i)
			}
		}
		if layers {
			b.curves(indices, m, s, "layers")
		}
		b.curves(indices, m, s, "values")
		b.extremes(indices, m, s, layers)
	}
}

// curves adds a statement for each curve, and for each pair of curves of two models. over is what a
// curve runs along: "layers", or "values" of the transformation's parameter.
func (b *statementBuilder) curves(indices []int, m measure.Descriptor, s measure.StatisticDescriptor, over string) {
	type curve struct {
		series Series
		rows   []int // indices of the series' rows
	}
	names := b.names
	names.points = over
	label := Measures{m}.ModelLabel
	key := func(i int) [7]string {
		r := &b.rows[i]
		fixed := [2]string{r.Parameter} // what all points of a curve share: their parameter, or their layers
		if over == "values" {
			fixed = [2]string{r.Layer, r.OtherLayer}
		}
		return [7]string{label(r), r.Data, r.Transform, r.Factor, r.Variant, fixed[0], fixed[1]}
	}
	var curves []curve
	for _, group := range groupedBy(indices, key) {
		if over == "values" {
			group = slices.DeleteFunc(slices.Clone(group), func(i int) bool { return b.rows[i].Parameter == "" })
			slices.SortStableFunc(group, func(i, j int) int { return byNumber(b.rows[i].Parameter, b.rows[j].Parameter) })
			if len(group) < 2 {
				continue
			}
		} else {
			slices.SortStableFunc(group, func(i, j int) int { return b.rows[i].Depth - b.rows[j].Depth })
		}
		first := &b.rows[group[0]]
		c := curve{Series{Model: label(first), Data: first.Data, Transform: transformLabel(first), Factor: first.Factor, Variant: first.Variant}, group}
		for k, i := range group {
			r := b.rows[i]
			if over == "values" { // wording.depth and gap read the place of a point from Layer and Depth
				c.series.Transform = r.Transform
				r.Layer, r.OtherLayer, r.Depth = r.Parameter, "", k
			}
			c.series.Rows = append(c.series.Rows, r)
		}
		f := names.depth(c.series, s)
		b.add(CurveStatement, f.text, f.weight, group)
		curves = append(curves, c)
	}
	for _, pair := range groupedBy(curves, func(c curve) seriesCase { return c.series.withoutModel() }) {
		// In a grid a layer is compared with several others.
		if len(pair) == 2 && !pair[0].series.IsGrid() && !pair[1].series.IsGrid() {
			if text := b.gap(pair[0].series, pair[1].series); text != "" {
				b.add(GapStatement, text, 0, slices.Concat(pair[0].rows, pair[1].rows))
			}
		}
	}
}

// gap returns a sentence on where two curves differ most, or "" if they have too few points in
// common.
func (builder *statementBuilder) gap(a, b Series) string {
	byDepth := make(map[int]scores.Row)
	for _, r := range b.Rows {
		byDepth[r.Depth] = r
	}
	common, widest := 0, [2]scores.Row{}
	for _, r := range a.Rows {
		other, ok := byDepth[r.Depth]
		if !ok {
			continue
		}
		common++
		if common == 1 || math.Abs(r.Value-other.Value) > math.Abs(widest[0].Value-widest[1].Value) {
			widest = [2]scores.Row{r, other}
		}
	}
	if common == 0 || 2*common < min(len(a.Rows), len(b.Rows)) {
		return ""
	}
	p, q := widest[0], widest[1]
	where := layer(p)
	if layer(q) != where {
		where += " and " + layer(q)
	}
	text := fmt.Sprintf("They are furthest apart at %s (%s %s, %s %s)", where, Shorten(a.Model, maxNameWidth), Number(p.Value), Shorten(b.Model, maxNameWidth), Number(q.Value))
	if builder.claims.evidence(&p, &q, common) == insignificant {
		text += ", a difference within their intervals"
	}
	return text + "."
}

// statementFields are the fields in which the rows of a chart may differ.
var statementFields = []Field{"variant", "model", "layer", "other", "data", "factor", "name", "parameter"}

// besideLayers lists the fields that charts combine with the layer.
var besideLayers = []Field{"other", "model", "factor", "name", "parameter"}

// extremes adds statements on the highest and the lowest row, as for bar charts and heat maps: one
// for each field or pair of fields in which rows differ, and each group of rows that agree in all
// other fields. If layer is not one of the fields, the deepest layer of each model is used; if
// parameter is not, the row for all its values. The only set of three fields is factor,
// transformation (name) and parameter, for charts of the parts of each transformation's range (see
// Parts). layers says that the rows are of layers.
func (b *statementBuilder) extremes(indices []int, m measure.Descriptor, s measure.StatisticDescriptor, layers bool) {
	if len(indices) == 0 {
		return
	}
	var varying []Field
	for _, d := range statementFields {
		if slices.ContainsFunc(indices, func(i int) bool { return d.Of(b.measures, &b.rows[i]) != d.Of(b.measures, &b.rows[indices[0]]) }) {
			varying = append(varying, d)
		}
	}
	summarised := slices.DeleteFunc(slices.Clone(indices), func(i int) bool { return b.levels[i] != OverValues })
	deepest := summarised
	if layers {
		deepest = deepestRows(b.rows, summarised, false)
	}
	sets := [][]Field{nil} // nil: groups of one row
	for i, d := range varying {
		if d != "layer" || m.Probes { // Probes: the scores are those of probes
			sets = append(sets, []Field{d})
		}
		for _, e := range varying[i+1:] {
			if d != "layer" && e != "layer" || m.Probes || slices.Contains(besideLayers, d) || slices.Contains(besideLayers, e) {
				sets = append(sets, []Field{d, e})
			}
		}
	}
	has := slices.Contains[[]Field]
	parts := slices.DeleteFunc(slices.Clone(varying), func(d Field) bool { return d != "factor" && d != "name" && d != "parameter" })
	if len(parts) == 3 {
		sets = append(sets, parts)
	}
	for _, set := range sets {
		from := summarised
		switch {
		case has(set, "parameter"):
			from = slices.DeleteFunc(slices.Clone(indices), func(i int) bool { return b.rows[i].Parameter == "" })
		case has(set, "layer"):
		default:
			from = deepest
		}
		if has(set, "parameter") && layers && !has(set, "layer") {
			from = deepestRows(b.rows, from, false)
		}
		fixed := slices.DeleteFunc(slices.Clone(varying), func(d Field) bool {
			return has(set, d) || d == "layer" || d == "parameter"
		})
		key := func(i int) string {
			var out []string
			for _, d := range fixed {
				out = append(out, d.Of(b.measures, &b.rows[i]))
			}
			return strings.Join(out, "\x00")
		}
		for _, group := range groupedBy(from, key) {
			b.add(ExtremesStatement, b.highestAndLowest(group, set), 0, group)
		}
	}
}

// highestAndLowest returns a sentence on the rows with the highest and the lowest value, or on all
// rows if their values are equal. For two fields it adds how two series compare, for three how many
// intervals exclude the null. set holds the fields in which the rows may
// differ.
func (b *statementBuilder) highestAndLowest(indices []int, set []Field) string {
	compared := slices.DeleteFunc(slices.Clone(indices), func(i int) bool { return isSelf(b.rows[i]) })
	if len(compared) == 0 {
		compared = indices
	}
	high, low := compared[0], compared[0]
	for _, i := range compared {
		if b.rows[i].Value > b.rows[high].Value {
			high = i
		}
		if b.rows[i].Value < b.rows[low].Value {
			low = i
		}
	}
	name := func(i int) string { return b.nameIn(&b.rows[i], set) }
	if len(indices) == 1 {
		if name(high) == "" {
			return fmt.Sprintf("It is %s.", Number(b.rows[high].Value))
		}
		return fmt.Sprintf("It is %s for %s.", Number(b.rows[high].Value), name(high))
	}
	if equal := Number(b.rows[high].Value); equal == Number(b.rows[low].Value) {
		return fmt.Sprintf("It is %s for all %d.", equal, len(compared))
	}
	text := fmt.Sprintf("It is highest for %s (%s) and lowest for %s (%s).", name(high), Number(b.rows[high].Value), name(low), Number(b.rows[low].Value))
	if len(set) == 3 {
		return text + b.beyondChance(indices)
	}
	if len(set) == 2 && set[0] != "layer" {
		text += b.wins(indices, set[0], set[1])
	}
	return text
}

// nameIn returns the name of a row by the fields in which it differs from others, for instance "hue
// under shift at 0.5".
func (b *statementBuilder) nameIn(r *scores.Row, set []Field) string {
	text := ""
	for _, d := range set {
		value := d.Of(b.measures, r)
		if d == "factor" {
			value = strings.TrimPrefix(value, "class=")
		}
		if d == "name" && !slices.Contains(set, "parameter") {
			value = transformLabel(r)
		}
		value = Shorten(strings.TrimSuffix(value, exportSuffix), maxNameWidth)
		switch {
		case value == "":
		case text == "":
			text = value
		case d == "name" && slices.Contains(set, "factor"):
			text += " under " + value
		case d == "parameter":
			text += " at " + value
		default:
			text += ", " + value
		}
	}
	return text
}

// wins returns a sentence on how often one of two series is above the other, and how often
// significantly. series is the field by which the rows make two series, along the field whose
// values they have in common. It returns "" unless there are two series that differ.
func (b *statementBuilder) wins(indices []int, series, along Field) string {
	values := distinctOf(indices, func(i int) string { return series.Of(b.measures, &b.rows[i]) })
	if len(values) != 2 {
		return ""
	}
	common := 0
	var above, significant [2]int // per series
	for _, group := range groupedBy(indices, func(i int) string { return along.Of(b.measures, &b.rows[i]) }) {
		if len(group) != 2 {
			continue
		}
		common++
		high, low := &b.rows[group[0]], &b.rows[group[1]]
		if high.Value < low.Value {
			high, low = low, high
		}
		if high.Value == low.Value {
			continue
		}
		upper := slices.Index(values, series.Of(b.measures, high))
		above[upper]++
		if b.claims.evidence(low, high, 1) == certain {
			significant[upper]++
		}
	}
	most := 0
	if above[1] > above[0] {
		most = 1
	}
	switch {
	case above == [2]int{}:
		return ""
	case above[0] == above[1]:
		return fmt.Sprintf(" Each is above the other in %d of %d.", above[0], common)
	}
	return fmt.Sprintf(" %s is above the other in %d of %d, in %d of them by more than chance.",
		Shorten(values[most], maxNameWidth), above[most], common, significant[most])
}

// beyondChance returns a sentence on how many intervals exclude the null.
func (b *statementBuilder) beyondChance(indices []int) string {
	with, outside := 0, 0
	for _, i := range indices {
		r := b.rows[i]
		if !finite(r.Null) || !finite(r.Low) || !finite(r.High) {
			continue
		}
		with++
		if r.Null < r.Low || r.Null > r.High {
			outside++
		}
	}
	if with == 0 {
		return ""
	}
	return fmt.Sprintf(" In %d of %d cells the interval excludes the null.", outside, with)
}

// groupedBy groups items by key, in order of appearance.
func groupedBy[T any, K comparable](items []T, key func(T) K) [][]T {
	place := make(map[K]int)
	var groups [][]T
	for _, item := range items {
		k := key(item)
		i, seen := place[k]
		if !seen {
			i = len(groups)
			place[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], item)
	}
	return groups
}

// distinctOf returns the distinct values of a property of items, in order of appearance.
func distinctOf[T any](items []T, of func(T) string) []string {
	var out []string
	for _, item := range items {
		if v := of(item); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// DirectionNote explains a high or a low value of a statistic, for instance "Higher: better
// preserved.". It returns "" if neither is better.
func DirectionNote(m measure.Descriptor, s measure.StatisticDescriptor) string {
	better := "better preserved"
	switch {
	case m.Level == measure.PairLevel || m.Between != "" && m.Question == m.Between: // two representations are compared
		better = "more similar"
	case cleanStatistics[[2]string{m.Name, s.Name}] != "" || isMovedAccuracy(s.Name):
		better = "right more often"
	}
	switch s.Direction {
	case measure.Higher:
		return "Higher: " + better + "."
	case measure.Lower:
		return "Lower: " + better + "."
	}
	return ""
}
