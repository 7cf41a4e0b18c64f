package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// growthFigure is the path of the figure of drawGrowth in the repository.
const growthFigure = "docs/results/growth.svg"

// drawGrowth returns the stored result "growth" as SVG: a panel for each axis, with what a run uses
// over the number of samples, layers, cells or models, on logarithmic axes. A slope is that between
// the last two numbers: 1 where the use is in proportion, 0 where it is constant.
func drawGrowth(root string) ([]byte, error) {
	t, err := load(root, "growth")
	if err != nil {
		return nil, err
	}
	const width, height = 175 * vg.Millimeter, 120 * vg.Millimeter
	canvas := vgsvg.New(width, height)
	tiles := draw.Tiles{Rows: 2, Cols: 2, PadX: 6 * vg.Millimeter, PadY: 4 * vg.Millimeter}
	var panels [][]*plot.Plot
	for i := 0; i < len(t.rows); {
		p, n, err := growthPanel(t, i)
		if err != nil {
			return nil, fmt.Errorf("growth: %w", err)
		}
		if i += n; len(panels) == 0 || len(panels[len(panels)-1]) == tiles.Cols {
			panels = append(panels, nil)
		}
		panels[len(panels)-1] = append(panels[len(panels)-1], p)
	}
	if len(panels) != tiles.Rows || len(panels[1]) != tiles.Cols {
		return nil, errors.New("growth: there are not four axes")
	}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		for k, c := range row {
			panels[i][k].Draw(c)
		}
	}
	var svg bytes.Buffer
	_, err = canvas.WriteTo(&svg)
	return svg.Bytes(), err
}

// growthPanel draws the rows of an axis, of which the first is given, and returns their number.
func growthPanel(t *table, first int) (*plot.Plot, int, error) {
	axis, n := t.rows[first][0], 0
	lines := make([]plotter.XYs, len(t.header)-2)
	var failed error
	for ; first+n < len(t.rows) && t.rows[first+n][0] == axis; n++ {
		x, err := strconv.ParseFloat(t.rows[first+n][1], 64)
		failed = errors.Join(failed, err)
		for k := range lines {
			y, err := strconv.ParseFloat(t.entries[(first+n)*len(t.header)+2+k].value, 64)
			failed = errors.Join(failed, err)
			lines[k] = append(lines[k], plotter.XY{X: x, Y: y})
		}
	}
	if failed != nil || n < 2 {
		return nil, 0, fmt.Errorf("%s: %d numbers: %w", axis, n, failed)
	}
	p := plot.New()
	p.X.Label.Text = axis
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font.Size, p.X.Label.TextStyle.Font.Size = 7, 8
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Scale, a.Tick.Marker, a.Tick.Label.Font.Size = plot.LogScale{}, plot.LogTicks{Prec: -1}, 7
	}
	for k, xy := range lines {
		line, points, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", axis, err)
		}
		line.Color, points.Color, points.Shape = plotutil.Color(k), plotutil.Color(k), draw.CircleGlyph{}
		line.Dashes = plotutil.Dashes(k)
		points.Radius = vg.Points(1.5)
		a, b := xy[len(xy)-2], xy[len(xy)-1]
		slope := math.Log(b.Y/a.Y) / math.Log(b.X/a.X)
		p.Add(line, points)
		_, unit, _ := strings.Cut(t.rows[first][2+k], " ")
		p.Legend.Add(fmt.Sprintf("%s (%s), slope %.2f", t.header[2+k], unit, slope), line, points)
	}
	p.Y.Max *= 10 // room for the legend
	return p, n, nil
}
