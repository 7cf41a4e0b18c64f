package onnx_test

import (
	"fmt"
	"log"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Builds a small network node by node, lists some of its layers, and cuts out the part that
// computes one of them. The weights are zeros. The depth of a layer is the number of nodes on the
// longest path from the input to it.
func Example() {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3, 32, 32)
	for i := range 2 {
		s := b.Scope(fmt.Sprintf("block%d", i)) // names of its nodes begin with "block0/"
		w := s.Const("", tensor.New(3, 3, 3, 3))
		x = s.Relu(s.Conv(x, w, "", onnx.Attrs{"pads": []int{1, 1, 1, 1}}))
	}
	features := b.ReduceMean(x, false, 2, 3)
	b.Output("logits", b.MatMul(features, b.Const("w", tensor.New(3, 10))))
	m, err := b.Model()
	if err != nil {
		log.Fatal(err)
	}

	// All ReLUs, and the input of the final classifier.
	layers, err := m.Select("op:Relu", "penultimate")
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range layers {
		fmt.Println(l.Depth, l.Op, l.Name)
	}
	cut, err := rewrite.WithOutputs(m, []string{"block0/Relu"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(m.Nodes()), "nodes,", len(cut.Nodes()), "for", cut.Outputs()[0])
	// Output:
	// 2 Relu block0/Relu
	// 4 Relu block1/Relu
	// 5 ReduceMean ReduceMean
	// 6 nodes, 2 for block0/Relu float
}
