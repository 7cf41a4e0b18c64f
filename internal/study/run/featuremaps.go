package run

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

const (
	mapLayers   = 4 // largest number of layers of a sheet, the image with the maps of one cell
	mapChannels = 3 // largest number of channels of a layer
)

// writeFeatureMaps draws the feature maps of the first sample for those cells of equivariance
// errors (package measure/equivariance) that results.MapCells chooses and that lack them. In a
// sharded run, whose processes measure different samples, only the first shard does. If drawing
// fails, it warns and goes on with the next model or data set. It returns an error if a file cannot
// be saved or ctx is cancelled.
func (r *runner) writeFeatureMaps(ctx context.Context) error {
	if r.Options.Shard.Index > 1 {
		return nil
	}
	type owner struct {
		model *plan.Model
		data  *plan.Data
	}
	cells := map[owner][]*plan.Cell{}
	var order []owner
	for _, c := range r.MapCells() {
		o := owner{c.Model, c.Data}
		if r.HasMaps(c) || !c.Model.Net.TakesInput() {
			continue
		}
		if cells[o] == nil {
			order = append(order, o)
		}
		cells[o] = append(cells[o], c)
	}
	for _, o := range order {
		err := r.drawModelMaps(ctx, cells[o])
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case results.IsSaveError(err):
			return err
		case err != nil:
			r.Options.Warnf("drawing feature maps of model %s on %s: %v", o.model.Entry.Name, o.data.Entry.Name, err)
		}
	}
	return nil
}

// drawModelMaps draws and writes the feature maps of cells of one model and data set.
func (r *runner) drawModelMaps(ctx context.Context, cells []*plan.Cell) error {
	m, d := cells[0].Model, cells[0].Data
	sample, ok, err := firstSample(ctx, d, m)
	if !ok || err != nil {
		return err
	}
	var layers []tensor.Layer
	for _, c := range cells {
		for _, l := range mappedLayers(c) {
			if !slices.ContainsFunc(layers, func(o tensor.Layer) bool { return o.Name == l.Name }) {
				layers = append(layers, l)
			}
		}
	}
	if len(layers) == 0 {
		return nil
	}
	reader, err := newReader(m, d, layers, plan.Reductions{}, nil, false, 1, 1) // no class scores, batches of one sample, one batch at a time
	if err != nil {
		return err
	}
	defer reader.session.Close()
	if err := reader.run(ctx, []tensor.Tensor{sample.Input}, false); err != nil { // false: clean
		return err
	}
	for _, c := range cells {
		// The same draw as that of the cell: its view is a transformation with one value and a trial.
		key := measure.Key{Seed: r.Plan.Study.Seed, Data: d.Entry.Name, Transform: c.View.Name, Trial: c.View.Trial}
		op := procedure.Draw(c.View.Transform, c.View.Per == "trial", key, sample.Index)
		transformed, err := sample.Apply(op)
		if err == nil {
			err = reader.run(ctx, []tensor.Tensor{transformed}, true)
		}
		if err != nil {
			return err
		}
		sheet, img, err := drawMaps(c, reader, op, sample, transformed)
		if err != nil {
			return err
		}
		if sheet == nil {
			continue
		}
		if err := r.WriteMaps(c, sheet, img); err != nil {
			return err
		}
	}
	return nil
}

// firstSample returns the first readable sample in the study's order; false if none is readable.
func firstSample(ctx context.Context, d *plan.Data, m *plan.Model) (dataset.Sample, bool, error) {
	for at := range d.Order.Len() {
		s, err := d.Source.At(ctx, d.Order.Range(at, at+1)[0], m.Net.Frame())
		if err == nil || ctx.Err() != nil {
			return s, err == nil, err
		}
	}
	return dataset.Sample{}, false, nil // unreadable samples are among the run's warnings
}

// mappedLayers returns at most mapLayers layers of a cell that have two-dimensional maps, evenly
// spaced in the order of depth, the first and the last included.
func mappedLayers(c *plan.Cell) []tensor.Layer {
	var candidates []tensor.Layer
	for _, t := range c.Tasks { // one for each layer
		l := t.ScoredLayer()
		maps, why := l.Maps()
		if why != "" || t.NonFinite {
			continue
		}
		if _, _, plane := maps.Size(); plane {
			candidates = append(candidates, l)
		}
	}
	slices.SortStableFunc(candidates, func(a, b tensor.Layer) int { return cmp.Compare(a.Depth, b.Depth) })
	if len(candidates) <= mapLayers {
		return candidates
	}
	out := make([]tensor.Layer, mapLayers)
	for i := range out {
		out[i] = candidates[i*(len(candidates)-1)/(mapLayers-1)]
	}
	return out
}

// drawMaps draws the feature maps of a cell from the last batch of the reader, clean and
// transformed by op, T with the values drawn for the sample. It returns the sheet and its PNG, or
// nil if no layer has maps to draw.
func drawMaps(c *plan.Cell, reader *reader, op transform.Op, sample dataset.Sample, transformed tensor.Tensor) (*scores.MapSheet, []byte, error) {
	settings, _ := results.MapSettings(c)
	sheet := &scores.MapSheet{Model: c.Model.Entry.Name, Data: c.Data.Entry.Name, Transform: c.View.Name, Parameter: c.View.Parameter,
		Measure: c.Method.Name(), Sample: sample.Index, Name: sample.Name}
	var rows [][]image.Image
	if results.IsImage(sample) {
		sheet.HasInput = true
		rows = append(rows, []image.Image{toImage(sample.Input), toImage(transformed)})
	}
	for _, l := range mappedLayers(c) {
		z := layerMaps{clean: reader.clean.Layer(reader.layerIndex[l.Name]).Data, transformed: reader.transformed.Layer(reader.layerIndex[l.Name]).Data}
		z.Maps, _ = l.Maps()
		var err error
		if z.expected, z.inside, err = equivariance.Act(z.Maps, transform.MotionOf(op), settings, z.clean); err != nil {
			continue // T has no action on this layer, no position stays inside the map, or a value is not finite
		}
		h, w, _ := z.Size()
		layer := scores.MapLayer{Layer: l.Name, Depth: l.Depth, Height: h, Width: w}
		for _, channel := range z.channelsByVariance(mapChannels) {
			info, tiles := z.draw(channel)
			layer.Channels, rows = append(layer.Channels, info), append(rows, tiles)
		}
		if len(layer.Channels) > 0 {
			sheet.Layers = append(sheet.Layers, layer)
		}
	}
	if len(sheet.Layers) == 0 {
		return nil, nil, nil
	}
	h, w := sheet.Layers[0].Height, sheet.Layers[0].Width
	if sheet.HasInput {
		h, w = sample.Input.Shape[1], sample.Input.Shape[2]
	}
	raw, tile, err := encodeTiles(rows, h, w)
	if err != nil {
		return nil, nil, fmt.Errorf("drawing feature maps: %w", err)
	}
	sheet.Tile = tile
	return sheet, raw, nil
}

// layerMaps holds the activations of one sample at a layer: f(x), f(T(x)) and tau f(x), where tau
// is the action of T on the maps. Equivariance is f(T(x)) = tau f(x). The maps begin at index Base
// of the activations; before them may be those of a class token.
type layerMaps struct {
	tensor.Maps
	clean, transformed []float32 // f(x) and f(T(x)), in the order of the layer's tensor
	expected           []float32 // tau f(x), in the same order from index Base on
	inside             []bool    // for each position, whether tau f(x) is defined there; see equivariance.Act
}

// index returns the index of the activation of a channel at a position, relative to Base.
func (z *layerMaps) index(channel, position int) int {
	return channel*z.ChannelStep + position*z.PositionStep
}

// channelsByVariance returns at most n channels: those whose f(x) has the largest variance over
// positions, in increasing order of their index. Constant channels and those with NaN or infinity
// are left out.
func (z *layerMaps) channelsByVariance(n int) []int {
	variance := make([]float64, z.Channels)
	var varied []int
	for c := range z.Channels {
		var sum, squares float64
		for p := range z.Positions() {
			v := float64(z.clean[z.Base+z.index(c, p)])
			sum, squares = sum+v, squares+v*v
			squares += 0 * float64(z.transformed[z.Base+z.index(c, p)]) // makes the variance NaN if f(T(x)) is not finite
		}
		k := float64(z.Positions())
		if variance[c] = squares/k - sum/k*sum/k; variance[c] > 0 && !math.IsInf(variance[c], 0) {
			varied = append(varied, c)
		}
	}
	slices.SortStableFunc(varied, func(a, b int) int { return cmp.Compare(variance[b], variance[a]) })
	varied = varied[:min(n, len(varied))]
	slices.Sort(varied)
	return varied
}
