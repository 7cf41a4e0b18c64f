// Package terminal prints the scores of a run as text tables.
//
//	err := terminal.Write(os.Stdout, result.Rows, result.Record, terminal.Options{Width: 120})
//
// Widths are in columns of the terminal. Names of models, layers and transformations come from
// untrusted files; control characters are removed from them.
package terminal

import (
	"io"
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Options are the options of Write and WriteFailures.
type Options struct {
	Width  int  // of the terminal, in columns; 0 means 100
	Colour bool // bold, faint and coloured text; without it, plain text
	All    bool // also tables of single statistics, with the best and the worst layer
	// Replicates pair the differences of scores of layers; may be nil.
	Replicates *report.Replicates
}

const (
	defaultWidth = 100
	longestName  = 48 // of a label that a table shows above its rows, in columns of the terminal
	longestList  = 12 // maximum number of warnings and of skipped measures
	// maxColumns is the maximum number of statistics side by side. If there are more, only those
	// with a direction are shown.
	maxColumns = 5
)

// Write prints the overview of a run: for each measure a matrix of the statistic that summarises
// it, models by transformations, then the best layers for some uses, skipped measures, warnings and
// failures. With Options.All, or if there is no matrix, tables of the single statistics follow.
func Write(w io.Writer, rows []scores.Row, rec scores.Record, o Options) error {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	p := printer{width: o.Width, style: newStyles(w, o.Colour), shown: report.Overview(rows)}
	p.heading(rec, rows)
	for _, alarm := range report.Alarms(rows, rec) {
		p.wrapped(p.style.warn, report.Printable(alarm.String()), 0)
	}
	matrices := report.Matrices(rows, rec.Measures)
	cells := 0
	for _, m := range matrices {
		p.matrix(m, rows)
		cells += len(m.Cells)
	}
	if o.All || len(matrices) == 0 {
		for _, m := range report.Describe(p.shown, rec.Measures) {
			p.measure(m)
		}
	} else if len(rows) > len(p.shown) || len(p.shown) > cells {
		p.line("")
		p.wrapped(p.style.faint, "Layers and further statistics: in the report, and with --all.", 0)
	}
	_, layers := report.Conclusions(rows, rec, o.Replicates)
	for i, best := range layers {
		if i == 0 {
			p.line("")
		}
		p.wrapped(p.style.plain, report.Printable(best.String()), 0)
	}
	p.notes("Skipped", report.SkipNotes(rec.Skipped), "place")
	p.notes("Warnings", report.WarningNotes(rows, rec.Warnings), "score")
	p.failed(rec.Failed)
	_, err := io.WriteString(w, p.out.String())
	return err
}

// Only the terminal's own 16 colours are used, because they fit its background.
type styles struct{ title, faint, warn, plain lipgloss.Style }

func newStyles(w io.Writer, colour bool) styles {
	r := lipgloss.NewRenderer(w)
	r.SetColorProfile(termenv.Ascii)
	r.SetHasDarkBackground(true) // set explicitly, so that the terminal is not queried
	if colour {
		r.SetColorProfile(termenv.ANSI)
	}
	s := r.NewStyle()
	return styles{title: s.Bold(true), faint: s.Faint(true), warn: s.Foreground(lipgloss.Color("3")), plain: s} // 3: yellow
}

type printer struct {
	out   strings.Builder
	width int
	style styles
	shown []scores.Row // the rows of an overview
}

func (p *printer) line(s string) { p.out.WriteString(s + "\n") }

// wrapped prints text wrapped to the width. All lines but the first are indented by indent columns.
func (p *printer) wrapped(style lipgloss.Style, text string, indent int) {
	for i, l := range report.Fold(text, p.width-indent) {
		pad := ""
		if i > 0 {
			pad = strings.Repeat(" ", indent)
		}
		p.line(pad + style.Render(l))
	}
}

// heading prints the name and size of a run, its progress, and the meaning of the signs.
func (p *printer) heading(rec scores.Record, rows []scores.Row) {
	p.wrapped(p.style.title, report.Printable(rec.Study)+" · "+report.Extent(rec, rows), 0)
	if s := report.Progress(rec); s != "" {
		p.wrapped(p.style.warn, s, 0)
	}
	if s := report.LeftOut(rec); s != "" {
		p.wrapped(p.style.warn, s, 0)
	}
	if len(rows) == 0 {
		p.line("There are no scores yet.")
		return
	}
	p.wrapped(p.style.faint, "↑ higher is more invariant, or more alike, ↓ lower is. In brackets: 95 % intervals. * no better than chance (the null).", 0)
}

// measure prints one table for a measure of predictions, and one for each statistic of a measure of
// layers.
func (p *printer) measure(m measure.Descriptor) {
	var tables []grid
	if report.Layered(p.shown, m.Name) {
		for _, s := range report.AcrossLayers(report.Headline(m)) {
			tables = append(tables, p.layers(m, s))
		}
	} else {
		tables = append(tables, p.predictions(m))
	}
	asked := false
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		p.line("")
		p.wrapped(p.style.title, strings.Join(append([]string{t.title}, t.caption...), " · "), 0)
		if m.Question != "" && !asked {
			p.wrapped(p.style.faint, m.Question, 0)
			asked = true
		}
		p.out.WriteString(t.render(p.width, p.style))
	}
}

// gridLabels are the headings of the labels of a row.
var gridLabels = []string{"model", "data", "transform", "factor", "variant"}

func labelsOf(s report.Series) []string {
	return []string{s.Model, s.Data, s.Transform, s.Factor, s.Variant}
}

// predictions returns a grid with a row for each of gridLabels, and a column for each statistic.
func (p *printer) predictions(m measure.Descriptor) grid {
	g := grid{title: strings.ToUpper(m.Name), labels: slices.Clone(gridLabels)}
	place := make(map[[5]string]int)
	statistics := m.Statistics
	if len(statistics) > maxColumns {
		statistics = report.Headline(m)
	}
	withNull := "" // the first statistic that has a null
	for column, s := range statistics {
		g.values = append(g.values, s.Name+arrow(s.Direction))
		for _, one := range report.SeriesOf(p.shown, m, s.Name) {
			k := [5]string(labelsOf(one))
			i, seen := place[k]
			if !seen {
				i = len(g.rows)
				place[k] = i
				g.rows = append(g.rows, gridRow{labels: labelsOf(one), values: make([]gridValue, len(statistics))})
			}
			v := valueOf(one.Rows[0])
			v.layer, v.other = "", "" // the same for all rows
			g.rows[i].values[column] = v
			if null := nullOf(one); null != "" && (withNull == "" || withNull == s.Name) {
				withNull = s.Name
				g.rows[i].null = null
			}
		}
	}
	if len(statistics) > 1 {
		g.nullOf = withNull
	}
	g.moveSharedLabels()
	g.caption = append(g.caption, "n = "+p.observations(m, statistics))
	return g
}

// layers returns a grid with a row for each of gridLabels, with the best and the worst layer.
func (p *printer) layers(m measure.Descriptor, s measure.StatisticDescriptor) grid {
	g := grid{
		title:  strings.ToUpper(m.Name) + " " + s.Name + arrow(s.Direction),
		labels: slices.Clone(gridLabels),
		values: []string{"best layer", "worst layer"},
	}
	if s.Direction == measure.Neutral {
		g.values = []string{"highest layer", "lowest layer"}
	}
	fewest, most := math.MaxInt, 0
	unit := "layer"
	for _, one := range report.SeriesOf(p.shown, m, s.Name) {
		if one.IsGrid() { // a layer is compared with several others
			one = one.WithoutSelf() // without comparisons of a layer with itself
			unit = "pair of layers"
			g.values = []string{"most alike", "least alike"}
		}
		fewest, most = min(fewest, len(one.Rows)), max(most, len(one.Rows))
		g.rows = append(g.rows, gridRow{labelsOf(one), extremes(one, s.Direction, unit), nullOf(one)})
	}
	g.moveSharedLabels()
	if most == 1 {
		g.mergeLayers()
	}
	g.caption = append(g.caption, unitsIn(fewest, most, unit), "n = "+p.observations(m, []measure.StatisticDescriptor{s}))
	return g
}

// extremes returns the best and the worst layer. unit is a key of pluralOf. Layers that all have
// the same value are returned once, unnamed.
func extremes(s report.Series, d measure.Direction, unit string) []gridValue {
	best, worst := valueOf(s.Best(d)), valueOf(s.Worst(d))
	if len(s.Rows) > 1 && best.value == worst.value {
		best.layer, best.other, best.interval = "at all "+unitsIn(len(s.Rows), len(s.Rows), unit), "", ""
		return []gridValue{best, {}}
	}
	return []gridValue{best, worst}
}

func (p *printer) observations(m measure.Descriptor, of []measure.StatisticDescriptor) string {
	low, high := math.MaxInt, 0
	for i := range p.shown {
		r := &p.shown[i]
		if r.Measure == m.Name && slices.ContainsFunc(of, func(s measure.StatisticDescriptor) bool { return s.Name == r.Statistic }) {
			low, high = min(low, r.N), max(high, r.N)
		}
	}
	return span(low, high)
}

// unitsIn returns a number with its noun: "1 layer", "20 layers", "18 to 20 layers".
func unitsIn(fewest, most int, unit string) string {
	if most != 1 {
		unit = pluralOf[unit]
	}
	return span(fewest, most) + " " + unit
}

var pluralOf = map[string]string{"layer": "layers", "pair of layers": "pairs of layers"}

func span(low, high int) string {
	if low == high {
		return report.Count(low)
	}
	return report.Count(low) + " to " + report.Count(high)
}

func arrow(d measure.Direction) string {
	return map[measure.Direction]string{measure.Higher: " ↑", measure.Lower: " ↓"}[d]
}

// nullOf returns the null as a number or a range over layers, or "" if there is none.
func nullOf(s report.Series) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range s.Rows {
		if !math.IsNaN(r.Null) {
			low, high = min(low, r.Null), max(high, r.Null)
		}
	}
	switch {
	case low > high:
		return ""
	case report.Number(low) == report.Number(high):
		return report.Number(low)
	default:
		return report.Number(low) + "–" + report.Number(high)
	}
}
