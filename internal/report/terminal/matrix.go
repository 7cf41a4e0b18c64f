package terminal

import (
	"github.com/charmbracelet/lipgloss"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// matrix prints a matrix of scores, of models by transformations or another field, in several
// tables if it is too wide for one.
func (p *printer) matrix(m report.Matrix, rows []scores.Row) {
	direction := measure.Neutral
	switch {
	case m.Lower:
		direction = measure.Lower
	case m.Toward != "": // the meaning of the better end of the scale
		direction = measure.Higher
	}
	title := m.Title + arrow(direction)
	if m.Data != "" {
		title += " · " + report.Shorten(m.Data, longestName)
	}
	if m.Layer {
		title += " · deepest layer"
	}
	p.line("")
	p.wrapped(p.style.title, title, 0)
	p.columns(m, rows, 0, len(m.Columns))
}

// columns prints the columns from low to high, exclusive, of a matrix.
func (p *printer) columns(m report.Matrix, rows []scores.Row, low, high int) {
	g := grid{labels: []string{"model"}, rows: make([]gridRow, len(m.Models))}
	if m.Clean != nil {
		g.labels = append(g.labels, "accuracy")
	}
	for _, name := range m.Columns[low:high] {
		g.values = append(g.values, report.Shorten(name, longestName/2))
	}
	for i, model := range m.Models {
		g.rows[i] = gridRow{labels: []string{model}, values: make([]gridValue, high-low)}
		if m.Clean != nil {
			g.rows[i].labels = append(g.rows[i].labels, m.Clean[i])
		}
	}
	for _, c := range m.Cells {
		if c.Column < low || c.Column >= high {
			continue
		}
		v := valueOf(rows[c.Row])
		v.layer, v.other = "", "" // the names of the layers are not shown
		if c.Chance {
			v.value += "*"
		}
		g.rows[c.Model].values[c.Column-low] = v
	}
	text := g.render(p.width, p.style)
	if lipgloss.Width(text) > p.width && high-low > 1 {
		middle := (low + high + 1) / 2
		p.columns(m, rows, low, middle)
		p.columns(m, rows, middle, high)
		return
	}
	p.out.WriteString(text)
}
