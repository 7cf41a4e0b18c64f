package train

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
)

// Losses are the losses of the samples of a batch, without training.
func (t *Trainer) Losses(ctx context.Context, b Batch) ([]float64, error) {
	seen, err := t.assess(ctx, b)
	return seen.losses, err
}

// An assessment is what a network makes of a batch.
type assessment struct {
	losses  []float64 // of the samples
	hits    []float64 // 1 where the class of a sample is the network's first, else 0; nil where targets are no classes
	penalty float64   // of the Spec
}

func (t *Trainer) assess(ctx context.Context, b Batch) (seen assessment, err error) {
	if err := t.feed(t.loss, &b, -1); err != nil {
		return seen, fmt.Errorf("evaluating: %w", err)
	}
	for i, s := range t.program.weights() {
		t.loss.bind(s.name, t.state[0][i])
	}
	into := map[string]*ort.Value{}
	var outputs []*ort.Value
	for _, name := range t.loss.session.Outputs() {
		n := b.len()
		if name == penaltyName {
			n = 1
		}
		if into[name], err = t.loss.value(name, onnx.Float, n); err != nil {
			return seen, err
		}
		outputs = append(outputs, into[name])
	}
	if err := t.loss.session.Run(ctx, t.loss.in, outputs); err != nil {
		return seen, fmt.Errorf("evaluating: %w", err)
	}
	seen.losses = doubles(ort.Data[float32](into[lossName]))
	if v := into[hitsName]; v != nil {
		seen.hits = doubles(ort.Data[float32](v))
	}
	if v := into[penaltyName]; v != nil {
		seen.penalty = float64(ort.Data[float32](v)[0])
	}
	return seen, nil
}

func doubles(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
