package results

import (
	"context"
	"image"
	"image/color"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/contactsheet"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/tensor"
)

// A Decoder runs the model of a cell on images, and returns the decoded output of each.
type Decoder func(ctx context.Context, c *plan.Cell, images []tensor.Tensor) ([][]float32, error)

const denseSide = 128 // largest shorter side of an enlarged image with boxes or a class map, in pixels

// Colours of boxes that are visible to people with any colour vision (Okabe and Ito 2008).
var (
	labelledColour  = color.NRGBA{0, 114, 178, 255} // blue
	predictedColour = color.NRGBA{213, 94, 0, 255}  // vermilion
)

// denseLine draws a sample and its transformed version with the labels of the sample and the boxes,
// of at least a confidence, or class maps that the model finds. Where no model runs, as in a merge,
// there are no predictions.
func (r *Writer) denseLine(ctx context.Context, c *plan.Cell, sample dataset.Sample, transformed tensor.Tensor, confidence float64) (line []*image.NRGBA, legend string, err error) {
	f, _ := c.Model.Net.Decoded()
	var found [][]float32
	if r.Decode != nil {
		if found, err = r.Decode(ctx, c, []tensor.Tensor{sample.Input, transformed}); ctx.Err() != nil {
			return nil, "", ctx.Err()
		} else if err != nil {
			r.Options.Warnf("drawing failures of model %s: %v", c.Model.Entry.Name, err)
			r.Decode = nil
		}
	}
	to, labelled := c.Data.TruthOf(f) // the model's class of each class of the data
	truth := sample.Truth
	labelled = labelled && truth != nil
	tile := func(t tensor.Tensor) *image.NRGBA { return contactsheet.Tile(t, denseSide, mistakeSide) }
	line = []*image.NRGBA{tile(sample.Input), tile(transformed)}
	name := func(class int) string { // that of the data, if the model has none
		if at := slices.Index(to, class); f.Names == nil && at >= 0 {
			return c.Data.TruthName(at)
		}
		return f.ClassName(class)
	}
	if f.Kind == decoded.BoxList {
		legend = "boxes found are orange"
		if labelled {
			legend += ", labelled ones blue"
			for _, o := range truth.Objects {
				contactsheet.Box{Left: o.Left, Top: o.Top, Right: o.Right, Bottom: o.Bottom, Name: c.Data.TruthName(o.Class), Colour: labelledColour, Around: true}.Draw(line[0])
			}
		}
		for i, row := range found {
			boxes, _ := f.Boxes(nil, row)
			for _, b := range boxes {
				if b.Score >= confidence {
					contactsheet.Box{Left: b.Left, Top: b.Top, Right: b.Right, Bottom: b.Bottom, Name: name(b.Class), Colour: predictedColour}.Draw(line[i])
				}
			}
		}
		return line, legend, nil
	}
	legend = "each as it is and transformed"
	if labelled && truth.Mask.Rank() == 2 {
		classes := make([]float32, len(truth.Mask.Data))
		for i, k := range truth.Mask.Data {
			if classes[i] = k; to != nil && k >= 0 && int(k) < len(to) {
				classes[i] = float32(to[int(k)])
			}
		}
		mask := tile(sample.Input)
		contactsheet.Tint(mask, classes, truth.Mask.Shape[0], truth.Mask.Shape[1], name)
		line, legend = append(line, mask), legend+", then the labelled classes"
	}
	for i, row := range found {
		over := tile([]tensor.Tensor{sample.Input, transformed}[i])
		contactsheet.Tint(over, row[:f.Height*f.Width], f.Height, f.Width, name)
		line = append(line, over)
	}
	if found != nil {
		legend += ", then those found in both"
	}
	return line, legend, nil
}
