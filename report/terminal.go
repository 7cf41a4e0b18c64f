package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/noether-ml/noether/scores"
)

// Options say how a table is printed.
type Options struct {
	Width  int  // of the terminal, in cells; 0: 100
	Colour bool // bold, faint and coloured text; without it, plain text
}

const (
	defaultWidth = 100
	longestList  = 12 // of warnings and of skipped measures
	mostColumns  = 5  // of statistics side by side; of more, those that say how a measure turned out
)

// Terminal prints the overview of a run: for every measure a table of its statistics by model and transformation,
// with the most and the least invariant layer where it has layers, then what was skipped and warned of.
func Terminal(w io.Writer, rows []scores.Row, rec scores.Record, o Options) error {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	p := printer{width: o.Width, style: newStyles(w, o.Colour), shown: overview(rows)}
	p.heading(rec, rows)
	for _, m := range Describe(p.shown) {
		p.measure(m)
	}
	p.skipped(rec.Skipped)
	p.warnings(rows, rec.Warnings)
	p.failed(rec.Failed)
	_, err := io.WriteString(w, p.out.String())
	return err
}

// styles are the few ways of setting text. Only the terminal's own 16 colours are used, so that they fit its
// background, whatever that is.
type styles struct{ title, faint, warn, plain lipgloss.Style }

func newStyles(w io.Writer, colour bool) styles {
	r := lipgloss.NewRenderer(w)
	r.SetColorProfile(termenv.Ascii)
	r.SetHasDarkBackground(true) // settled here, so that nobody asks the terminal
	if colour {
		r.SetColorProfile(termenv.ANSI)
	}
	s := r.NewStyle()
	return styles{title: s.Bold(true), faint: s.Faint(true), warn: s.Foreground(lipgloss.Color("3")), plain: s}
}

type printer struct {
	out   strings.Builder
	width int
	style styles
	shown []scores.Row
}

func (p *printer) line(s string) { p.out.WriteString(s + "\n") }

// wrapped prints text over as many lines as the width asks for, the later ones indented.
func (p *printer) wrapped(style lipgloss.Style, text string, indent int) {
	for i, l := range folded(text, p.width-indent) {
		pad := ""
		if i > 0 {
			pad = strings.Repeat(" ", indent)
		}
		p.line(pad + style.Render(l))
	}
}

func (p *printer) heading(rec scores.Record, rows []scores.Row) {
	p.wrapped(p.style.title, printable(rec.Study)+" · "+extent(rec, rows), 0)
	if s := progress(rec); s != "" {
		p.wrapped(p.style.warn, s, 0)
	}
	if len(rows) == 0 {
		p.line("There are no scores yet.")
		return
	}
	p.wrapped(p.style.faint, "↑ higher is more invariant, or more alike, ↓ lower is. In brackets: 95 % intervals. Null: what chance gives.", 0)
}

// extent says how much a run holds: "3 models, 1 data set, 3 transforms, 5 measures, 1,234 scores".
func extent(rec scores.Record, rows []scores.Row) string {
	models, data := len(rec.Models), len(rec.Data)
	parts := []string{plural(max(models, len(distinct(rows, byModel))), "model"), plural(max(data, len(distinct(rows, byData))), "data set")}
	if n := len(distinct(rows, byTransform)); n > 0 { // films and gratings move by themselves
		parts = append(parts, plural(n, "transform"))
	}
	return strings.Join(append(parts, plural(len(distinct(rows, byMeasure)), "measure"), plural(len(rows), "score")), ", ")
}

// progress says that a run is unfinished, or that some of it failed, or nothing.
func progress(rec scores.Record) string {
	switch {
	case rec.Finished != nil && len(rec.Failed) > 0:
		return fmt.Sprintf("Incomplete: %s of %s cells are done, with %s. What follows holds for what is done; means that lack a value are left out. Run the study again to try what failed once more.",
			count(rec.Done), count(rec.Cells), plural(len(rec.Failed), "failure"))
	case rec.Finished != nil:
		return ""
	}
	return fmt.Sprintf("Unfinished: %s of %s cells are done. What follows holds for those; run the study again to go on.",
		count(rec.Done), count(rec.Cells))
}

// took is the time from start to finish, rounded for reading; "" for an unfinished run.
func took(rec scores.Record) string {
	if rec.Finished == nil || rec.Started.IsZero() {
		return ""
	}
	d := rec.Finished.Sub(rec.Started)
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// measure prints one table for a measure of predictions, and one for each statistic of a measure of layers.
func (p *printer) measure(m Measure) {
	var tables []grid
	if layered(p.shown, m.Name) {
		for _, s := range m.headline() {
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

// gridLabels head the columns of what series.labels returns.
var gridLabels = []string{"model", "data", "transform", "factor", "variant"}

func (s series) labels() []string { return []string{s.model, s.data, s.transform, s.factor, s.variant} }

// predictions has a row for each model, transformation, factor and data set, and a column for each statistic.
func (p *printer) predictions(m Measure) grid {
	type key struct{ model, data, transform, factor, variant string }
	g := grid{title: strings.ToUpper(m.Name), labels: slices.Clone(gridLabels)}
	place := make(map[key]int)
	statistics := m.Statistics
	if len(statistics) > mostColumns {
		statistics = m.headline()
	}
	for column, s := range statistics {
		g.values = append(g.values, s.Name+arrow(s.Direction))
		for _, one := range seriesOf(p.shown, m.Name, s.Name) {
			k := key{one.model, one.data, one.transform, one.factor, one.variant}
			i, seen := place[k]
			if !seen {
				i = len(g.rows)
				place[k] = i
				g.rows = append(g.rows, gridRow{
					labels: one.labels(),
					values: make([]gridValue, len(statistics)),
				})
			}
			v := valueOf(one.rows[0])
			v.layer, v.other = "", "" // the same for all
			g.rows[i].values[column] = v
		}
	}
	g.hoist()
	g.caption = append(g.caption, "n = "+p.observations(m, statistics))
	return g
}

// layers has a row for each model, transformation, factor and data set, with the best and the worst layer.
func (p *printer) layers(m Measure, s Statistic) grid {
	g := grid{
		title:  strings.ToUpper(m.Name) + " " + s.Name + arrow(s.Direction),
		labels: slices.Clone(gridLabels),
		values: []string{"best layer", "worst layer"},
	}
	if s.Direction == Neutral {
		g.values = []string{"highest layer", "lowest layer"}
	}
	fewest, most := math.MaxInt, 0
	unit := "layer"
	for _, one := range seriesOf(p.shown, m.Name, s.Name) {
		if one.isGrid() {
			one = one.withoutSelf()
			unit = "pair of layers"
			g.values = []string{"most alike", "least alike"}
		}
		fewest, most = min(fewest, len(one.rows)), max(most, len(one.rows))
		g.rows = append(g.rows, gridRow{
			labels: one.labels(),
			values: []gridValue{valueOf(one.best(s.Direction)), valueOf(one.worst(s.Direction))},
			null:   nullOf(one),
		})
	}
	g.hoist()
	if most == 1 {
		g.oneLayer()
	}
	g.caption = append(g.caption, unitsIn(fewest, most, unit), "n = "+p.observations(m, []Statistic{s}))
	return g
}

// observations writes how many observations some statistics of a measure rest on.
func (p *printer) observations(m Measure, of []Statistic) string {
	low, high := math.MaxInt, 0
	for i := range p.shown {
		r := &p.shown[i]
		if r.Measure == m.Name && slices.ContainsFunc(of, func(s Statistic) bool { return s.Name == r.Statistic }) {
			low, high = min(low, r.N), max(high, r.N)
		}
	}
	return span(low, high)
}

// unitsIn writes "1 layer", "20 layers", "18 to 20 layers" or "361 pairs of layers".
func unitsIn(fewest, most int, unit string) string {
	if most != 1 {
		unit = pluralOf[unit]
	}
	return span(fewest, most) + " " + unit
}

var pluralOf = map[string]string{"layer": "layers", "pair of layers": "pairs of layers"}

// span writes "20" or "18 to 20".
func span(low, high int) string {
	if low == high {
		return count(low)
	}
	return count(low) + " to " + count(high)
}

// arrow marks the direction of a statistic that is more invariant.
func arrow(d Direction) string {
	return map[Direction]string{Higher: " ↑", Lower: " ↓"}[d]
}

// nullOf writes the null of a curve: one number, or the range over its layers; "" where it has none.
func nullOf(s series) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range s.rows {
		if !math.IsNaN(r.Null) {
			low, high = min(low, r.Null), max(high, r.Null)
		}
	}
	switch {
	case low > high:
		return ""
	case number(low) == number(high):
		return number(low)
	default:
		return number(low) + "–" + number(high)
	}
}
