package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// A Matrix shows one statistic of all models on a data set: a line for each model and a column for
// each transformation, or whatever else the rows compare.
type Matrix struct {
	Section   string `json:"section"` // key of its section, a part of the report
	Statistic string `json:"statistic"`
	Title     string `json:"title"`   // of the statistic
	About     string `json:"about"`   // description of the statistic
	Meaning   string `json:"meaning"` // the first sentence of About
	Toward    string `json:"toward"`  // the meaning of a high or a low value
	Lower     bool   `json:"lower"`   // lower is better
	Layer     bool   `json:"layer"`   // the scores are of the deepest layer of each model
	Data      string `json:"data"`
	Across    Field  `json:"across"` // field that the columns show
	Null      string `json:"null"`   // what the null, the value by chance, is; "" if there is none
	// Low and High are the ends of the scale of values.
	Low     float64      `json:"low"`
	High    float64      `json:"high"`
	Models  []string     `json:"models"`
	Columns []string     `json:"columns"`
	Cells   []MatrixCell `json:"cells"`
	// Clean holds the accuracy, mAP or mean IoU of each model without a transformation, such as
	// "0.804 [0.767, 0.836]" or, on data without labels, its agreement with the first; or is empty.
	// CleanName says which.
	Clean     []string `json:"clean"`
	CleanName string   `json:"cleanName"`

	about    measure.StatisticDescriptor
	rows     []scores.Row // all rows of the report, which MatrixCell.Row indexes
	question string       // the second part of the section's title, if the measure has two sections
}

// A MatrixCell is a score of a matrix.
type MatrixCell struct {
	Model  int `json:"model"`
	Column int `json:"column"`
	Row    int `json:"row"` // index of the score
	// Shade is how far the score is from its null, or from the worse end of its range, to the
	// better end: 0 to 1.
	Shade float64 `json:"shade"`
	// Chance says that the score is no better than its null, after the correction for the number of
	// cells. It is false if neither end of the statistic is better.
	Chance bool `json:"chance"`
	// Curve holds the indices of the scores under the single values of the transformation, in their
	// order, if these are numbers; the score of the cell is their mean. Otherwise it is empty.
	Curve []int `json:"curve,omitempty"`
}

// Matrices returns the matrices of the rows: for each data set one of each section, that of the
// statistic that summarises the section. The first matrix is the headline of the report. Matrices
// with a column for each transformation come first. Among these, as among the others, statistics of
// predictions come before those of layers, and then those with a null before others; the accuracy of
// boxes and class maps comes before all. known holds the descriptors of the measures.
func Matrices(rows []scores.Row, known []measure.Descriptor) []Matrix {
	overview := overviewIndices(rows)
	var out []Matrix
	for _, s := range Sections(rows, known) {
		var indices []int
		for _, i := range overview {
			if s.Has(&rows[i]) && finite(rows[i].Value) {
				indices = append(indices, i)
			}
		}
		about, ok := headlineOf(s, rows, indices)
		if !ok || s.Name == scores.BreakingDescriptor().Name { // of breaking points each tolerance has its own
			continue
		}
		indices = slices.DeleteFunc(indices, func(i int) bool { return rows[i].Statistic != about.Name })
		for _, group := range groupedBy(indices, func(i int) string { return rows[i].Data }) {
			out = append(out, newMatrix(s, about, rows, group))
		}
	}
	distinguishTitles(out)
	curves := newCurves(rows)
	first, agreement := cleanAgreements(rows)
	clean := map[string]map[[2]string]scores.Row{"agreement with " + first: agreement}
	names := slices.Sorted(maps.Values(cleanStatistics))
	for _, name := range names {
		clean[name] = cleanScores(rows, name)
	}
	for i := range out {
		for _, name := range append(names, "agreement with "+first) {
			if out[i].Clean == nil {
				out[i].setClean(name, clean[name])
			}
		}
		for k := range out[i].Cells {
			c := &out[i].Cells[k]
			c.Curve = curves.of(&rows[c.Row])
		}
	}
	rank := func(m Matrix) int { // lower ranks come first
		n := 0
		switch {
		case m.Section == denseAccuracy: // boxes that stay may all be wrong
			n--
		case m.Null == "":
			n++
		}
		if m.Layer {
			n += 2
		}
		if m.Across != "name" { // the columns are not transformations
			n += 4
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b Matrix) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// denseAccuracy is the measure of the accuracy of boxes and class maps.
const denseAccuracy = "dense-accuracy"

// distinguishTitles gives matrices of one statistic in two sections of a measure different titles.
func distinguishTitles(all []Matrix) {
	sections := map[string]string{}
	twice := map[string]bool{}
	for _, m := range all {
		if s, seen := sections[m.Title]; seen && s != m.Section {
			twice[m.Title] = true
		}
		sections[m.Title] = m.Section
	}
	for i := range all {
		if m := &all[i]; twice[m.Title] {
			m.Title = strings.Join(nonEmpty(m.Title, m.question), ", ")
		}
	}
}

// headlineOf returns the statistic that summarises a section: one with a direction if the measure
// has any, preferably with a null, and preferably from 0 to 1 with higher values better. indices
// are those of the section's rows. Statistics of untransformed samples are not considered.
func headlineOf(s Section, rows []scores.Row, indices []int) (measure.StatisticDescriptor, bool) {
	var best measure.StatisticDescriptor
	bestRank := -1
	for _, t := range AcrossLayers(Headline(s.Descriptor)) {
		n := 0
		if t.Range == measure.ZeroToOne && t.Direction == measure.Higher {
			n++
		}
		first := slices.IndexFunc(indices, func(i int) bool { return rows[i].Statistic == t.Name })
		if first < 0 || t.Untransformed {
			continue
		}
		if finite(rows[indices[first]].Null) {
			n += 2
		}
		if n > bestRank {
			best, bestRank = t, n
		}
	}
	return best, bestRank >= 0
}

// newMatrix returns the matrix of one statistic of a section on one data set. indices are those of
// its rows.
func newMatrix(s Section, about measure.StatisticDescriptor, rows []scores.Row, indices []int) Matrix {
	m := Matrix{Section: s.Key, Statistic: about.Name, Title: about.Title, About: about.About, Meaning: firstSentence(about.About), Toward: DirectionNote(s.Descriptor, about),
		Lower: about.Direction == measure.Lower, Data: rows[indices[0]].Data, Across: "name", about: about, rows: rows}
	_, m.question, _ = strings.Cut(s.Title, ": ")
	measures := Measures{s.Descriptor}
	down := Field("model")
	// A cell shows one score: of all samples, of the first variant, of the deepest layer, and the
	// mean over the values of the parameter or, without a mean, the first value.
	variant := rows[indices[0]].Variant
	indices = slices.DeleteFunc(slices.Clone(indices), func(i int) bool { return rows[i].Variant != variant })
	if slices.ContainsFunc(indices, func(i int) bool { return rows[i].Layer != "" }) {
		m.Layer = Layered(rows, s.Name)
		indices = deepestRows(rows, indices, true)
	}
	field := func(f Field) func(i int) string { return func(i int) string { return f.Of(measures, &rows[i]) } }
	switch {
	case len(distinctOf(indices, field("compared"))) > 1 || rows[indices[0]].OtherModel != "":
		down, m.Across = "reference", "compared"
	case len(distinctOf(indices, field("name"))) > 1 || rows[indices[0]].Transform != "":
	case len(distinctOf(indices, field("factor"))) > 1:
		m.Across = "factor"
	}
	m.Models, m.Columns = distinctOf(indices, field(down)), distinctOf(indices, field(m.Across))
	nulls := false
	seen := map[[2]int]bool{}
	for _, i := range indices {
		r := &rows[i]
		place := [2]int{slices.Index(m.Models, down.Of(measures, r)), slices.Index(m.Columns, m.Across.Of(measures, r))}
		if seen[place] || isSelf(*r) && len(m.Models) > 1 && down == "reference" {
			continue
		}
		seen[place] = true
		nulls = nulls || finite(r.Null)
		m.Cells = append(m.Cells, MatrixCell{Model: place[0], Column: place[1], Row: i, Chance: finite(r.Null) && about.Direction != measure.Neutral && isAtChance(*r, about.Direction)})
	}
	if nulls {
		m.Null = cmp.Or(about.Null, "chance")
		m.correctChance()
	}
	m.scale()
	return m
}

// setClean sets Clean and CleanName, if some model has such a score.
func (m *Matrix) setClean(name string, known map[[2]string]scores.Row) {
	texts := make([]string, len(m.Models))
	any := false
	for i, model := range m.Models {
		if r, ok := known[[2]string{model, m.Data}]; ok {
			texts[i], any = strings.Join(nonEmpty(Number(r.Value), Interval(r.Low, r.High)), " "), true
		}
	}
	if any {
		m.Clean, m.CleanName = texts, name
	}
}

// correctChance sets Chance of cells that are better than their null only before the correction for
// the number of cells.
func (m *Matrix) correctChance() {
	p := make([]float64, len(m.Cells))
	for i, c := range m.Cells {
		p[i] = chanceP(&m.rows[c.Row])
	}
	for i, adjusted := range scores.Holm(p) {
		c := &m.Cells[i]
		c.Chance = c.Chance || m.about.Direction != measure.Neutral && adjusted >= scores.Level
	}
}

// chanceP returns the p-value of the hypothesis that a score is its null; NaN without one or an
// interval. Rows of earlier versions have none.
func chanceP(r *scores.Row) float64 {
	if r.P > 0 {
		return r.P
	}
	half := r.High - r.Value // on the side of the null
	if r.Null < r.Value {
		half = r.Value - r.Low
	}
	return resample.PValue(r.Null-r.Value, half, measure.MaxGroups-1)
}

// scale sets the ends of the scale and the shades.
func (m *Matrix) scale() {
	m.Low, m.High = m.about.Range.Low, m.about.Range.High
	if !m.about.Range.Bounded() {
		low, high := math.Inf(1), math.Inf(-1)
		for _, c := range m.Cells {
			for _, v := range []float64{m.rows[c.Row].Value, m.rows[c.Row].Low, m.rows[c.Row].High, m.rows[c.Row].Null} {
				if finite(v) {
					low, high = min(low, v), max(high, v)
				}
			}
		}
		if finite(m.Low) {
			low = m.Low
		}
		if finite(m.High) {
			high = m.High
		}
		m.Low, m.High = widenRange(low, high)
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		r := m.rows[c.Row]
		worst, best := m.Low, m.High
		if m.about.Direction == measure.Lower {
			worst, best = best, worst
		}
		if finite(r.Null) {
			worst = r.Null
		}
		if worst != best {
			c.Shade = min(1, max(0, (r.Value-worst)/(best-worst)))
		}
		if c.Chance {
			c.Shade = 0
		}
	}
}

// firstSentence returns a text up to its first full stop that a space or the end follows.
func firstSentence(text string) string {
	if i := strings.Index(text, ". "); i >= 0 {
		return text[:i+1]
	}
	return text
}

// deepestRows returns the rows of the deepest layer of each model or pair of models; of several
// layers as deep, those of the last one. If partner is set, these are compared with one layer only.
func deepestRows(rows []scores.Row, indices []int, partner bool) []int {
	type pair struct{ model, other string }
	last := map[pair]*scores.Row{}
	for _, i := range indices {
		p := pair{rows[i].Model, rows[i].OtherModel}
		if known := last[p]; known == nil || rows[i].Depth >= known.Depth {
			last[p] = &rows[i]
		}
	}
	return slices.DeleteFunc(slices.Clone(indices), func(i int) bool {
		l := last[pair{rows[i].Model, rows[i].OtherModel}]
		return rows[i].Layer != l.Layer || partner && rows[i].OtherLayer != l.OtherLayer
	})
}

// A CurvePanel is a statistic whose curves over depth the first screen of the report shows.
type CurvePanel struct {
	Section   string `json:"section"` // its key, see Section
	Statistic string `json:"statistic"`
	Title     string `json:"title"` // of the statistic
}

// maxPanels is the maximum number of panels of curves on the first screen.
const maxPanels = 4

// CurvePanels returns up to maxPanels statistics for curves over depth: those of layers that can be
// compared across layers and, if the measure has such statistics, have a direction. The first one
// of each section comes first, then the second ones. Sections in which a layer is compared with
// several others have none.
func CurvePanels(rows []scores.Row, known []measure.Descriptor) []CurvePanel {
	var bySection [][]CurvePanel
	for _, s := range Sections(rows, known) {
		of := s.Of(rows)
		if !slices.ContainsFunc(of, func(r scores.Row) bool { return r.Layer != "" }) || isGrid(of) || !Field("layer").varies(Measures{s.Descriptor}, of) {
			continue
		}
		var panels []CurvePanel
		for _, t := range AcrossLayers(Headline(s.Descriptor)) {
			panels = append(panels, CurvePanel{s.Key, t.Name, t.Title})
		}
		bySection = append(bySection, panels)
	}
	var out []CurvePanel
	for i := range maxPanels { // the i-th statistic of each section
		for _, panels := range bySection {
			if i < len(panels) && len(out) < maxPanels {
				out = append(out, panels[i])
			}
		}
	}
	return out
}
