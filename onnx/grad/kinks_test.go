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

// A kink is a case of testdata/kinks.json, which kinks.py there writes: the gradient of PyTorch at
// a kink (where the derivative jumps), a tie of maxima, or a pole of a function.
type kink struct {
	Name, Op   string // Op: the ONNX operator
	Opset      int
	Attributes map[string]any
	Fixed      []int // the operands that are constants, without a gradient
	Operands   []struct {
		Shape    []int
		Values   []jsonFloat
		Integers []int64
	}
	Dy struct { // the cotangent (gradient of the loss) of the first output
		Shape  []int
		Values []jsonFloat
	}
	Gradients [][]jsonFloat // with respect to each operand; nil: none
}

// A jsonFloat is a number in JSON, or "inf", "-inf" or "nan".
type jsonFloat float64

func (n *jsonFloat) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"inf"`:
		*n = jsonFloat(math.Inf(1))
	case `"-inf"`:
		*n = jsonFloat(math.Inf(-1))
	case `"nan"`:
		*n = jsonFloat(math.NaN())
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}

func float32s(v []jsonFloat) []float32 {
	list := make([]float32, len(v))
	for i := range v {
		list[i] = float32(v[i])
	}
	return list
}

// asTestCase returns the test case of a kink, whose loss reads output 0.
func (k kink) asTestCase() testCase {
	tc := testCase{attrs: onnx.Attrs{}, loss: []int{0}}
	for name, v := range k.Attributes {
		tc.attrs[name] = attributeOf(v)
	}
	for i, o := range k.Operands {
		fixed := slices.Contains(k.Fixed, i)
		x := operand{shape: o.Shape, ints: o.Integers, noGradient: fixed, alwaysConstant: fixed}
		if o.Integers == nil {
			x.floats = float32s(o.Values)
		}
		tc.operands = append(tc.operands, x)
	}
	return tc
}

// attributeOf converts an attribute from JSON, where a number is an integer, and {"float": number}
// is a float.
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

// TestKinks checks that gradients equal PyTorch's. tc.backward returns a session that computes
// them, by the graph in its plain form: every size is declared.
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
			tc := k.asTestCase()
			dy := tensor.Tensor{Shape: k.Dy.Shape, Data: float32s(k.Dy.Values)}
			p, err := tc.backward(t, k.Op, tc.plainForm(k.Opset), []tensor.Tensor{dy})
			if err != nil {
				t.Fatal(err)
			}
			feed := tc.feed()
			// r0: the input of tc.backward for dy.
			feed["r0"] = operand{shape: dy.Shape, floats: dy.Data}
			got := p.run(t, feed)
			for i, want := range k.Gradients {
				if want == nil {
					continue
				}
				if g := got[0].Data; !slices.EqualFunc(g, float32s(want), almostEqual) {
					t.Errorf("gradient with respect to operand %d: %v, PyTorch's is %v", i, fmt.Sprint(g), want)
				}
				got = got[1:]
			}
		})
	}
}

// almostEqual reports equality up to rounding. Infinities and NaN must be the same.
func almostEqual(a, b float32) bool {
	if math.IsNaN(float64(b)) || math.IsInf(float64(b), 0) {
		return a == b || a != a && b != b
	}
	return math.Abs(float64(a-b)) <= 2e-6*max(1, math.Abs(float64(b)))
}
