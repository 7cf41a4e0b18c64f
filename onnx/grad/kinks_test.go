//go:build cgo

package grad_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A kink is a case of testdata/kinks.json: what PyTorch's gradient is where a function has a kink,
// a tie or a pole.
type kink struct {
	Name, Op   string
	Opset      int
	Attributes map[string]any
	Fixed      []int
	Operands   []struct {
		Shape    []int
		Values   []number64
		Integers []int64
	}
	Dy struct {
		Shape  []int
		Values []number64
	}
	Gradients [][]number64
}

// A number64 is a number in JSON, or the name of an infinite one.
type number64 float64

func (n *number64) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"inf"`:
		*n = number64(math.Inf(1))
	case `"-inf"`:
		*n = number64(math.Inf(-1))
	case `"nan"`:
		*n = number64(math.NaN())
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}

func float32s(v []number64) []float32 {
	list := make([]float32, len(v))
	for i := range v {
		list[i] = float32(v[i])
	}
	return list
}

// trial is the node of a case.
func (k kink) trial() trial {
	tr := trial{attrs: onnx.Attrs{}, loss: []int{0}}
	for name, v := range k.Attributes {
		tr.attrs[name] = attributeOf(v)
	}
	for i, o := range k.Operands {
		fixed := slices.Contains(k.Fixed, i)
		x := operand{shape: o.Shape, ints: o.Integers, given: fixed, fixed: fixed}
		if o.Integers == nil {
			x.floats = float32s(o.Values)
		}
		tr.operands = append(tr.operands, x)
	}
	return tr
}

// attributeOf is an attribute in JSON, where a number that is not an integer is {"float": number}.
func attributeOf(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]int, len(v))
		for i := range v {
			list[i] = int(v[i].(float64))
		}
		return list
	case map[string]any:
		return v["float"]
	case float64:
		return int(v)
	}
	return v
}

func TestKinks(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/kinks.json")
	if err != nil {
		t.Fatal(err)
	}
	var kinks []kink
	if err := json.Unmarshal(data, &kinks); err != nil {
		t.Fatal(err)
	}
	for _, k := range kinks {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			tr := k.trial()
			dy := tensor.Tensor{Shape: k.Dy.Shape, Data: float32s(k.Dy.Values)}
			p, err := tr.backward(t, k.Op, tr.plain(k.Opset), []tensor.Tensor{dy})
			if err != nil {
				t.Fatal(err)
			}
			feed := tr.feed()
			feed["r0"] = operand{shape: dy.Shape, floats: dy.Data}
			got := p.run(t, feed)
			for i, want := range k.Gradients {
				if want == nil {
					continue
				}
				if g := got[0].Data; !slices.EqualFunc(g, float32s(want), alike) {
					t.Errorf("by operand %d: %v, and PyTorch has %v", i, fmt.Sprint(g), want)
				}
				got = got[1:]
			}
		})
	}
}

// alike is equality but for rounding, where what is not finite must be the same.
func alike(a, b float32) bool {
	if math.IsNaN(float64(b)) || math.IsInf(float64(b), 0) {
		return a == b || a != a && b != b
	}
	return math.Abs(float64(a-b)) <= 2e-6*max(1, math.Abs(float64(b)))
}
