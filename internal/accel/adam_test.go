package accel

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// adamGraph returns a graph of one update of Adam, with parameter p, gradient g, moments m and v,
// step size s, epsilon e and the factor k of AdamW's decoupled weight decay. Without this decay
// only another output reads k. sum combines a moment and the gradient: Adam adds them.
func adamGraph(t *testing.T, decoupled bool, sum func(b *onnx.Builder, x, y onnx.Value) onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(16)
	in := map[string]onnx.Value{}
	for _, name := range []string{"p", "g", "m", "v"} {
		in[name] = b.Input(name, onnx.Float, 5, 7)
	}
	for _, name := range []string{"s", "e", "k"} {
		in[name] = b.Input(name, onnx.Float)
	}
	m := sum(b, b.Mul(in["m"], b.Scalar(0.9)), in["g"])
	v := sum(b, b.Mul(in["v"], b.Scalar(0.999)), b.Mul(in["g"], in["g"]))
	p := in["p"]
	if decoupled {
		p = b.Mul(p, in["k"])
	} else {
		b.Output("k'", b.Add(in["k"], in["k"]))
	}
	b.Output("m'", m)
	b.Output("v'", v)
	b.Output("p'", b.Sub(p, b.Mul(b.Div(m, b.Add(b.Sqrt(v), in["e"])), in["s"])))
	r, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Updates with and without decoupled weight decay become one native operator (one in C, of package
// accel). Those that subtract the gradient from the moments are not Adam's, and stay as they are.
func TestRewriteAdam(t *testing.T) {
	skipWithoutOperators(t)
	add := func(b *onnx.Builder, x, y onnx.Value) onnx.Value { return b.Add(x, y) }
	sub := func(b *onnx.Builder, x, y onnx.Value) onnx.Value { return b.Sub(x, y) }
	for _, c := range []struct {
		decoupled bool
		sum       func(b *onnx.Builder, x, y onnx.Value) onnx.Value
		want      int
	}{{false, add, 1}, {true, add, 1}, {false, sub, 0}} {
		r, err := Rewrite(adamGraph(t, c.decoupled, c.sum))
		if err != nil {
			t.Fatal(err)
		}
		native, divisions := 0, 0
		for _, n := range r.Nodes() {
			switch n.GetOpType() {
			case adam:
				native++
			case "Div":
				divisions++
			}
		}
		if native != c.want || divisions != 1-c.want {
			t.Errorf("decoupled %v: %d native updates and %d divisions, want %d and %d", c.decoupled, native, divisions, c.want, 1-c.want)
		}
	}
}

func skipWithoutOperators(t *testing.T) {
	t.Helper()
	if Width() == 0 {
		t.Skip("native operators are not in this program, or need AVX2")
	}
}
