package terminal

import (
	"slices"
	"strconv"

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
	means := m // of the columns without a curve
	means.Columns, means.Cells = nil, nil
	for column, name := range m.Columns {
		var cells []report.MatrixCell
		curve := false
		for _, c := range m.Cells {
			if c.Column == column {
				curve = curve || len(c.Curve) > 0
				c.Column = len(means.Columns)
				cells = append(cells, c)
			}
		}
		if curve {
			p.line("")
			p.wrapped(p.style.title, title+" · under "+report.Shorten(name, longestName), 0)
			curve := curveMatrix(m, cells, rows)
			p.columns(curve, rows, 0, len(curve.Columns))
			continue
		}
		means.Columns = append(means.Columns, name)
		means.Cells = append(means.Cells, cells...)
	}
	if len(means.Columns) == 0 {
		return
	}
	p.line("")
	p.wrapped(p.style.title, title, 0)
	p.columns(means, rows, 0, len(means.Columns))
}

// maxValues is the maximum number of values of a curve in a table.
const maxValues = 7

// curveMatrix returns a matrix of one column of m, whose cells are given: a column for each value
// of the transformation, of many some, and one for their mean.
func curveMatrix(m report.Matrix, cells []report.MatrixCell, rows []scores.Row) report.Matrix {
	var values []string
	for _, c := range cells {
		for _, i := range c.Curve {
			if !slices.Contains(values, rows[i].Parameter) {
				values = append(values, rows[i].Parameter)
			}
		}
	}
	shown := values
	if n := len(values); n > maxValues {
		shown = nil
		for k := range maxValues {
			shown = append(shown, values[(k*(n-1)+(maxValues-1)/2)/(maxValues-1)])
		}
	}
	out := m
	out.Columns = append(slices.Clone(shown), "mean of "+strconv.Itoa(len(values)))
	out.Cells = nil
	for _, c := range cells {
		for _, i := range c.Curve {
			if at := slices.Index(shown, rows[i].Parameter); at >= 0 {
				out.Cells = append(out.Cells, report.MatrixCell{Model: c.Model, Column: at, Row: i})
			}
		}
		c.Column = len(shown)
		out.Cells = append(out.Cells, c)
	}
	return out
}

// columns prints the columns from low to high, exclusive, of a matrix.
func (p *printer) columns(m report.Matrix, rows []scores.Row, low, high int) {
	g := grid{labels: []string{"model"}, rows: make([]gridRow, len(m.Models))}
	if m.Clean != nil {
		g.labels = append(g.labels, m.CleanName)
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
