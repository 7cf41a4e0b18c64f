package onnx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// TestFunctionExpansion checks that functions are rejected that call themselves, or that expand to
// too many nodes.
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
	doubling := func(depth int) []*pb.FunctionProto { // the i-th expands to at least 2^i nodes
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
		{"two to the 60", "f60", "expand to more than 65536 nodes", doubling(61)},
		{"within the bound", "f10", "", doubling(11)},
		{"itself", "f", `function "f" calls itself`, []*pb.FunctionProto{function("f", call("f", "a", "b"))}},
		{"one another", "f", `function "f" calls itself`, []*pb.FunctionProto{function("f", call("g", "a", "b")), function("g", call("f", "a", "b"))}},
	} {
		_, err := onnx.Parse(changed(t, func(p *pb.ModelProto) {
			p.Functions = c.functions
			p.Graph.Node = append(p.Graph.Node, call(c.called, "y", "z"))
		}))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
