package onnx_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// chain is z = -|relu(x)|, with y = relu(x) as an output too.
func chain(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(18)
	y := b.Relu(b.Input("x", onnx.Float, -1, 3))
	b.Output("y", y)
	b.Output("z", b.Neg(b.Abs(y)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// opsOf returns the operators of the nodes, in order.
func opsOf(m *onnx.Model) []string {
	var ops []string
	for _, n := range m.Nodes() {
		ops = append(ops, n.GetOpType())
	}
	return ops
}

// Rewrite visits the nodes of all operators once, in order, and replaces those for which the
// function returns outputs.
func TestRewrite(t *testing.T) {
	t.Parallel()
	b := onnx.Extend(chain(t))
	var seen []string
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		seen = append(seen, n.GetOpType())
		switch n.GetOpType() {
		case "Relu":
			return []onnx.Value{b.Exp(onnx.Value(n.Input[0]))}
		case "Neg":
			return []onnx.Value{b.Sqrt(onnx.Value(n.Input[0]))}
		}
		return nil
	})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if got := opsOf(m); !slices.Equal(got, []string{"Exp", "Abs", "Sqrt"}) || !slices.Equal(seen, []string{"Relu", "Abs", "Neg"}) {
		t.Errorf("the nodes %v are replaced by %v", seen, got)
	}
}

// Replacements take the place of the Relu node, and the names of its outputs.
func TestReplace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(b *onnx.Builder, n *pb.NodeProto) []onnx.Value
		want  []string
	}{
		"two nodes replace the node": {func(b *onnx.Builder, n *pb.NodeProto) []onnx.Value {
			return []onnx.Value{b.Sqrt(b.Exp(onnx.Value(n.Input[0])))}
		}, []string{"Exp", "Sqrt", "Abs", "Neg"}},
		"an input replaces the node": {func(_ *onnx.Builder, n *pb.NodeProto) []onnx.Value { return []onnx.Value{onnx.Value(n.Input[0])} }, []string{"Identity", "Abs", "Neg"}},
		"nil keeps the node":         {func(*onnx.Builder, *pb.NodeProto) []onnx.Value { return nil }, []string{"Relu", "Abs", "Neg"}},
	} {
		b := onnx.Extend(chain(t))
		b.Replace("Relu", func(n *pb.NodeProto) []onnx.Value { return c.write(b, n) })
		m, err := b.Model()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := opsOf(m); !slices.Equal(got, c.want) {
			t.Errorf("%s: the nodes are %v, want %v", name, got, c.want)
		}
		if outs := m.Outputs(); outs[0].Name != "y" || outs[1].Name != "z" {
			t.Errorf("%s: the outputs are %v", name, outs)
		}
	}
	b := onnx.Extend(chain(t))
	b.Replace("Relu", func(*pb.NodeProto) []onnx.Value { return []onnx.Value{""} })
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "output 0") {
		t.Errorf("an empty name in place of output 0: error %v", err)
	}
}
