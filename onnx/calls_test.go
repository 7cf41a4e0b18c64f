package onnx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// TestFunctionExpansion checks that a model is rejected if one of its functions (FunctionProto, a
// subgraph that nodes call like an operator) calls itself, or if its calls expand to too many
// nodes.
func TestFunctionExpansion(t *testing.T) {
	t.Parallel()
	call := func(op, in, out string) *pb.NodeProto {
		return &pb.NodeProto{OpType: &op, Domain: new("f"), Input: []string{in}, Output: []string{out}}
	}
	function := func(name string, nodes ...*pb.NodeProto) *pb.FunctionProto {
		return &pb.FunctionProto{Name: &name, Domain: new("f"), Input: []string{"a"}, Output: []string{"b"}, Node: nodes,
			OpsetImport: []*pb.OperatorSetIdProto{{Domain: new(""), Version: new(int64(18))}}}
	}
	relu := &pb.NodeProto{OpType: new("Relu"), Input: []string{"a"}, Output: []string{"b"}}
	// doubling returns functions f0, f1, ..., of which each calls the one before twice: fi expands
	// to at least 2^i nodes.
	doubling := func(depth int) []*pb.FunctionProto {
		list := []*pb.FunctionProto{function("f0", relu)}
		for i := 1; i < depth; i++ {
			before := fmt.Sprint("f", i-1)
			list = append(list, function(fmt.Sprint("f", i), call(before, "a", "t"), call(before, "t", "b")))
		}
		return list
	}
	for _, c := range []struct {
		name, called, want string
		functions          []*pb.FunctionProto
	}{
		{"2^60 nodes", "f60", "expand to more than 65536 nodes", doubling(61)},
		{"2^10 nodes", "f10", "", doubling(11)},
		{"a function calls itself", "f", `function "f" calls itself`, []*pb.FunctionProto{function("f", call("f", "a", "b"))}},
		{"two functions call each other", "f", `function "f" calls itself`, []*pb.FunctionProto{function("f", call("g", "a", "b")), function("g", call("f", "a", "b"))}},
	} {
		_, err := onnx.Parse(changed(t, func(p *pb.ModelProto) {
			p.Functions = c.functions
			p.Graph.Node = append(p.Graph.Node, call(c.called, "y", "z"))
		}))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}
