package run

import (
	"context"
	"slices"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/tensor"
)

// decoders run models on single images for their decoded outputs. The last model stays open.
type decoders struct {
	model  *plan.Model
	reader *reader
}

// decode is a results.Decoder. Of recorded outputs it returns nil.
func (d *decoders) decode(ctx context.Context, c *plan.Cell, images []tensor.Tensor) ([][]float32, error) {
	if !c.Model.Net.TakesInput() {
		return nil, nil
	}
	if d.model != c.Model {
		d.close()
		reader, err := newReader(c.Model, c.Data, []tensor.Layer{c.Model.Net.DecodedLayer()}, plan.Reductions{}, nil, false, 1, 1)
		if err != nil {
			return nil, err
		}
		d.model, d.reader = c.Model, reader
	}
	var out [][]float32
	for _, image := range images {
		if err := d.reader.run(ctx, []tensor.Tensor{image}, false); err != nil {
			return nil, err
		}
		out = append(out, slices.Clone(d.reader.clean.Layer(0).At(0).Data))
	}
	return out, nil
}

func (d *decoders) close() {
	if d.reader != nil {
		d.reader.close()
		d.model, d.reader = nil, nil
	}
}
