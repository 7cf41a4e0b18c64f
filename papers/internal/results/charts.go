package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/figure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A chart is a figure of docs/results that is drawn from a stored result. row sets what an entry is
// a score of, or returns false if it is not drawn. Panel, Colour and Across of its options name the
// column of the scores that panels, colours and the categories of bars show; Columns is the width
// in columns of a page. A scatter has pairs of statistics instead of row.
type chart struct {
	name    string // of the SVG file, and of the stored result
	options figure.Options
	row     func(entry, *scores.Row) bool
	pairs   []pair
}

// A pair is the statistics on the axes of a scatter, whose points are the rows of a stored result.
// Its points are grouped by the first key.
type pair struct{ title, x, y string }

// charts lists the figures that are drawn from stored results. Those that need scores of every
// sample or model are drawn by noether plot from the runs.
var charts = []chart{
	{name: "goodfellow-cells", options: figure.Options{Columns: 2}, pairs: []pair{
		{"Figure 1", "grating phase", "pan"}, {"Figure 1", "grating phase", "clips"}, {"Figure 2", "pan", "turn"}, {"Figure 2", "pan", "object"},
	}},
	{name: "seis-synthetic", options: figure.Options{Chart: figure.Bars, Columns: 2, Panel: "statistic"}, row: seisSynthetic},
	{name: "seis-epochs", options: figure.Options{Chart: figure.Depth, Columns: 2, Panel: "statistic", Colour: "model"}, row: seisLayers},
	{name: "seis-augmentation", options: figure.Options{Chart: figure.Depth, Columns: 2, Panel: "statistic", Colour: "model"}, row: seisLayers},
	{name: "seis-decoders", options: figure.Options{Chart: figure.Depth, Columns: 1, Colour: "model"}, row: seisLayers},
	{name: "stir-layers", options: figure.Options{Chart: figure.Depth, Columns: 1, Colour: "model"}, row: stirLayers},
	{name: "stir-defences", options: figure.Options{Chart: figure.Depth, Columns: 1, Colour: "model"}, row: stirLayers},
	{name: "networks-clock", options: figure.Options{Chart: figure.Bars, Columns: 1, Across: "model", Colour: "variant"}, row: networks},
	{name: "segmentation-depth", options: figure.Options{Chart: figure.Depth, Columns: 2, Panel: "model", Colour: "transform"}, row: segmentationDepth},
	{name: "goodfellow-ridge", options: figure.Options{Chart: figure.Parameter, Columns: 1, Colour: "model", Zoom: true}, row: ridge},
	{name: "synesis-rate-epochs", options: figure.Options{Chart: figure.Bars, Columns: 1, Across: "model", Colour: "variant"}, row: informativeness},
	{name: "synesis-encoders", options: figure.Options{Chart: figure.Bars, Columns: 2, Across: "model", Colour: "variant", Panel: "factor"}, row: informativeness},
}

// performance describes, as if it were a measure, the ratios of benchmarks that charts show.
var performance = measure.Descriptor{
	Name: "performance", Title: "Performance", Level: measure.ModelLevel,
	Statistics: []measure.StatisticDescriptor{
		{Name: "ratio", Title: "images/s relative to PyTorch", Range: measure.NotNegative, Direction: measure.Higher},
	},
}

// draw returns the chart as SVG.
func (c chart) draw(root string) ([]byte, error) {
	t, err := load(root, c.name)
	if err != nil {
		return nil, err
	}
	f, err := c.figure(t.entries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	var svg bytes.Buffer
	if err := f.Write(&svg, "svg"); err != nil {
		return nil, err
	}
	return svg.Bytes(), nil
}

// figure returns the drawing of the entries.
func (c chart) figure(entries []entry) (*figure.Figure, error) {
	if c.pairs != nil {
		panels, err := c.scatters(entries)
		if err != nil {
			return nil, err
		}
		return figure.DrawScatter(panels, c.options)
	}
	rows, err := c.rows(entries)
	if err != nil {
		return nil, err
	}
	options := c.options
	options.Measures = append(catalog.Descriptors(), performance)
	return figure.Draw(rows, options)
}

// scatters returns a panel for each pair of statistics.
func (c chart) scatters(entries []entry) ([]report.Scatter, error) {
	var out []report.Scatter
	for _, p := range c.pairs {
		var points []correlation.Point
		for _, e := range entries {
			i := slices.IndexFunc(entries, func(o entry) bool { return o.statistic == p.y && slices.Equal(o.keys, e.keys) })
			if e.statistic != p.x || i < 0 {
				continue
			}
			x, err := strconv.ParseFloat(e.value, 64)
			y, err2 := strconv.ParseFloat(entries[i].value, 64)
			if err := errors.Join(err, err2); err != nil {
				return nil, err
			}
			points = append(points, correlation.Point{Label: strings.Join(e.keys, ", "), Group: e.keys[0], X: x, Y: y})
		}
		fit, err := correlation.Analyse(points, correlation.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s against %s: %w", p.y, p.x, err)
		}
		out = append(out, report.NewScatter(points, fit, p.title, p.x, p.y, false))
	}
	return out, nil
}

// rows returns the scores of the entries that are drawn. The depth of a layer is its place among
// those of the model.
func (c chart) rows(entries []entry) ([]scores.Row, error) {
	var rows []scores.Row
	var failed error
	number := func(text string) float64 {
		if text == "" {
			return math.NaN()
		}
		v, err := strconv.ParseFloat(text, 64)
		failed = errors.Join(failed, err)
		return v
	}
	layers := map[string][]string{}
	for _, e := range entries {
		row := scores.Row{Depth: -1}
		if e.value == "" || !c.row(e, &row) {
			continue
		}
		row.Value, row.Low, row.High, row.Null = number(e.value), number(e.low), number(e.high), math.NaN()
		if i := slices.IndexFunc(entries, e.isNull); i >= 0 {
			row.Null = number(entries[i].value)
		}
		if row.Layer != "" {
			if !slices.Contains(layers[row.Model], row.Layer) {
				layers[row.Model] = append(layers[row.Model], row.Layer)
			}
			row.Depth = 1 + slices.Index(layers[row.Model], row.Layer)
		}
		rows = append(rows, row)
	}
	return rows, failed
}

// isNull reports whether o is the null of e.
func (e entry) isNull(o entry) bool {
	return (o.statistic == "null" || o.statistic == "null of "+e.statistic) && slices.Equal(o.keys, e.keys)
}

// seisSynthetic has a transformation as key.
func seisSynthetic(e entry, r *scores.Row) bool {
	r.Model, r.Layer, r.Transform, r.Measure, r.Statistic = "resnet20", "conv1", e.keys[0], "seis", e.statistic
	return !strings.HasPrefix(e.statistic, "null")
}

// seisLayers has a score and a layer as keys.
func seisLayers(e entry, r *scores.Row) bool {
	r.Model, r.Layer, r.Measure, r.Statistic = e.statistic, e.keys[1], "seis", e.keys[0]
	return !strings.HasPrefix(e.keys[0], "null") && !strings.Contains(e.statistic, " - ")
}

// stirLayers has the reference, the other kind of networks and the layer as keys.
func stirLayers(e entry, r *scores.Row) bool {
	r.Model, r.Layer, r.Measure, r.Statistic = e.keys[0], e.keys[2], "stir", "stir"
	if e.keys[1] != e.keys[0] {
		r.Model += ", " + e.keys[1]
	}
	return e.statistic == "STIR"
}

// segmentationDepth has a network, an augmentation and a layer as keys.
func segmentationDepth(e entry, r *scores.Row) bool {
	r.Model, r.Layer, r.Transform = e.keys[0]+", "+e.keys[1], e.keys[2], e.statistic
	r.Measure, r.Statistic = "equivariance-error", "relative-error"
	return true
}

// networks is a benchmark with a model as key, which reads every tensor of the model or some.
func networks(e entry, r *scores.Row) bool {
	read, ok := map[string]string{"ratio": "every tensor", "ratio, ReLUs or blocks": "ReLUs or blocks"}[e.statistic]
	r.Model, r.Variant, r.Measure, r.Statistic = e.keys[0], read, performance.Name, "ratio"
	return ok
}

// ridge has a target activation as key, and a weight decay as statistic.
func ridge(e entry, r *scores.Row) bool {
	r.Model, r.Transform, r.Parameter = "target "+e.keys[0], "weight decay", e.statistic
	r.Measure, r.Statistic = "firing", "invariance"
	return true
}

// informativeness has a measure and what a probe predicts as keys.
func informativeness(e entry, r *scores.Row) bool {
	factor, probe, ok := strings.Cut(e.keys[1], ", ")
	r.Model, r.Layer, r.Variant, r.Factor = e.statistic, "penultimate", probe, factor
	r.Measure, r.Statistic = "informativeness", "rmse"
	return ok && e.keys[0] == "informativeness, RMSE" && e.statistic != "null"
}
