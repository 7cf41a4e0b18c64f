package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/report/figure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A chart is a figure of docs/results that is drawn from a stored result, the table of a study or a
// benchmark. Its rows function turns the table into scores. Panel, Colour and Across of its options
// name the column of the scores that panels, colours and the categories of bars show; Columns is
// the width in columns of a page.
type chart struct {
	name    string // of the SVG file, and of the stored result
	options figure.Options
	rows    func(*table) ([]scores.Row, error)
}

// charts lists the figures that are drawn from stored results. Those that need scores of every
// sample or model are drawn by noether plot from the runs.
var charts = []chart{
	{"seis-synthetic", figure.Options{Chart: figure.Bars, Columns: 2, Panel: "statistic"}, seisSynthetic},
	{"seis-epochs", figure.Options{Chart: figure.Depth, Columns: 2, Panel: "statistic", Colour: "model"}, seisLayers},
	{"seis-augmentation", figure.Options{Chart: figure.Depth, Columns: 2, Panel: "statistic", Colour: "model"}, seisLayers},
	{"seis-decoders", figure.Options{Chart: figure.Depth, Columns: 1, Colour: "model"}, seisLayers},
	{"stir-layers", figure.Options{Chart: figure.Depth, Columns: 1, Colour: "model"}, stirLayers},
	{"stir-defences", figure.Options{Chart: figure.Depth, Columns: 1, Colour: "model"}, stirLayers},
	{"networks-clock", figure.Options{Chart: figure.Bars, Columns: 1, Across: "model", Colour: "variant"}, networks},
	{"segmentation-depth", figure.Options{Chart: figure.Depth, Columns: 2, Panel: "model", Colour: "transform"}, segmentationDepth},
	{"goodfellow-ridge", figure.Options{Chart: figure.Parameter, Columns: 1, Colour: "model", Zoom: true}, ridge},
	{"synesis-rate-epochs", figure.Options{Chart: figure.Bars, Columns: 1, Across: "model", Colour: "variant"}, informativeness},
	{"synesis-encoders", figure.Options{Chart: figure.Bars, Columns: 2, Across: "model", Colour: "variant", Panel: "factor"}, informativeness},
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
	rows, err := c.rows(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	options := c.options
	options.Measures = append(catalog.Descriptors(), performance)
	f, err := figure.Draw(rows, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	var svg bytes.Buffer
	if err := f.Write(&svg, "svg"); err != nil {
		return nil, err
	}
	return svg.Bytes(), nil
}

// seisSynthetic reads a table that has a transformation in each row. Its columns are the
// transformation, what is drawn at random for it, equivariance and its null, invariance and its
// null. (The null of a score is its value for shuffled pairs.) The measure seis asks whether
// spatial information is still in a layer after the transformation, and in the same place.
func seisSynthetic(t *table) ([]scores.Row, error) {
	var rows []scores.Row
	for _, r := range t.rows {
		for i, statistic := range []string{"equivariance", "invariance"} {
			row, err := scored(r[2+2*i], r[3+2*i])
			if err != nil {
				return nil, err
			}
			row.Model, row.Layer, row.Depth = "resnet20", "conv1", 1
			row.Transform, row.Measure, row.Statistic = r[0], "seis", statistic
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// seisLayers reads a table that has a score and a layer in each row, and a network or an epoch in
// each column. Differences and nulls are not drawn.
func seisLayers(t *table) ([]scores.Row, error) {
	var rows []scores.Row
	var layers []string
	for _, r := range t.rows {
		if strings.HasPrefix(r[0], "null") {
			continue
		}
		if !slices.Contains(layers, r[1]) {
			layers = append(layers, r[1])
		}
		for i, cell := range r[2:] {
			name := t.header[2+i]
			if cell == "" || strings.Contains(name, " - ") {
				continue
			}
			row, err := scored(cell, "")
			if err != nil {
				return nil, err
			}
			row.Model, row.Layer, row.Depth = name, r[1], 1+slices.Index(layers, r[1])
			row.Measure, row.Statistic = "seis", r[0]
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// stirLayers reads a table that has a pair of kinds of networks (such as trained in one way) and a
// layer in each row. Its first columns are the reference (the kind whose representation is kept in
// computing the similarity STIR), the other kind, the layer, STIR and its null.
func stirLayers(t *table) ([]scores.Row, error) {
	var rows []scores.Row
	depth := map[string]int{}
	for _, r := range t.rows {
		row, err := scored(r[3], r[4])
		if err != nil {
			return nil, err
		}
		row.Model = r[0]
		if r[1] != r[0] {
			row.Model += ", " + r[1]
		}
		if depth[r[2]] == 0 {
			depth[r[2]] = len(depth) + 1
		}
		row.Layer, row.Depth, row.Measure, row.Statistic = r[2], depth[r[2]], "stir", "stir"
		rows = append(rows, row)
	}
	return rows, nil
}

// segmentationDepth reads a table with a row for each network, augmentation and layer, which the
// first three columns name. Each other column is a transformation. The scores are relative errors:
// the norm of f(T(x)) minus the transformed f(x), over the norm of the transformed f(x).
func segmentationDepth(t *table) ([]scores.Row, error) {
	var rows []scores.Row
	depth := 0
	for i, r := range t.rows {
		if depth++; i > 0 && !slices.Equal(r[:2], t.rows[i-1][:2]) {
			depth = 1
		}
		for k, transformation := range t.header[3:] {
			row, err := scored(r[3+k], "")
			if err != nil {
				return nil, err
			}
			row.Model, row.Layer, row.Depth = r[0]+", "+r[1], r[2], depth
			row.Transform, row.Measure, row.Statistic = transformation, "equivariance-error", "relative-error"
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// networks reads a table that has a model in each row, and two ratios of images per second: where
// every tensor of the model is read, and where only some are. It is the table networks-clock of
// package bench.
func networks(t *table) ([]scores.Row, error) {
	var rows []scores.Row
	for _, r := range t.rows {
		for i, read := range []string{"every tensor", "ReLUs or blocks"} {
			row, err := scored(r[3+3*i], "")
			if err != nil {
				return nil, err
			}
			row.Model, row.Variant, row.Measure, row.Statistic = r[0], read, performance.Name, "ratio"
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// ridge reads a table that has a target activation (of the sparsity penalty) in each row and a
// weight decay in each column. In the chart a target is a model and the decay the parameter.
func ridge(t *table) ([]scores.Row, error) {
	var rows []scores.Row
	for _, r := range t.rows {
		for i, decay := range t.header[1:] {
			if r[1+i] == "" {
				continue // no unit of these networks varies
			}
			row, err := scored(r[1+i], "")
			if err != nil {
				return nil, err
			}
			row.Model, row.Transform, row.Parameter = "target "+r[0], "weight decay", decay
			row.Measure, row.Statistic = "firing", "invariance"
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// informativeness reads the errors from a table that has a factor (a known property of samples) and
// a probe (a small network that predicts it from activations) in each row, a kind of training in
// each column, and the nulls in the last column. In the chart a kind is a model.
func informativeness(t *table) ([]scores.Row, error) {
	var rows []scores.Row
	for _, r := range t.rows {
		factor, probe, ok := strings.Cut(r[1], ", ")
		if !ok || r[0] != "informativeness, RMSE" {
			continue
		}
		last := len(t.header) - 1
		for i, kind := range t.header[2:last] {
			row, err := scored(r[2+i], r[last])
			if err != nil {
				return nil, err
			}
			row.Model, row.Layer, row.Depth, row.Variant = kind, "penultimate", 1, probe
			row.Measure, row.Statistic, row.Factor = "informativeness", "rmse", factor
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// scored reads a cell of a table, "0.5" or "0.5 [0.4, 0.6]", and the cell of its null, which may be
// empty.
func scored(cell, null string) (scores.Row, error) {
	row := scores.Row{Depth: -1, Low: math.NaN(), High: math.NaN(), Null: math.NaN()}
	if _, err := fmt.Sscanf(cell, "%f [%f, %f]", &row.Value, &row.Low, &row.High); err != nil {
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			return row, err
		}
		row.Value, row.Low, row.High = v, math.NaN(), math.NaN()
	}
	if null != "" {
		v, err := strconv.ParseFloat(null, 64)
		if err != nil {
			return row, err
		}
		row.Null = v
	}
	return row, nil
}
