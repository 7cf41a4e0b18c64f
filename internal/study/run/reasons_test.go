package run_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestScoresWithoutAValueHaveAReason runs every measure on networks whose activations give many of
// them no value, since they are constant or as large as float32 allows, and on few samples. Each row
// has a value or a reason.
func TestScoresWithoutAValueHaveAReason(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, factor := range map[string]float32{"constant": 0, "huge": 1e30} {
		b := onnx.NewBuilder(17)
		r := seed.Rand(1, name)
		random := func(shape ...int) onnx.Value {
			w := tensor.New(shape...)
			for i := range w.Data {
				w.Data[i] = float32(r.NormFloat64())
			}
			return b.Const("", w)
		}
		x := b.Input("x", onnx.Float, -1, 3, 16, 16)
		maps := b.Relu(b.Conv(x, random(4, 3, 3, 3), b.Const("", tensor.New(4)), onnx.Attrs{"pads": []int{1, 1, 1, 1}}))
		z := b.MatMul(b.ReduceMean(maps, false, 2, 3), random(4, 8))
		b.Output("maps", b.Mul(maps, b.Scalar(factor)))
		b.Output("logits", b.Mul(z, b.Scalar(factor)))
		testmodel.Save(t, filepath.Join(dir, name+".onnx"), b)
	}
	without, measured := 0, map[string]bool{}
	for _, d := range catalog.Descriptors() {
		for _, n := range []int{2, 12} {
			text := func(measure string) []byte {
				return fmt.Appendf(nil, `name: reasons
data: [{name: shapes, shapes: {n: %d, size: 16, seed: 2}}]
models: [{name: constant, onnx: constant.onnx, output: logits, layers: output}, {name: huge, onnx: huge.onnx, output: logits, layers: output}]
transforms: [{name: turn, rotate: {values: [90, 180]}}, {name: gray, grayscale: {}}]
measures: [%s]
`, n, measure)
			}
			path := filepath.Join(dir, "study.yaml")
			s, err := study.Parse(path, text(d.Name), nil)
			if err != nil { // it compares models
				s, err = study.Parse(path, text("{"+d.Name+": {between: all}}"), nil)
			}
			if err != nil {
				continue // it needs settings
			}
			folder := filepath.Join(dir, fmt.Sprintf("%s-%d", d.Name, n))
			result, _ := study.Run(t.Context(), s, folder, studytest.Options(t))
			if result == nil {
				continue // the measure needs other data, and the error says so
			}
			for _, r := range result.Rows {
				measured[r.Measure] = true
				if math.IsInf(r.Value, 0) {
					t.Errorf("%s %s %s of %s of %s, n = %d: %v", r.Measure, r.Variant, r.Statistic, r.Layer, r.Model, n, r.Value)
				}
				if math.IsNaN(r.Value) {
					without++
					if r.Warning == "" {
						t.Errorf("%s %s %s of %s of %s under %s %s, n = %d: neither a value nor a reason", r.Measure, r.Variant, r.Statistic, r.Layer, r.Model, r.Transform, r.Parameter, n)
					}
				}
			}
		}
	}
	if without < 100 || len(measured) < 12 {
		t.Errorf("%d rows without a value, of the measures %v: the test checks too little", without, measured)
	}
}
