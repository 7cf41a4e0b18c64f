package accel

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// update is a graph of one update of Adam, with its results as outputs.
func update(t *testing.T, decoupled bool, order func(b *onnx.Builder, x, y onnx.Value) onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(16)
	in := map[string]onnx.Value{}
	for _, name := range []string{"p", "g", "m", "v"} {
		in[name] = b.Input(name, onnx.Float, 5, 7)
	}
	for _, name := range []string{"s", "e", "k"} {
		in[name] = b.Input(name, onnx.Float)
	}
	m := order(b, b.Mul(in["m"], b.Scalar(0.9)), in["g"])
	v := order(b, b.Mul(in["v"], b.Scalar(0.999)), b.Mul(in["g"], in["g"]))
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

// Updates with and without decoupled decay are recognised, and others that look like them are not.
func TestRewriteAdam(t *testing.T) {
	if Width() == 0 {
		t.Skip("the native operators are left out, or slow on this processor")
	}
	add := func(b *onnx.Builder, x, y onnx.Value) onnx.Value { return b.Add(x, y) }
	sub := func(b *onnx.Builder, x, y onnx.Value) onnx.Value { return b.Sub(x, y) }
	for _, c := range []struct {
		decoupled bool
		order     func(b *onnx.Builder, x, y onnx.Value) onnx.Value
		want      int
	}{{false, add, 1}, {true, add, 1}, {false, sub, 0}} {
		r, err := Rewrite(update(t, c.decoupled, c.order))
		if err != nil {
			t.Fatal(err)
		}
		found, divisions := 0, 0
		for _, n := range r.Nodes() {
			switch n.GetOpType() {
			case adam:
				found++
			case "Div":
				divisions++
			}
		}
		if found != c.want || divisions != 1-c.want {
			t.Errorf("%+v: %d native updates and %d divisions, want %d and %d", c, found, divisions, c.want, 1-c.want)
		}
	}
}
