package ort_test

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

var _ engine.Differentiable = (*ort.Network)(nil)

// squares is a network of y = w x^2 for x of n x 2.
func squares(t *testing.T, o ort.NetworkOptions) *ort.Network {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 2)
	b.Output("y", b.Mul(b.Const("w", tensor.Tensor{Shape: []int{1, 2}, Data: []float32{3, 5}}), b.Mul(x, x)))
	net, err := orttest.Load(t).OpenNetwork(testmodel.Save(t, filepath.Join(t.TempDir(), "squares.onnx"), b), o)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// runArrays binds and runs arrays of float32.
func runArrays(t *testing.T, s engine.Session, inputs, outputs []*engine.Array) {
	t.Helper()
	for _, list := range [][]*engine.Array{inputs, outputs} {
		for _, a := range list {
			if err := s.Bind(a); err != nil {
				t.Fatal(err)
			}
			defer a.Close()
		}
	}
	if err := s.Run(t.Context(), engine.Batch{Inputs: inputs, Outputs: outputs}); err != nil {
		t.Fatal(err)
	}
}

// TestVectorJacobianProducts compares the gradient of sum(c y) for y = w x^2, which is 2 c w x.
func TestVectorJacobianProducts(t *testing.T) {
	t.Parallel()
	net := squares(t, ort.NetworkOptions{})
	s, err := net.OpenVJP(t.Context(), engine.Request{Outputs: []engine.Output{{Name: "y", Shape: []int{2}}}}, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := strings.Join(s.Inputs(), ", "); got != "x, cotangent y" {
		t.Fatalf("inputs %s, want x and the cotangent of y", got)
	}
	x := &engine.Array{Shape: []int{2, 2}, Data: []float32{1, 2, -1, 0.5}}
	c := &engine.Array{Shape: []int{2, 2}, Data: []float32{1, -1, 2, 4}}
	y, g := engine.NewArray(engine.Float, 2, 2), engine.NewArray(engine.Float, 2, 2)
	runArrays(t, s, []*engine.Array{x, c}, []*engine.Array{y, g})
	for i, want := range []float32{6, -20, -12, 20} {
		if got := g.Tensor().Data[i]; math.Abs(float64(got-want)) > 1e-5 {
			t.Errorf("gradient %v, want 6, -20, -12, 20", g.Data)
			break
		}
	}
	if got := y.Tensor().Data; got[0] != 3 || got[1] != 20 {
		t.Errorf("y = %v, want 3, 20, ...", got)
	}
}

// TestRewrittenAfterReload checks that a rewrite is applied again to weights that are read again,
// and that outputs are converted.
func TestRewrittenAfterReload(t *testing.T) {
	t.Parallel()
	rewritten, err := squares(t, ort.NetworkOptions{ReloadWeights: true}).Rewrite(func(m *onnx.Model) (*onnx.Model, error) {
		b := onnx.Extend(m)
		b.Output("rounded", b.Cast("y", onnx.Int64))
		return b.Model()
	})
	if err != nil {
		t.Fatal(err)
	}
	rewritten.(*ort.Network).FreeWeights()
	s, err := rewritten.Open(t.Context(), engine.Request{Outputs: []engine.Output{{Name: "rounded", Shape: []int{2, 1}, Convert: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := engine.NewArray(engine.Float, 1, 2, 1)
	runArrays(t, s, []*engine.Array{{Shape: []int{1, 2}, Data: []float32{1, 1}}}, []*engine.Array{out})
	if got := out.Tensor().Data; got[0] != 3 || got[1] != 5 {
		t.Errorf("%v, want 3 and 5", got)
	}
}

// TestNetworkErrors checks errors of networks that cannot be opened.
func TestNetworkErrors(t *testing.T) {
	t.Parallel()
	net := squares(t, ort.NetworkOptions{})
	path := net.Metadata().Name
	if _, err := orttest.Load(t).OpenNetwork(path, ort.NetworkOptions{Device: "abacus"}); err == nil || !strings.HasPrefix(err.Error(), "model "+path+": ") || !strings.Contains(err.Error(), `unknown device "abacus"`) {
		t.Errorf("error %v, want one line about the device", err)
	}
	var axes *engine.AxesError
	if _, err := net.Layers(t.Context(), engine.Setup{Axes: map[string]tensor.Axes{"y": "NCHW"}}); !errors.As(err, &axes) {
		t.Errorf("error %v, want one about axes", err)
	}
}
