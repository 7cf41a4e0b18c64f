package train

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

type batchResult struct {
	losses []float64 // of each sample
	// 1 for a sample whose largest output is that of its class, else 0; with masks the fraction of
	// positions where it is; nil if targets are not classes
	correct []float64
	// classes that are predicted for the positions of masks, b x h x w; nil without masks
	predicted []int64
	penalty   float64 // value of Spec.Penalty; 0 without
}

func (t *Trainer) evaluateBatch(ctx context.Context, b Batch, x *ort.Value) (result batchResult, err error) {
	if err := t.feed(t.evaluation, &b, notUnrolled); err != nil {
		return result, fmt.Errorf("evaluating: %w", err)
	}
	if x != nil {
		t.evaluation.bind(t.program.inputs[0].Name, x)
	}
	for i, s := range t.program.weights() {
		t.evaluation.bind(s.name, t.state[0][i])
	}
	buffers := map[string]*ort.Value{}
	var outputs []*ort.Value
	for _, name := range t.evaluation.session.Outputs() {
		shape, kind := []int{b.len()}, onnx.Float
		switch name {
		case penaltyName:
			shape = []int{1}
		case predictedName:
			shape, kind = b.Masks.Shape, onnx.Int64
		}
		if buffers[name], err = t.evaluation.buffer(name, kind, shape...); err != nil {
			return result, err
		}
		outputs = append(outputs, buffers[name])
	}
	if err := t.evaluation.session.Run(ctx, t.evaluation.in, outputs); err != nil {
		return result, fmt.Errorf("evaluating: %w", err)
	}
	result.losses = tensor.Float64s(ort.Data[float32](buffers[lossName]))
	if v := buffers[correctName]; v != nil {
		result.correct = tensor.Float64s(ort.Data[float32](v))
	}
	if v := buffers[predictedName]; v != nil {
		result.predicted = ort.Data[int64](v)
	}
	if v := buffers[penaltyName]; v != nil {
		result.penalty = float64(ort.Data[float32](v)[0])
	}
	return result, nil
}
