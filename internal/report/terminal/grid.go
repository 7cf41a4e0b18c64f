package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/lipgloss/table"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// A grid is a table before layout: for each row its labels, then its values.
type grid struct {
	title   string
	caption []string // labels that all rows share
	labels  []string // names of the label columns
	values  []string // names of the value columns
	nullOf  string   // the statistic whose null is shown; "" if the grid has only one statistic
	rows    []gridRow
}

type gridRow struct {
	labels []string
	values []gridValue
	null   string // "" where there is none
}

// A gridValue is a score with its confidence interval and, for layers, the layer.
type gridValue struct {
	layer, other    string // other: the layer that it is compared with, if its name differs
	depth           int    // of the layer
	value, interval string
}

func valueOf(r scores.Row) gridValue {
	return gridValue{layer: r.Layer, other: report.Partner(&r), depth: r.Depth, value: report.Number(r.Value), interval: report.Interval(r.Low, r.High)}
}

// mergeLayers replaces the columns of the best and the worst layer, values 0 and 1, by one. It is
// for grids in which each row has the score of a single layer.
func (g *grid) mergeLayers() {
	g.values = []string{"layer"}
	for i := range g.rows {
		g.rows[i].values = g.rows[i].values[:1]
	}
}

// moveSharedLabels moves labels that are the same in all rows to the caption.
func (g *grid) moveSharedLabels() {
	for column := 0; column < len(g.labels); {
		value := ""
		if len(g.rows) > 0 {
			value = g.rows[0].labels[column]
		}
		if slices.ContainsFunc(g.rows, func(r gridRow) bool { return r.labels[column] != value }) {
			column++
			continue
		}
		if value != "" {
			g.caption = append(g.caption, report.Shorten(value, longestName))
		}
		g.labels = slices.Delete(g.labels, column, column+1)
		for i := range g.rows {
			g.rows[i].labels = slices.Delete(g.rows[i].labels, column, column+1)
		}
	}
}

// A layout is a way to fit a grid to a width.
type layout struct {
	names     int  // largest width, in columns of the terminal, of a label: a model, a transformation, a data set
	layers    int  // largest width of a name of a layer
	intervals bool // show intervals
	stacked   bool // put the layer (or, without a layer, the interval) below the value, not beside it
}

// layouts are ordered from the widest to the narrowest.
var layouts = []layout{
	{names: 40, layers: 48, intervals: true}, {names: 30, layers: 30, intervals: true},
	{names: 30, layers: 48, intervals: true, stacked: true}, {names: 24, layers: 22, intervals: true, stacked: true},
	{names: 14, layers: 20, intervals: true, stacked: true}, {names: 10, layers: 20, intervals: true, stacked: true},
	{names: 20, layers: 20}, {names: 12, layers: 14}, {names: 8, layers: 8},
}

// render formats the grid in the widest layout that fits the width, or in the narrowest.
func (g *grid) render(width int, style styles) string {
	var text string
	for _, l := range layouts {
		text = g.layOut(l, style)
		if lipgloss.Width(text) <= width {
			break
		}
	}
	return text
}

func (g *grid) layOut(l layout, style styles) string {
	hasNull := slices.ContainsFunc(g.rows, func(r gridRow) bool { return r.null != "" })

	header := append(slices.Clone(g.labels), g.values...)
	if hasNull {
		header = append(header, strings.TrimSuffix("null of "+g.nullOf, " of "))
	}
	var body [][]string
	var above []string
	for _, r := range g.rows {
		cells := namesBelow(above, r.labels, l.names)
		for _, v := range r.values {
			cells = append(cells, v.write(l))
		}
		if hasNull {
			cells = append(cells, r.null)
		}
		body = append(body, cells)
		above = r.labels
	}
	t := table.New().Headers(header...).Rows(body...).
		Border(lipgloss.NormalBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		BorderColumn(false).BorderRow(false).BorderHeader(true).BorderStyle(style.faint).
		StyleFunc(func(row, column int) lipgloss.Style {
			s := style.plain
			if row == table.HeaderRow {
				s = style.faint
			}
			if column < len(header)-1 {
				s = s.PaddingRight(2)
			}
			return s
		})
	return trimLines(t.Render())
}

// namesBelow returns the labels of a row; the first ones are empty as far as they repeat the row
// above.
func namesBelow(above, labels []string, width int) []string {
	cells := make([]string, len(labels))
	repeated := above != nil
	for i, label := range labels {
		repeated = repeated && above[i] == label
		if !repeated {
			cells[i] = shortLabel(label, width)
		}
	}
	return cells
}

// shortLabel shortens a label to a width. A score with its interval, as of the clean accuracy, loses
// the interval as a whole: cut within, it would read as other numbers.
func shortLabel(label string, width int) string {
	if value, _, ok := strings.Cut(label, " ["); ok && strings.HasSuffix(label, "]") && lipgloss.Width(label) > width {
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			return value
		}
	}
	return report.Shorten(label, width)
}

// withOther is written before the second of two compared layers.
const withOther = "~ "

func (v gridValue) write(l layout) string {
	if v.value == "" {
		return "–"
	}
	parts := []string{v.value}
	if l.intervals && v.interval != "" {
		parts = append(parts, v.interval)
	}
	if v.layer == "" {
		return strings.Join(parts, separator(l.stacked))
	}
	if v.other != "" { // one below the other, because side by side they could be shortened to the same text
		return strings.Join(parts, " ") + "\n" + report.Shorten(v.layer, l.layers) + "\n" + withOther + report.Shorten(v.other, l.layers-len(withOther))
	}
	return strings.Join(parts, " ") + separator(l.stacked) + v.name(l.layers)
}

// name returns the layer's name in at most width columns. A name that must be cut starts with the
// layer's depth.
func (v gridValue) name(width int) string {
	name := report.Shorten(v.layer, width)
	if !strings.Contains(name, "…") {
		return name
	}
	depth := fmt.Sprintf("#%d ", v.depth)
	return depth + report.Shorten(v.layer, max(1, width-len(depth)))
}

func separator(stacked bool) string {
	if stacked {
		return "\n"
	}
	return " "
}

// trimLines removes trailing spaces from lines.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
