package channelslast

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// alone are the terms of a graph that is only run: the engine does better there than with gradients, and sums of one place or with strides come up to a fifth slower than by it. Transformed
// weights, which live as long as their session, take 256 MiB at most.
var alone = terms{worth: 150, others: 0.2, most: 1 << 26}

// Forward returns a model that computes what m does, with those groups of its nodes with channels last that are faster so. Outputs are as they were. A model
// without such groups is returned as it is.
func Forward(m *onnx.Model) (*onnx.Model, error) {
	b := onnx.Extend(m)
	static := infer.Analyze(b.Snapshot())
	var outputs []string
	for _, p := range m.Outputs() {
		outputs = append(outputs, p.Name)
	}
	chosen := grouped(b.Nodes(), static, normalised(b.Nodes(), outputs), alone)
	if len(chosen) == 0 {
		return m, nil
	}
	Lay(b, static, chosen, outputs...)
	laid, err := b.Model()
	if err != nil {
		return nil, err
	}
	if laid, err = rewrite.WithOutputs(laid, outputs); err != nil {
		return nil, err
	}
	tap(laid, outputs)
	return rewrite.WithOutputs(laid, outputs)
}

// normalised are what convolutions make that only a normalisation reads: the engine folds that into their weights.
func normalised(nodes []*pb.NodeProto, outputs []string) map[string]bool {
	readers, list := map[string]int{}, map[string]bool{}
	for _, t := range outputs {
		readers[t]++
	}
	for _, n := range nodes {
		for _, t := range onnx.Reads(n) {
			readers[t]++
		}
	}
	for _, n := range nodes {
		if n.GetOpType() == "BatchNormalization" && readers[n.Input[0]] == 1 {
			list[n.Input[0]] = true
		}
	}
	return list
}
